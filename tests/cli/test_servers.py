"""`call`, `list`, `read` and `prompt` with a server in place of an App, and their options."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conftest import Server, serving

from .conftest import Run

SERVER = """
import asyncio, base64, os, sys
from answerback import App, Context, Image, Link, Message, NotFound, ToolError

app = App("server")
print("started", file=sys.stderr, flush=True)

@app.tool
def headers(ctx: Context, name: str) -> str:
    return ctx.request.headers.get(name, "")

@app.tool
def refuse(ctx: Context) -> str:
    raise ToolError(f"no: {ctx.request.headers.get('authorization')}")

@app.tool
def variable(name: str) -> str:
    return os.environ.get(name, "")

@app.tool
def picture() -> Image:
    return Image(b"1234", "image/png")

@app.tool
def album() -> list[Image | Link]:
    return [Image(b"1", "image/png"), Link("https://example.com", "more"), Image(b"2", "image/png")]

@app.tool
async def steps(ctx: Context) -> str:
    ctx.progress(1, 2, "half way")
    ctx.log("a note")
    print("a line of stderr", file=sys.stderr, flush=True)
    return "done"

@app.tool
async def wait() -> str:
    await asyncio.sleep(600)
    return "done"

@app.tool(budget=500)
def streets() -> list[str]:
    return [f"Street number {number}" for number in range(60)]

@app.resource("notes://today", mime="text/markdown")
def today() -> str:
    \"\"\"The note of today.\"\"\"
    return "# Today"

@app.resource("notes://logo", mime="image/png")
def logo() -> bytes:
    return bytes(range(256))

@app.resource("notes://day/{number}")
def day(number: int) -> dict[str, int]:
    return {"number": number}

@app.resource("notes://gone")
def gone() -> str:
    raise NotFound("it is gone")

@app.prompt
def review(text: str, style: str = "plain") -> list[Message]:
    \"\"\"Review a text.\"\"\"
    return [Message(f"Review: {text} ({style})"), Message("Yes.", role="assistant")]

if __name__ == "__main__":
    app.run()
"""
COMMAND = f"{shlex.quote(sys.executable)} server.py mcp"
APP_AND_SERVER = pytest.mark.parametrize("target", ["server.py", COMMAND])


@pytest.fixture(autouse=True)
def source(tmp_path: Path) -> Path:
    file = tmp_path / "server.py"
    file.write_text(SERVER)
    return file


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    file = tmp_path_factory.mktemp("served") / "server.py"
    file.write_text(SERVER)
    with serving(file) as server:
        yield server


@pytest.fixture
def url(served: Server) -> str:
    return f"{served.url}/mcp"


@APP_AND_SERVER
def test_resources_and_prompts_are_listed_below_the_tools(answerback: Run, target: str) -> None:
    lines = answerback("list", target).stdout.splitlines()

    assert lines.index("resources:") > lines.index("picture")
    assert "  notes://today         The note of today." in lines
    assert "prompts:" in lines
    assert "  review text=TEXT [style=TEXT]  Review a text." in lines


@APP_AND_SERVER
def test_one_kind_of_entry_can_be_listed(answerback: Run, target: str) -> None:
    resources = answerback("list", target, "--resources").stdout
    prompts = answerback("list", target, "--prompts").stdout
    as_json = json.loads(answerback("list", target, "--resources", "--json").stdout)
    prompts_as_json = json.loads(answerback("list", target, "--prompts", "--json").stdout)

    assert "notes://day/{number}" in resources
    assert "review" not in resources
    assert prompts == "review text=TEXT [style=TEXT]  Review a text.\n"
    assert {"notes://today", "notes://logo", "notes://gone"} == {
        each["uri"] for each in as_json if "uri" in each
    }
    assert [each["uriTemplate"] for each in as_json if "uriTemplate" in each] == [
        "notes://day/{number}"
    ]
    assert [each["name"] for each in prompts_as_json] == ["review"]


@APP_AND_SERVER
def test_a_resource_is_read_as_it_is_into_a_pipe(answerback: Run, target: str) -> None:
    text = answerback("read", target, "notes://today")
    data = answerback("read", target, "notes://day/7")
    as_json = answerback("read", target, "notes://today", "--dialect", "rest")

    assert (text.stdout, text.exit) == ("# Today", 0)
    assert data.stdout == '{"number":7}'
    resource = json.loads(as_json.stdout)["content"][0]["resource"]
    assert resource == {"uri": "notes://today", "mimeType": "text/markdown", "text": "# Today"}


@APP_AND_SERVER
def test_the_bytes_of_a_resource_are_saved(answerback: Run, target: str, tmp_path: Path) -> None:
    done = answerback("read", target, "notes://logo", "--output", "logo.png")

    assert (tmp_path / "logo.png").read_bytes() == bytes(range(256))
    assert done.stdout == ""
    assert "logo.png: image/png, 256 bytes\n" in done.stderr


@APP_AND_SERVER
def test_a_terminal_shows_the_text_of_a_resource_and_the_size_of_bytes(
    on_a_terminal: Run, target: str
) -> None:
    text = on_a_terminal("read", target, "notes://today").stdout
    data = on_a_terminal("read", target, "notes://logo").stdout

    assert text.endswith("# Today\n")
    assert data.endswith("notes://logo, 256 bytes; save it with --output FILE\n")


@APP_AND_SERVER
@pytest.mark.parametrize("uri", ["notes://nope", "notes://gone"])
def test_a_missing_resource_is_an_error_with_its_exit_status(
    answerback: Run, target: str, uri: str
) -> None:
    done = answerback("read", target, uri)

    assert done.exit == 66
    assert json.loads(done.stderr.splitlines()[-1])["code"] == "NOT_FOUND"


@APP_AND_SERVER
def test_a_prompt_is_printed_as_json_into_a_pipe(answerback: Run, target: str) -> None:
    done = answerback("prompt", target, "review", "text=-", "style=warm", stdin=b"hello")

    text = {"type": "text", "text": "Review: hello (warm)"}
    assert json.loads(done.stdout)["messages"] == [
        {"role": "user", "content": text},
        {"role": "assistant", "content": {"type": "text", "text": "Yes."}},
    ]
    assert done.exit == 0


@APP_AND_SERVER
def test_a_terminal_shows_the_messages_of_a_prompt(on_a_terminal: Run, target: str) -> None:
    done = on_a_terminal("prompt", target, "review", "text=hello")

    assert done.stdout.endswith("user:\nReview: hello (plain)\n\nassistant:\nYes.\n")


@APP_AND_SERVER
@pytest.mark.parametrize(
    ("words", "code"), [(("nope",), "NOT_FOUND"), (("review",), "INVALID_ARGUMENTS")]
)
def test_a_failed_prompt_is_an_error(
    answerback: Run, target: str, words: tuple[str, ...], code: str
) -> None:
    done = answerback("prompt", target, *words)

    assert done.exit in (2, 66)
    assert done.stdout == ""
    if target == "server.py":
        assert json.loads(done.stderr.splitlines()[-1])["code"] == code


def test_a_prompt_without_a_name_is_a_usage_error(answerback: Run) -> None:
    done = answerback("prompt", "server.py")

    assert done.exit == 2
    assert "`answerback list server.py --prompts` shows the prompts" in done.stderr


@APP_AND_SERVER
def test_an_image_is_saved_and_the_rest_is_printed(
    answerback: Run, target: str, tmp_path: Path
) -> None:
    one = answerback("call", target, "picture", "-o", "one.png")
    several = answerback("call", target, "album", "-o", "two.png")

    assert one.stdout == ""
    assert (tmp_path / "one.png").read_bytes() == b"1234"
    assert [(tmp_path / name).read_bytes() for name in ("two.png", "two-2.png")] == [b"1", b"2"]
    assert [each["type"] for each in json.loads(several.stdout)["content"]] == ["resource_link"]


def test_a_reply_without_bytes_is_saved_as_a_pipe_gets_it(answerback: Run, tmp_path: Path) -> None:
    answerback("call", "server.py", "variable", "name=NOPE", "--output", "reply.json")

    assert (tmp_path / "reply.json").read_text() == '{"result":""}\n'


def test_a_file_that_cannot_be_written_is_an_error_before_the_call(answerback: Run) -> None:
    done = answerback("call", "server.py", "wait", "--output", "nowhere/reply.json")

    assert done.exit == 74
    assert "there is no folder 'nowhere'" in done.stderr


def test_headers_and_tokens_are_sent(answerback: Run, url: str) -> None:
    token = answerback("call", url, "headers", "name=authorization", "--token", "${KEY}", KEY="k1")
    header = answerback(
        *("call", url, "headers", "name=x-tenant"),
        *("--header", "X-Tenant: a:b", "--header", "X-Other:1"),
    )

    assert token.stdout == '{"result":"Bearer k1"}\n'
    assert header.stdout == '{"result":"a:b"}\n'


@pytest.mark.parametrize(
    ("target", "flags"),
    [
        ("URL", ("--header", "s3cret")),
        ("URL", ("--header", "X-Key: s3cret\r\nX: y")),
        ("URL", ("--token", "s3cret with spaces")),
        ("URL", ("--tokn=s3cret",)),
        ("URL", ("--env", "KEY=s3cret")),
        ("http://example.com/mcp", ("--token", "s3cret")),
        ("server.py", ("--token", "s3cret")),
        (COMMAND, ("--header", "X-Key: s3cret")),
        (COMMAND, ("--env", "s3cret")),
        ("two.json", ("--token", "s3cret")),
    ],
)
def test_a_wrong_option_is_an_error_without_the_secret(
    answerback: Run, url: str, target: str, flags: tuple[str, ...], tmp_path: Path
) -> None:
    entry = {"command": "nope"}
    (tmp_path / "two.json").write_text(json.dumps({"mcpServers": {"a": entry, "b": entry}}))

    done = answerback("call", url if target == "URL" else target, "refuse", *flags)

    assert done.exit in (2, 69)
    assert "error" in done.stderr
    assert "s3cret" not in done.stderr


@pytest.mark.parametrize(
    "flags", [("--token", "s3cret"), ("--header", "Authorization: Bearer s3cret")]
)
def test_a_servers_error_does_not_show_the_credentials(
    answerback: Run, url: str, flags: tuple[str, ...]
) -> None:
    done = answerback("call", url, "refuse", *flags)

    assert '"no: ***"' in done.stderr
    assert "s3cret" not in done.stderr


def test_an_unset_variable_is_named(answerback: Run, url: str) -> None:
    done = answerback("list", url, "--token", "${NO_SUCH_KEY}")

    assert done.exit == 2
    assert done.stderr == "error: --token needs the environment variable NO_SUCH_KEY\n"


def test_a_command_gets_its_variables(answerback: Run) -> None:
    done = answerback(
        *("call", COMMAND, "variable", "name=KEY", "--env", "KEY=a=${OWN}"), OWN="mine"
    )

    assert done.stdout == '{"result":"a=mine"}\n'


def test_a_server_that_does_not_answer_is_given_up(answerback: Run) -> None:
    done = answerback("call", COMMAND, "wait", "--timeout", "3")

    assert json.loads(done.stderr.splitlines()[-1])["code"] == "TIMED_OUT"
    assert done.exit == 75


def test_a_list_that_does_not_come_has_the_exit_status_of_its_error(
    answerback: Run, tmp_path: Path
) -> None:
    (tmp_path / "silent.py").write_text(HALF.replace('"tools/list": {', '"other": {'))

    done = answerback("list", f"{shlex.quote(sys.executable)} silent.py", "--timeout", "3")

    assert "error: " in done.stderr
    assert done.exit == 75


@pytest.mark.parametrize("seconds", ["0", "-1", "soon", "nan", "inf"])
def test_a_time_out_is_a_number_of_seconds(answerback: Run, seconds: str) -> None:
    done = answerback("list", COMMAND, f"--timeout={seconds}")

    assert done.exit == 2
    assert "must be a number of seconds" in done.stderr


def test_only_the_chosen_server_of_a_file_is_started(answerback: Run, tmp_path: Path) -> None:
    command, *words = shlex.split(COMMAND)
    program = tmp_path / "other"
    program.write_text("#!/bin/sh\ntouch started\n")
    program.chmod(0o755)
    servers = {"one": {"command": command, "args": words}, "other": {"command": str(program)}}
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": servers}))

    chosen = answerback(
        *("call", "mcp.json", "variable", "name=KEY", "--server", "one", "--env", "KEY=7")
    )
    unknown = answerback("list", "mcp.json", "--server", "on")

    assert chosen.stdout == '{"result":"7"}\n'
    assert not (tmp_path / "started").exists()
    assert unknown.stderr == "error: there is no server 'on' in mcp.json; did you mean 'one'?\n"
    assert unknown.exit == 2


def test_the_servers_log_is_shown_on_request(answerback: Run) -> None:
    shown = answerback("call", COMMAND, "steps", "--server-log")
    silent = answerback("call", COMMAND, "steps")

    assert shown.stdout == silent.stdout == '{"result":"done"}\n'
    assert {"started", "info: a note", "a line of stderr"} <= set(shown.stderr.splitlines())
    assert silent.stderr == ""


def test_a_terminal_shows_the_progress_of_a_server(on_a_terminal: Run) -> None:
    seen = on_a_terminal("call", COMMAND, "steps").stdout

    assert "50% half way" in seen
    assert seen.endswith("done\n")


def test_a_failing_list_of_prompts_does_not_hide_the_tools(answerback: Run, tmp_path: Path) -> None:
    (tmp_path / "half.py").write_text(HALF)

    done = answerback("list", f"{shlex.quote(sys.executable)} half.py")

    assert done.stdout == "act\n"
    assert done.stderr == "note: the prompts cannot be listed: not today\n"
    assert done.exit == 0


HALF = """
import json, sys
facts = {"protocolVersion": "2025-11-25", "serverInfo": {"name": "half", "version": "1"}}
results = {
    "initialize": facts | {"capabilities": {"tools": {}, "prompts": {}}},
    "tools/list": {"tools": [{"name": "act", "inputSchema": {"type": "object"}}]},
}
for line in sys.stdin:
    asked = json.loads(line)
    if asked["method"] == "tools/list" and "tools/list" not in results:
        continue
    if "id" in asked:
        code = -32603 if asked["method"] == "prompts/list" else -32601
        refusal = {"error": {"code": code, "message": "not today"}}
        found = results.get(asked["method"])
        answer = refusal if found is None else {"result": found}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **answer}), flush=True)
"""


def test_a_program_with_its_own_app_reads_and_prompts(source: Path) -> None:
    def run(*words: str) -> str:
        command = [sys.executable, str(source), *words]
        return subprocess.run(command, capture_output=True, check=True, text=True).stdout

    assert run("read", "notes://today") == "# Today"
    assert "Review: hi" in run("prompt", "review", "text=hi")


def test_a_token_from_an_unreadable_url_is_an_error_in_one_line(answerback: Run) -> None:
    done = answerback("token", "http://[")

    assert done.exit == 2
    assert done.stderr == "error: http://[ is not a URL: Invalid IPv6 URL\n"


def test_a_program_that_gets_a_part_of_a_list_is_told_so_on_stderr(answerback: Run) -> None:
    done = answerback("call", COMMAND, "streets")

    sent = len(json.loads(done.stdout)["result"])
    assert 0 < sent < 60
    assert f"note: the server sent {sent} of 60 items" in done.stderr


def test_a_command_without_quotes_is_an_error_before_it_is_started(answerback: Run) -> None:
    done = answerback("call", "sh", "server.py", "mcp", "today")

    assert done.exit == 2
    assert "put quotes around a command: 'sh server.py mcp'" in done.stderr


def test_a_url_of_the_server_without_mcp_is_answered_with_the_one_to_try(
    answerback: Run, url: str
) -> None:
    done = answerback("call", url.replace("/mcp", "/functions"), "today")

    assert f"try {url}" in done.stderr


def test_a_servers_texts_and_choices_are_listed_as_those_of_an_app(
    answerback: Run, tmp_path: Path
) -> None:
    (tmp_path / "choices.py").write_text(
        "from typing import Literal\n"
        "from answerback import App\n"
        "app = App('choices')\n"
        "@app.tool\n"
        "def find(word: str, order: Literal['title', 'length'] = 'title') -> str: return word\n"
        "if __name__ == '__main__': app.run()\n"
    )

    of_server = answerback("list", f"{shlex.quote(sys.executable)} choices.py mcp")

    assert of_server.stdout == answerback("list", "choices.py").stdout
    assert "find word=TEXT [order=title|length]" in of_server.stdout


NOT_UTF8 = os.fsdecode(b"\xff")


@pytest.mark.parametrize(
    "words",
    [
        ("call", "headers", f"name={NOT_UTF8}"),
        ("call", "headers", f"{NOT_UTF8}=x"),
        ("call", "headers", f"name=@@{NOT_UTF8}"),
        ("call", "headers", f"{NOT_UTF8}=@server.py"),
        ("call", "headers", "--json", f'{{"name": "{NOT_UTF8}"}}'),
        ("read", f"notes://{NOT_UTF8}"),
        ("prompt", f"review{NOT_UTF8}"),
        ("prompt", "review", f"text={NOT_UTF8}"),
        ("prompt", "review", f"text=@@{NOT_UTF8}"),
    ],
)
def test_an_argument_that_is_not_utf_8_is_a_usage_error(
    answerback: Run, url: str, words: tuple[str, ...]
) -> None:
    command, *others = words

    for target in (url, "server.py"):
        done = answerback(command, target, *others)

        assert done.exit == 2
        assert "is not UTF-8" in done.stderr
        assert "Traceback" not in done.stderr
