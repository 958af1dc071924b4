"""Several servers at once, and the files of hosts that name them."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import subprocess
import sys
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, Literal

import pytest
from tests.client.conftest import SERVED, STDIO, STUB, http_server

from answerback import App, NotFound, connect
from answerback.client import BadTarget, ConnectError
from answerback.models import to_openai
from answerback.registry.declarations import Change
from answerback.resilience import Breaker

ENTRY = {"command": STDIO[0], "args": STDIO[1:]}


QUICK = {"command": STUB[0], "args": STUB[1:]}


def add_one(x: int) -> int:
    return x + 1


def calculator(name: str) -> App:
    app = App(name)
    app.add_tool(add_one, name="next")
    return app


def test_tools_have_the_prefix_of_their_server_and_each_server_fails_alone() -> None:
    config = {"mcpServers": {"one": ENTRY, "broken": {"command": "no-such-program"}}}

    async def run() -> tuple[list[str], Any, Any, dict[str, str]]:
        async with connect(config) as servers:
            names = [tool.name for tool in await servers.tools()]
            added = await servers.call("one_add", x=1, y=2)
            return names, added, await servers.call("broken_add", x=1), servers.failures

    names, added, broken, failures = asyncio.run(run())

    assert names[0] == "one_add"
    assert added.data == 3
    assert broken.error.code == "UNAVAILABLE"
    assert broken.error.details["may_have_run"] is False
    assert list(failures) == ["broken"]


def test_the_longest_prefix_chooses_the_server_and_an_unknown_one_is_told() -> None:
    config = {"mcpServers": {"a": calculator("a"), "a_b": calculator("a_b")}}

    with connect(config) as servers:
        found = servers.call("a_b_next", x=1)
        unknown = servers.call("c_next", x=1)

    assert found.ok, found.error
    assert unknown.error is not None
    assert unknown.error.code == "TOOL_NOT_FOUND"


def test_servers_that_all_fail_are_an_error() -> None:
    config = {"mcpServers": {"broken": {"command": "no-such-program"}}}

    with pytest.raises(ConnectError, match="broken: cannot start"), connect(config):
        pass


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"mcpServers": {"one": QUICK}}),
        json.dumps({"servers": {"one": {"type": "stdio", **QUICK}}}),
        json.dumps({"mcp": {"servers": {"one": QUICK}}}),
        json.dumps({"mcp": {"one": {"type": "local", "command": STUB}}}),
        json.dumps({"context_servers": {"one": QUICK}}),
        json.dumps({"mcpServers": {"one": QUICK, "off": {"command": "x", "disabled": True}}}),
        '{ // a comment\n "mcpServers": {"one": ' + json.dumps(QUICK) + ",}, /* more */ }",
        json.dumps({"mcpServers": {"one": {**QUICK, "command": "${SERVED_PYTHON}"}}}),
    ],
)
def test_the_file_of_every_host_is_read(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SERVED_PYTHON", sys.executable)
    file = tmp_path / "mcp.json"
    file.write_text(text)

    with connect(file) as servers:
        reply = servers.call("one_weather")

    assert reply.data == {"degrees": "warm"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is not JSON"),
        ("[]", "should hold an object"),
        ("{}", "should have mcpServers"),
        ('{"mcpServers": {"one": {}}}', "one should have command or url"),
        ('{"mcpServers": {"one": {"command": "${NOT_SET_AT_ALL}"}}}', "NOT_SET_AT_ALL"),
    ],
)
def test_a_file_that_cannot_be_used_tells_why(text: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    file.write_text(text)

    with pytest.raises(ValueError, match=said):
        connect(file)


@pytest.mark.parametrize("target", [5, None, [], [1, "a"]])
def test_a_target_that_cannot_be_understood_is_a_connect_error(target: Any) -> None:
    with pytest.raises((BadTarget, TypeError), match=r"(takes|should be) a command"):
        connect(target)

    assert issubclass(BadTarget, ConnectError)


def test_the_command_line_calls_and_lists_any_server(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {"one": ENTRY}}))
    command = f"{shlex.quote(sys.executable)} {shlex.quote(str(SERVED))} mcp"

    statuses = [
        run_command("call", str(file), "one_add", "x=1", "y=2"),
        run_command("list", command),
        run_command("call", command, "missing"),
    ]

    out, err = capfd.readouterr()
    assert statuses == [0, 0, 66]
    assert '{"result":3}' in out
    assert "add x=INTEGER y=INTEGER" in out
    assert '"code":"NOT_FOUND"' in err


OPTIONAL = """
from answerback import App, NotFound

app = App("optional")

@app.tool
def find(city: str | None = None, tags: list[str] | None = None) -> str:
    if city == "7":
        raise NotFound("no such city", hint="try Oslo")
    return f"{city} {tags}"

app.run()
"""


def test_the_command_line_reads_optional_arguments_and_shows_hints_of_any_server(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "optional.py"
    file.write_text(OPTIONAL)
    command = f"{shlex.quote(sys.executable)} {file} mcp"

    statuses = [
        run_command("list", command),
        run_command("call", command, "find", "city=5", "tags=a,b"),
        run_command("call", command, "find", "city=7"),
        run_command("call", "http://127.0.0.1:9/mcp", "find"),
    ]

    out, err = capfd.readouterr()
    assert statuses == [0, 0, 66, 69]
    assert "find [city=TEXT] [tags=ARRAY]" in out
    assert "5 ['a', 'b']" in out
    assert '"hint":"try Oslo"' in err


def run_command(*arguments: str) -> int:
    return subprocess.run([sys.executable, "-m", "answerback", *arguments], timeout=30).returncode


def test_several_servers_complete_and_subscribe_as_one_does() -> None:
    first, second = App("first"), App("second")
    changes: list[Change] = []

    @second.prompt
    def review(language: Literal["python", "perl", "rust"]) -> str:
        return language

    @first.resource("note://first")
    def own() -> str:
        return "first"

    @second.resource("note://{name}")
    def note(name: Literal["ada", "alan"]) -> str:
        return name

    config = {"mcpServers": {"a": first, "b": second}}
    with connect(config, on_change=changes.append) as servers:
        completions = [
            servers.complete("b_review", "language", "p"),
            servers.complete("note://{name}", "name", "al"),
        ]
        servers.subscribe("note://alan")
        missing = "no server for 'review'; the servers are a, b; put .* as in 'a_review'"
        with pytest.raises(NotFound, match=missing):
            servers.complete("review", "language", "p")
        with pytest.raises(NotFound, match="no server has 'other://x'"):
            servers.subscribe("other://x")
        second.resource_changed("note://alan")
        servers.call("b_none")

    assert completions == [["python", "perl"], ["alan"]]
    assert [change.uri for change in changes] == ["note://alan"]


def test_plain_rest_says_that_it_has_tools_alone() -> None:
    class NoPages(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_error(404)

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing is logged."""

    with http_server(NoPages) as url, connect(url, transport="rest") as server:
        assert (server.resources(), server.templates(), server.prompts()) == ([], [], [])
        reply = server.read("note://a")
        for ask in (
            lambda: server.prompt("review"),
            lambda: server.complete("review", "code", "x"),
            lambda: server.subscribe("note://a"),
            lambda: server.unsubscribe("note://a"),
        ):
            with pytest.raises(NotFound, match="plain REST server only has tools"):
                ask()

    assert reply.error is not None
    assert reply.error.code == "NOT_FOUND"


def test_one_bad_entry_of_a_file_fails_alone(tmp_path: Path) -> None:
    bad = {"command": "x", "env": {"KEY": "${input:missing}"}}
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {"good": QUICK, "bad": bad, "empty": {}}}))

    with connect(file) as servers:
        names = [tool.name for tool in servers.tools()]
        reply = servers.call("bad_anything")
        failures = dict(servers.failures)

    assert names == ["good_weather"]
    assert reply.error is not None
    assert (reply.error.code, reply.error.details["may_have_run"]) == ("UNAVAILABLE", False)
    assert failures == {
        "bad": "bad needs the environment variable MISSING",
        "empty": "empty should have command or url",
    }


SILENT = {"command": sys.executable, "args": ["-I", "-S", "-c", "import sys; sys.stdin.read()"]}
"""A server that never answers."""


def test_a_server_that_hangs_delays_no_other_server() -> None:
    config = {"mcpServers": {"silent": SILENT, "math": calculator("math")}}

    with connect(config, wait=0.1, connect_timeout=3600) as servers:
        lists = [[tool.name for tool in servers.tools()] for _ in range(3)]
        reply = servers.call("math_next", x=1)
        late = servers.options(timeout=0.1).call("silent_next", x=1)
        failures = dict(servers.failures)

    assert lists == [["math_next"]] * 3
    assert reply.data == 2
    assert late.error is not None
    assert (late.error.code, late.error.details["may_have_run"]) == ("TIMED_OUT", False)
    assert list(failures) == ["silent"]
    assert "did not answer within 0.1 seconds" in failures["silent"]


def gated(gate: Path, before: str = "") -> dict[str, Any]:
    """Return a server that starts to answer when something is written into the FIFO *gate*."""
    program = f"{before}open({str(gate)!r}).read()\n{STUB[-1]}"
    return {"command": STUB[0], "args": [*STUB[1:-1], program]}


def test_a_call_waits_for_a_server_that_is_still_connecting(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    config = {"mcpServers": {"slow": gated(gate), "math": calculator("math")}}

    async def run() -> Any:
        async with connect(config, wait=0.1) as servers:
            before = [tool.name for tool in await servers.tools()]
            call = asyncio.create_task(servers.call("slow_weather"))
            await asyncio.to_thread(gate.write_text, "go on")
            reply = await call
            after = [tool.name for tool in await servers.tools()]
            return before, reply, after, servers.failures

    before, reply, after, failures = asyncio.run(run())

    assert before == ["math_next"]
    assert reply.data == {"degrees": "warm"}
    assert after == ["slow_weather", "math_next"]
    assert failures == {}


def test_a_model_that_calls_a_tool_of_a_connecting_server_is_told_to_list_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The tool is not called: what the list does not have, the model may not call."""
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    config = {"mcpServers": {"slow": gated(gate), "math": calculator("math")}}
    call = {"id": "1", "type": "function", "function": {"name": "slow_weather", "arguments": "{}"}}

    async def run() -> Any:
        async with connect(config, wait=0.1) as servers:
            kit = to_openai(await servers.tools())
            late = asyncio.create_task(kit.run(servers, call))
            await asyncio.to_thread(gate.write_text, "go on")
            _, early, _ = await late
            _, reply, _ = await to_openai(await servers.tools()).run(servers, call)
            return early, reply

    early, reply = asyncio.run(run())

    assert early.error.code == "UNAVAILABLE"
    assert "slow was still connecting" in early.error.message
    assert reply.data == {"degrees": "warm"}
    assert "a server is left out of lists: slow did not answer within 0.1 seconds" in caplog.text


def test_a_connection_goes_on_opening_after_a_call_gave_up(tmp_path: Path) -> None:
    """Otherwise a server that starts more slowly than a call may take could never be called."""
    gate, starts = tmp_path / "gate", tmp_path / "starts"
    os.mkfifo(gate)
    begin = f"open({str(starts)!r}, 'a').write('start ')\n"
    config = {"mcpServers": {"slow": gated(gate, begin), "math": calculator("math")}}

    async def run() -> Any:
        async with connect(config, wait=0.1) as servers:
            early = [await servers.options(timeout=0.1).call("slow_weather") for _ in range(3)]
            await asyncio.to_thread(gate.write_text, "go on")
            return early, await servers.call("slow_weather")

    early, reply = asyncio.run(run())

    assert [each.ok for each in early] == [False, False, False]
    assert reply.data == {"degrees": "warm"}
    assert starts.read_text() == "start "


def test_one_of_several_servers_is_used_without_async() -> None:
    config = {"mcpServers": {"a": calculator("a"), "b": calculator("b")}}

    with connect(config) as servers:
        own = servers.servers["a"]
        names = [tool.name for tool in own.tools()]
        replies = [own.options(breaker=Breaker("a")).call("next", x=1), own.call("next", x=2)]
        own.close()
        other = servers.call("b_next", x=3)

    assert list(servers.servers) == ["a", "b"]
    assert names == ["next"]
    assert [reply.data for reply in [*replies, other]] == [2, 3, 4]


def test_one_server_without_async_has_no_servers_by_name() -> None:
    with connect(calculator("a")) as server:
        assert server.servers == {}
