"""What an agent's author sets: the client's name, `_meta`, a child's stderr, and notebooks."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.client.conftest import SERVED, STDIO
from tests.conftest import load_app

from answerback import App, ToolError, Unavailable, connect
from answerback.client.remote_server import RemoteServer
from answerback.resilience import Retry


def sent(seen: list[tuple[str, bytes]], method: str) -> Any:
    """Return the parameters of the last request with this method."""
    messages = [json.loads(frame) for direction, frame in seen if direction == "sent"]
    return [each["params"] for each in messages if each.get("method") == method][-1]


def test_a_server_answers_a_ping(target: Any, version: str) -> None:
    with connect(target, version=version) as server:
        answer = server.ping()

    assert answer is None


def test_a_ping_that_nobody_answers_is_an_error() -> None:
    async def run() -> None:
        async with connect(STDIO) as server:
            await server.close()
            with pytest.raises(ToolError) as raised:
                await server.ping()
            assert raised.value.code == "UNAVAILABLE"

    asyncio.run(run())


def test_several_servers_are_pinged_and_those_that_do_not_answer_are_named() -> None:
    config = {"mcpServers": {"one": load_app(SERVED), "two": load_app(SERVED)}}

    with connect(config) as servers:
        servers.ping()
        servers.servers["two"].close()
        servers.ping()
        named = list(servers.failures)
        servers.servers["one"].close()
        with pytest.raises(ToolError, match="one"):
            servers.ping()

    assert named == ["two"]


def test_a_client_tells_its_own_name(version: str) -> None:
    seen: list[tuple[str, bytes]] = []
    info = {"name": "shop-agent", "version": "2.1", "title": "The shop"}

    def tap(*frame: Any) -> None:
        seen.append(frame)

    with connect(load_app(SERVED), version=version, client_info=info, tap=tap) as server:
        server.call("add", x=1, y=2)

    if version == "2025-11-25":
        assert sent(seen, "initialize")["clientInfo"] == info
    else:
        meta = sent(seen, "tools/call")["_meta"]
        assert meta["io.modelcontextprotocol/clientInfo"] == info


@pytest.mark.parametrize("given", ["shop-agent", {"name": "shop-agent"}, {"name": 1, "version": 2}])
def test_a_client_info_without_name_and_version_is_refused(given: Any) -> None:
    with pytest.raises(TypeError, match="should be a dict with a name and a version"):
        connect(STDIO, client_info=given)


def test_meta_is_sent_with_each_request_of_the_options(version: str) -> None:
    seen: list[tuple[str, bytes]] = []
    trace = {"traceparent": "00-abc-def-01"}

    def tap(*frame: Any) -> None:
        seen.append(frame)

    with connect(load_app(SERVED), version=version, tap=tap) as server:
        traced = server.options(meta=trace, progress=print)
        reply = traced.call("add", x=1, y=2)
        traced.read("note://a")
        traced.prompt("review", code="x")
        found = [sent(seen, each)["_meta"] for each in ("tools/call", "resources/read")]
        found.append(sent(seen, "prompts/get")["_meta"])
        server.call("add", x=1, y=2)

    assert reply.data == 3
    assert [each["traceparent"] for each in found] == ["00-abc-def-01"] * 3
    assert "progressToken" in found[0]
    assert "traceparent" not in sent(seen, "tools/call").get("_meta", {})


def test_meta_cannot_change_what_the_protocol_says() -> None:
    seen: list[tuple[str, bytes]] = []
    mine = {"io.modelcontextprotocol/protocolVersion": "1999-01-01"}

    def tap(*frame: Any) -> None:
        seen.append(frame)

    with connect(load_app(SERVED), version="2026-07-28", tap=tap) as server:
        server.options(meta=mine).call("add", x=1, y=2)

    meta = sent(seen, "tools/call")["_meta"]
    assert meta["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"


def test_meta_that_is_no_dict_is_refused() -> None:
    with connect(App("empty")) as server, pytest.raises(TypeError, match="should be a dict"):
        server.options(meta="trace")  # type: ignore[arg-type]  # a mistake of an author


def test_a_notebook_opens_a_connection_in_one_cell_and_closes_it_in_another() -> None:
    connection = connect(load_app(SERVED))

    server = connection.open()
    first = server.call("add", x=1, y=2)
    again = connection.open().call("add", x=1, y=3)
    connection.close()
    connection.close()
    server.close()

    assert (first.data, again.data) == (3, 4)


def test_a_notebook_with_async_opens_and_closes_a_connection() -> None:
    async def run() -> Any:
        connection = connect(load_app(SERVED))
        server = await connection.aopen()
        reply = await server.call("add", x=1, y=2)
        await connection.aclose()
        return server, reply, await server.call("add", x=1, y=2)

    server, reply, late = asyncio.run(run())

    assert isinstance(server, RemoteServer)
    assert reply.data == 3
    assert late.error.code == "UNAVAILABLE"


LOUD = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked:
        sys.stderr.write(f"{asked['method']}\\nhalf ")
        sys.stderr.flush()
        result = {"supportedVersions": ["2026-07-28"], "content": [], "resultType": "complete"}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""
LOUD_COMMAND = [sys.executable, "-I", "-S", "-c", LOUD]
LINES = ["server/discover", "half tools/call"]


def test_the_lines_of_a_childs_stderr_go_to_a_function() -> None:
    lines: list[str] = []

    with connect(LOUD_COMMAND, stderr=lines.append) as server:
        server.call("a")
        during = list(lines)

    assert during == LINES


def test_the_lines_of_a_childs_stderr_go_to_a_stream(capsys: pytest.CaptureFixture[str]) -> None:
    with connect(LOUD_COMMAND, stderr=sys.stderr) as server:
        server.call("a")
        during = capsys.readouterr().err

    assert during == "".join(f"{line}\n" for line in LINES)


def test_a_terminal_gets_no_control_characters_of_a_child() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    coloured = LOUD.replace("half ", "\\x1b[2Jred\\tor ")

    with connect([*LOUD_COMMAND[:-1], coloured], stderr=terminal) as server:
        server.call("a")
        during = terminal.getvalue()

    assert during == "server/discover\n\\x1b[2Jred\tor tools/call\n"


def test_the_lines_of_several_servers_go_to_a_file_with_their_names(tmp_path: Path) -> None:
    file = tmp_path / "stderr.log"
    entry = {"command": LOUD_COMMAND[0], "args": LOUD_COMMAND[1:]}

    with connect({"mcpServers": {"one": entry, "two": entry}}, stderr=file) as servers:
        for name in servers.servers:
            servers.call(f"{name}_a")
        during = sorted(file.read_text().splitlines())

    assert during == sorted(f"{name}: {line}" for name in ("one", "two") for line in LINES)
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_stderr_function_that_raises_loses_no_call(caplog: pytest.LogCaptureFixture) -> None:
    def full(line: str) -> None:
        raise OSError("no space left on device")

    with connect(LOUD_COMMAND, stderr=full) as server:
        replies = [server.call("a"), server.call("b")]

    assert [reply.ok for reply in replies] == [True, True]
    assert caplog.text.count("stderr= failed") == 1


@pytest.mark.parametrize("given", [True, 2, None])
def test_a_stderr_that_takes_no_lines_is_refused(given: Any) -> None:
    with pytest.raises(TypeError, match="should be a file name, a stream"):
        connect(LOUD_COMMAND, stderr=given)


def test_the_log_names_the_server_that_connects_restarts_and_is_asked_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "answerback.client")
    runs = tmp_path / "runs"
    env = {"SERVED_RUNS": str(runs)}
    config = {"mcpServers": {"shop": {"command": STDIO[0], "args": STDIO[1:], "env": env}}}

    with connect(config, version="2025-11-25") as servers:
        servers.tools()
        reply = servers.call("shop_crash_once")

    lines = [record.getMessage() for record in caplog.records if record.levelname == "INFO"]
    assert reply.ok, reply.error
    assert [line.partition("shop")[0] for line in lines] == [
        "connected to ",
        "lost the connection to ",
        "connected again to ",
        "",
    ]
    assert lines[0].endswith("'served 0.0.0', MCP 2025-11-25")
    assert "tools/call is sent again after 'the server process ended" in lines[-1]


def test_the_log_names_the_server_that_is_retried(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "answerback.client")
    retry = Retry(attempts=2, wait=lambda _: 0.0)

    shop = App("shop")

    @shop.tool(read_only=True)
    def stock() -> int:
        raise Unavailable("no connection")

    with connect(shop, retry=retry) as server:
        server.call("stock")

    assert "shop: attempt 2, because of retry=" in caplog.messages


def test_the_log_names_the_server_that_writes_lines_that_are_no_messages(
    caplog: pytest.LogCaptureFixture,
) -> None:
    chatty = LOUD.replace("import json, sys", "import json, sys\nprint('Ready!', flush=True)")
    entry = {"command": LOUD_COMMAND[0], "args": [*LOUD_COMMAND[1:-1], chatty]}

    with connect({"mcpServers": {"shop": entry}}) as servers:
        servers.call("shop_a")

    (line,) = [each for each in caplog.messages if "not a message" in each]
    assert line.startswith("shop (")
    assert line.endswith("sent a line that is not a message: b'Ready!'")


def test_the_facts_about_a_server_have_its_name() -> None:
    with connect(load_app(SERVED)) as server:
        assert server.info.name == "served"
