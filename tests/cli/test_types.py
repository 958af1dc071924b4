"""`answerback types` infers types from recorded replies, and checks other replies by them."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Run

from answerback import connect

SERVER = '''
"""Orders, without types."""

import json

from answerback import App

app = App("orders")


@app.tool(read_only=True, examples=[{"id": 1}, {"id": 2}])
def get_order(id: int) -> dict:
    """Get an order."""
    order = {"id": id, "lines": [{"sku": "a", "number": 1}]}
    return order if id == 1 else order | {"note": "gift"}


@app.tool(read_only=True)
def list_orders(limit: int = 10) -> str:
    """List all orders."""
    return json.dumps(
        {"orders": [{"id": 1, "total": 2.5}, {"id": 2, "total": None}], "count": 2}, indent=2
    )


@app.tool(read_only=True)
def greet(name: str = "you"):
    return f"hello {name}"


@app.tool(read_only=True)
async def tags(
    more: dict[str, int] | None = None,
):  # a comment: with a colon
    return [{"tag": "a", "uses": 1}]


@app.tool
def delete_order(id: int):
    return {"deleted": id}


@app.tool(read_only=True)
def count() -> int:
    return 2


if __name__ == "__main__":
    app.run()
'''


@pytest.fixture
def server(tmp_path: Path) -> Path:
    file = tmp_path / "server.py"
    file.write_text(SERVER.lstrip())
    return file


def line(tool: str, data: Any) -> str:
    """A line with a reply that has the data as JSON text, as most published servers send it."""
    return json.dumps(
        {"tool": tool, "reply": {"content": [{"type": "text", "text": json.dumps(data)}]}}
    )


def body_of(module: str) -> str:
    """The classes and the table of a printed module."""
    return module.partition("\n\n\n")[2]


def test_the_types_of_recorded_lines_are_printed_as_a_module(
    recorded: Callable[..., Path], answerback: Run
) -> None:
    recorded(
        line("get_user", {"id": 1, "name": "Ada", "address": {"city": "Oslo", "zip": None}}),
        line("get_user", {"id": 2, "name": "Bo", "address": {"city": "Bergen", "zip": "5003"}}),
        line("get_user", {"id": 3, "name": "Cy", "address": None, "nick": "C"}),
        line("hello", "hello"),
    )

    done = answerback("types", "replies.jsonl")

    assert body_of(done.stdout) == (
        "# 2 replies\n"
        "class GetUserAddress(TypedDict):\n"
        "    city: str\n"
        "    zip: str | None\n"
        "\n\n"
        "# 3 replies\n"
        "class GetUserReply(TypedDict):\n"
        "    id: int\n"
        "    name: str\n"
        "    address: GetUserAddress | None\n"
        "    nick: NotRequired[str]  # in 1 of 3\n"
        "\n\n"
        "REPLY_TYPES: dict[str, Any] = {\n"
        '    "get_user": GetUserReply,  # 3 replies\n'
        '    "hello": str,  # 1 reply\n'
        "}\n"
    )
    assert done.stderr == "2 tools with a type, from 4 replies\n"
    assert done.exit == 0


def test_dataclasses_have_defaults_for_members_that_may_be_missing(
    recorded: Callable[..., Path], answerback: Run
) -> None:
    recorded(line("get", {"a": 1, "id": 2}), line("get", {"id": 2}))

    done = answerback("types", "replies.jsonl", "--dataclasses")

    assert (
        "@dataclass\nclass GetReply:\n    id: int\n    a: int | None = None  # in 1 of 2\n"
    ) in done.stdout


DAYS = [{"day": f"2026-01-0{n}", "at": f"2026-01-0{n}T10:00:00Z"} for n in range(1, 4)]


@pytest.mark.parametrize(
    ("replies", "expected"),
    [
        ([1, 2.5], "float"),
        ([True, 3, None], "bool | int | None"),
        ([[1], ["a"], []], "list[int | str]"),
        ([[]], "list[Any]"),
        ([{}], "dict[str, Any]"),
        ([{"2026-01-01": 1, "2026-01-02": 2}], "dict[str, int]"),
        ([{"src/a.py": [1], "b.py": []}], "dict[str, list[int]]"),
        ([{"7d444840-9dc0-41d1-b245-5ffdce74fad2": "x"}], "dict[str, str]"),
        ([{name: 1} for name in "abcdefg"], "dict[str, int]"),
        ([{f"k{n}": n for n in range(101)}], "dict[str, int]"),
        (DAYS[:2], "day: str\n    at: str\n"),
        ([DAYS], "day: date\n    at: datetime\n"),
        ([[{"n": 2, "next": {"n": 1, "next": None}}]], 'n: int\n    next: "GetItem | None"\n'),
        ([[{"s": "open"}, {"s": "done"}] * 2] * 5, 's: Literal["done", "open"]\n'),
        ([[{"s": "open"}, {"s": "done"}] * 20] * 4, "s: str\n"),
        ([[{"s": "open"}, {"s": "open"}] * 2] * 5, "s: str\n"),
        ([[{"s": "in work"}, {"s": "done"}] * 2] * 5, "s: str\n"),
    ],
)
def test_the_type_fits_the_evidence(
    replies: list[Any], expected: str, recorded: Callable[..., Path], answerback: Run
) -> None:
    lines = [
        json.dumps({"tool": "get", "reply": {"structuredContent": {"result": each}}})
        for each in replies
    ]
    recorded(*lines)

    done = answerback("types", "replies.jsonl")

    assert f"{expected}," in done.stdout or expected in done.stdout


def test_equal_records_are_one_class_and_names_do_not_collide(
    recorded: Callable[..., Path], answerback: Run
) -> None:
    user = {"id": 1, "name": "Ada"}
    recorded(
        line("list_users", {"users": [user, user], "owner": user}),
        line("get_user", user),
        line("get-user", {"x": {"y": 1, "z": 2}}),
    )

    done = answerback("types", "replies.jsonl")

    assert done.stdout.count("    name: str") == 1
    assert '"get_user": GetUserReply2,' in done.stdout
    assert '"get-user": GetUserReply,' in done.stdout
    assert "    users: list[GetUserReply2]\n    owner: GetUserReply2\n" in done.stdout


def test_a_result_is_a_wrapper_or_the_functions_own_member(
    recorded: Callable[..., Path], server: Path, answerback: Run
) -> None:
    """The official SDK wraps objects too; its text has them without the wrapper."""
    wrapped = {"content": [{"type": "text", "text": '{"id": 1}'}]}
    own = {"content": [{"type": "text", "text": '{"result": {"id": 1}}'}]}
    data = {"structuredContent": {"result": {"id": 1}}}
    number = {"structuredContent": {"result": 7}}
    server.write_text(
        "from answerback import App\napp = App('x')\n"
        + "".join(f"@app.tool\ndef {name}() -> dict: ...\n" for name in ("a", "b", "c"))
    )
    lines = {"a": wrapped | data, "b": own | data, "c": number}
    recorded(*(json.dumps({"tool": tool, "reply": reply}) for tool, reply in lines.items()))

    types = answerback("types", "replies.jsonl").stdout
    of_app = answerback("types", "replies.jsonl", "server.py").stdout

    assert "class AReply(TypedDict):\n    id: int\n" in types
    assert "class BReply(TypedDict):\n    result: BResult\n" in types
    assert '"c": int,' in types
    assert "class AReply(TypedDict):\n    id: int\n" in of_app
    assert "class CReply(TypedDict):\n    result: int\n" in of_app


def test_failures_and_images_have_no_type(recorded: Callable[..., Path], answerback: Run) -> None:
    image = {"content": [{"type": "image", "data": "AAAA", "mimeType": "image/png"}]}
    recorded(
        line("get", {"error": "not found"}),
        json.dumps({"tool": "get", "reply": {"content": [], "isError": True}}),
        json.dumps({"tool": "draw", "reply": image}),
        line("add", [1]),
    )

    done = answerback("types", "replies.jsonl")

    assert '{\n    "add": list[int],  # 1 reply\n}' in done.stdout
    assert "get: its replies are failures only" in done.stderr
    assert "draw: its replies have only content" in done.stderr


def test_lines_that_cannot_be_read_are_reported_by_their_numbers(
    recorded: Callable[..., Path], answerback: Run
) -> None:
    deep = '{"tool": "get", "reply": ' + "[" * 100_000 + "]" * 100_000 + "}"
    recorded(line("get", [1]), '{"tool": "get", "reply": {', "a log line", deep, '{"content": []}')

    done = answerback("types", "replies.jsonl")

    assert '"get": list[int],  # 1 reply' in done.stdout
    assert done.stderr.splitlines()[:-1] == [
        "replies.jsonl:2: this is not JSON",
        "replies.jsonl:3: this is not JSON",
        "replies.jsonl:4: this is not JSON",
        "replies.jsonl:5: the reply does not name its tool; "
        'write {"tool": "name", "reply": …} on a line',
    ]
    assert done.exit == 0


def test_a_file_without_replies_is_an_error(recorded: Callable[..., Path], answerback: Run) -> None:
    recorded("nothing here")

    done = answerback("types", "replies.jsonl")
    missing = answerback("types", "nowhere.jsonl")

    assert done.exit == missing.exit == 2
    assert "no reply to infer a type from" in done.stderr
    assert "cannot read nowhere.jsonl" in missing.stderr


def test_the_names_of_tools_and_members_cannot_add_code(
    recorded: Callable[..., Path], answerback: Run
) -> None:
    evil = 'x"]\nraise SystemExit(7)\n#'
    recorded(line(evil, {evil: {evil: 1, "a": 2}, "b'": 1, "c d": 2, "e": 3, "f": 4}))

    done = answerback("types", "replies.jsonl")

    exec(compile(done.stdout, "types.py", "exec"), {"__name__": "types"})
    assert done.exit == 0


def called(server: Path, audit: str) -> None:
    """Call a server, which records its replies; the tap has the messages."""
    more = ["--audit", str(server.parent / audit), "--audit-keep", "content"]
    command = [sys.executable, "-m", "answerback", "mcp", str(server), *more]
    with connect(command, tap=server.parent / "tap.jsonl") as client:
        client.tools()
        client.call("get_order", id=1)
        client.call("get_order", id="no number")
        client.call("list_orders")
        client.call("count")


@pytest.mark.parametrize("name", ["audit.db", "audit.jsonl"])
def test_records_with_content_are_read(name: str, server: Path, answerback: Run) -> None:
    called(server, name)

    done = answerback("types", name)

    assert '"count": int,  # 1 reply' in done.stdout
    assert '"get_order": GetOrderReply,  # 1 reply' in done.stdout
    assert '"list_orders": ListOrdersReply,  # 1 reply' in done.stdout


def test_a_tap_is_read_with_the_names_of_its_requests(server: Path, answerback: Run) -> None:
    called(server, "audit.db")

    of_tap, of_records = (answerback("types", name) for name in ("tap.jsonl", "audit.db"))

    assert of_tap.stdout == of_records.stdout


def test_records_without_content_say_how_to_keep_it(server: Path, answerback: Run) -> None:
    audit = str(server.parent / "audit.jsonl")
    with connect([sys.executable, str(server), "mcp", "--audit", audit]) as client:
        client.call("count")

    done = answerback("types", "audit.jsonl")

    assert done.exit == 2
    assert "--audit-keep content" in done.stderr


def test_deep_data_has_a_type_down_to_a_limit(
    recorded: Callable[..., Path], answerback: Run
) -> None:
    deep = '{"a": ' * 190 + "1" + "}" * 190
    deeper = '{"tool": "deeper", "reply": ' + "[" * 700 + "]" * 700 + "}"
    recorded(json.dumps({"tool": "deep", "reply": deep}), deeper)

    done = answerback("types", "replies.jsonl")

    assert "Any" in done.stdout
    assert done.exit == 0


def test_an_app_alone_says_which_tools_need_replies_and_calls_none(
    server: Path, answerback: Run
) -> None:
    done = answerback("types", "server.py")

    assert done.exit == 2
    assert "no types: delete_order, get_order, greet, list_orders, tags;" in done.stderr
    assert done.stdout == ""


def test_call_only_calls_tools_that_say_that_they_are_read_only(
    server: Path, answerback: Run
) -> None:
    server.write_text(
        SERVER.replace('return {"deleted"', 'print("DELETED")\n    return {"deleted"')
    )

    done = answerback("types", "server.py", "--call")

    assert '"get_order": GetOrderReply,  # 2 replies' in done.stdout
    assert '"tags": list[TagsItem],  # 1 reply' in done.stdout
    assert "delete_order" not in done.stdout
    assert "delete_order: not called, because it does not say that it is read-only" in done.stderr
    assert "DELETED" not in done.stderr


def test_any_server_can_be_called(server: Path, answerback: Run) -> None:
    done = answerback("types", f"{shlex.quote(sys.executable)} {server} mcp", "--call")

    assert '"list_orders": ListOrdersReply,  # 1 reply' in done.stdout
    assert "get_order: not called, because it needs arguments" in done.stderr


def test_an_app_of_its_own_program_needs_no_target(server: Path) -> None:
    run = subprocess.run(
        [sys.executable, str(server), "types", "--call"], capture_output=True, text=True, check=True
    )

    assert '"get_order": GetOrderReply,  # 2 replies' in run.stdout


def test_the_patch_makes_a_server_with_types_of_one_without(
    server: Path, answerback: Run, tmp_path: Path
) -> None:
    before = answerback("call", "server.py", "list_orders")

    patch = answerback("types", "server.py", "--call", "--patch")
    subprocess.run(["git", "apply", "-"], input=patch.stdout, text=True, cwd=tmp_path, check=True)
    after = answerback("call", "server.py", "list_orders")
    again = answerback("types", "server.py", "--call", "--check")

    text = server.read_text()
    assert "def get_order(id: int) -> GetOrderReply:" in text
    assert 'def greet(name: str = "you") -> str:' in text
    assert ") -> list[TagsItem]:  # a comment: with a colon" in text
    assert "def delete_order(id: int):" in text
    assert text.index("class GetOrderReply") < text.index("app = App(")
    assert json.loads(json.loads(before.stdout)["result"]) == json.loads(after.stdout)
    assert (again.stderr.splitlines()[-1], again.exit) == ("6 of 6 replies fit", 0)


@pytest.mark.parametrize(
    ("returned", "note"),
    [
        ("return json.dumps({'a': 1}) if id else 'none'", "is not `return json.dumps(…)`"),
        ("return json.dumps({'a': 1}, default=str)", "`json.dumps` has options here"),
    ],
)
def test_a_function_whose_text_is_made_otherwise_is_left_to_the_author(
    returned: str, note: str, server: Path, answerback: Run
) -> None:
    server.write_text(
        "import json\nfrom answerback import App\napp = App('x')\n\n"
        f"@app.tool(read_only=True)\ndef get(id: int = 1) -> str:\n    {returned}\n"
    )

    done = answerback("types", "server.py", "--call", "--patch")

    assert done.stdout == ""
    assert note in done.stderr
    assert "server.py:" in done.stderr


@pytest.mark.parametrize(
    ("declared", "returned", "patched"),
    [
        ("", "return {'a': 1} if id else 'none'", " -> GetReply"),
        ("", "if not id:\n        return f'no {id}'\n    return {'a': 1}", " -> GetReply | str"),
        ("", "if not id:\n        return\n    return {'a': 1}", " -> GetReply | None"),
        (" -> dict | None", "return {'a': 1}", " -> GetReply | None"),
        (" -> Optional[dict]", "return {'a': 1}", " -> GetReply | None"),
        (" -> Union[str, dict]", "return {'a': 1}", " -> GetReply | str"),
        (" -> dict[str, Any] | str", "return {'a': 1}", " -> GetReply | str"),
        (" -> dict[str, Any]", "return {'a': 1}", " -> GetReply"),
        (" -> list[dict]", "return [{'a': 1}]", " -> list[GetItem]"),
        (" -> int | str", "return 1", None),
        (" -> dict[str, int]", "return {'a': 1}", None),
        (" -> list[str]", "return ['a']", None),
    ],
)
def test_the_patch_keeps_what_a_function_may_return_besides(
    declared: str, returned: str, patched: str | None, server: Path, answerback: Run
) -> None:
    server.write_text(
        "from typing import *\nfrom answerback import App\napp = App('x')\n\n"
        f"@app.tool(read_only=True)\ndef get(id: int = 1){declared}:\n    {returned}\n"
    )

    done = answerback("types", "server.py", "--call", "--patch")

    signature = None if patched is None else f"+def get(id: int = 1){patched}:\n"
    assert (done.stdout == "") if signature is None else (signature in done.stdout)


def test_check_says_which_reply_does_not_fit_where(
    recorded: Callable[..., Path], server: Path, answerback: Run
) -> None:
    server.write_text(
        "from typing import TypedDict\nfrom answerback import App\napp = App('x')\n"
        "class Order(TypedDict):\n    id: int\n    tags: list[str]\n"
        "@app.tool\ndef get(id: int) -> Order: ...\n@app.tool\ndef text() -> str: ...\n"
    )
    recorded(
        line("get", {"id": 1, "tags": []}),
        line("get", {"id": "1", "tags": ["a", 7]}),
        line("get", {"id": 1, "tags": [], "color": "red"}),
        line("get", {"error": "not found"}),
        line("text", {"any": "JSON"}),
        line("other", {"a": 1}),
    )

    done = answerback("types", "replies.jsonl", "server.py", "--check")

    assert done.stdout.splitlines() == [
        "replies.jsonl:2: get: id: expected int, got str '1'",
        "replies.jsonl:2: get: tags[1]: expected str, got int 7",
        "replies.jsonl:3: get: color: the type does not have this member",
    ]
    assert done.stderr.splitlines() == [
        "other: there is no type of this tool",
        "2 of 4 replies fit",
    ]
    assert done.exit == 1


def test_replies_are_checked_by_a_printed_module(
    recorded: Callable[..., Path], answerback: Run, tmp_path: Path
) -> None:
    recorded(line("get", {"id": 1}))
    (tmp_path / "reply_types.py").write_text(answerback("types", "replies.jsonl").stdout)

    fitting = answerback("types", "replies.jsonl", "reply_types.py", "--check")
    other = line("get", {"id": None}).encode()
    misfit = answerback("types", "-", "reply_types.py", "--check", stdin=other)

    assert fitting.exit == 0
    assert misfit.stdout == "stdin:1: get: id: expected int, got null\n"
    assert misfit.exit == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["replies.jsonl", "--patch"], "--patch needs the App: add its file"),
        (["replies.jsonl", "--check"], "--check needs the App: add its file"),
        (["replies.jsonl", "--call"], "--call needs an App or a server to call"),
        (["server.py", "other.py"], "give one App or server, not 2"),
        (["server.py", "--patch", "--check"], "give --patch or --check, not both"),
        (["server.py", "--check"], "there are no replies to check"),
    ],
)
def test_options_that_miss_something_say_what(
    arguments: list[str],
    message: str,
    recorded: Callable[..., Path],
    server: Path,
    answerback: Run,
) -> None:
    recorded(line("get", {"id": 1}))

    done = answerback("types", *arguments)

    assert message in done.stderr
    assert done.exit == 2
