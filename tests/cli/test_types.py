"""`answerback types` infers types from recorded replies, and prints them as a module."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Run

from answerback import connect

SERVER = """
import json

from answerback import App

app = App("orders")


@app.tool
def get_order(id: int) -> dict:
    return {"id": id, "lines": [{"sku": "a", "number": 1}]}


@app.tool
def list_orders() -> str:
    return json.dumps({"orders": [{"id": 1, "total": 2.5}, {"id": 2, "total": None}], "count": 2})


@app.tool
def count() -> int:
    return 2


if __name__ == "__main__":
    app.run()
"""


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
    assert done.stderr == "inferred types for 2 tools from 4 replies\n"
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
    recorded: Callable[..., Path], answerback: Run
) -> None:
    """The official SDK wraps objects too; its text has them without the wrapper."""
    wrapped = {"content": [{"type": "text", "text": '{"id": 1}'}]}
    own = {"content": [{"type": "text", "text": '{"result": {"id": 1}}'}]}
    data = {"structuredContent": {"result": {"id": 1}}}
    number = {"structuredContent": {"result": 7}}
    lines = {"a": wrapped | data, "b": own | data, "c": number}
    recorded(*(json.dumps({"tool": tool, "reply": reply}) for tool, reply in lines.items()))

    types = answerback("types", "replies.jsonl").stdout

    assert "class AReply(TypedDict):\n    id: int\n" in types
    assert "class BReply(TypedDict):\n    result: BResult\n" in types
    assert '"c": int,' in types


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
    assert "get: its replies are all failures" in done.stderr
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


CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "add"}}
SUM = {"jsonrpc": "2.0", "id": 1, "result": {"structuredContent": {"sum": 10}}}
EXCHANGE = {
    "request": {"method": "POST", "postData": {"text": json.dumps(CALL)}},
    "response": {"status": 200, "content": {"text": json.dumps(SUM)}},
}


@pytest.mark.parametrize(
    "lines",
    [
        [json.dumps(CALL), json.dumps(SUM)],
        [json.dumps([CALL, SUM], indent=2)],
        [f"12:00 -> {json.dumps(CALL)}", f"12:01 <- {json.dumps(SUM)}"],
        [json.dumps({"log": {"entries": [EXCHANGE]}}, indent=2)],
    ],
    ids=["frames", "array", "log", "HAR"],
)
def test_what_lint_reads_is_read_from_a_file_of_any_name(
    lines: list[str], recorded: Callable[..., Path], answerback: Run
) -> None:
    recorded(*lines, name="session.dat")

    done = answerback("types", "session.dat")

    assert "class AddReply(TypedDict):\n    sum: int\n" in done.stdout
    assert done.exit == 0


def test_stdin_is_read_together_with_files(recorded: Callable[..., Path], answerback: Run) -> None:
    recorded(line("get", {"id": 1}))

    done = answerback("types", "replies.jsonl", "-", stdin=line("get", {"id": None}).encode())

    assert "    id: int | None\n" in done.stdout
    assert '"get": GetReply,  # 2 replies' in done.stdout


def test_servers_that_share_a_tap_have_ids_of_their_own(
    recorded: Callable[..., Path], answerback: Run
) -> None:
    """The requests that a server sends to its client have ids of their own too."""
    other = CALL | {"params": {"name": "greet"}}
    question = {"jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": {}}
    answer = {"jsonrpc": "2.0", "id": 1, "result": {"action": "decline"}}
    greeting = {"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": "hi"}]}}
    recorded(
        *(
            json.dumps({"direction": direction, "server": server, "message": message})
            for direction, server, message in [
                ("sent", "a", CALL),
                ("sent", "b", other),
                ("received", "a", question),
                ("sent", "a", answer),
                ("received", "b", greeting),
                ("received", "a", SUM),
            ]
        )
    )

    done = answerback("types", "replies.jsonl")

    assert '"add": AddReply,  # 1 reply' in done.stdout
    assert '"greet": str,  # 1 reply' in done.stdout


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
