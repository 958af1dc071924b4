"""What an agent's author sets: the client's name, `_meta`, a child's stderr, and notebooks."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from tests.client.conftest import SERVED, STDIO
from tests.conftest import load_app

from answerback import App, ToolError, connect
from answerback.client.remote_server import RemoteServer


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
