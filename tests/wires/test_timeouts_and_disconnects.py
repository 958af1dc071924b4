"""Clients that stop sending, send slowly, or disconnect while `serve` is at work."""

from __future__ import annotations

import asyncio
import json
import select
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from tests.wires.processes import wait_until

from answerback import App
from answerback.wires.server.uvicorn_protocol import UvicornProtocol

EVERYTHING = Path(__file__).parent.parent / "apps" / "everything.py"
STATELESS = (
    "Content-Type: application/json",
    "MCP-Protocol-Version: 2026-07-28",
    "Mcp-Method: tools/call",
    "Mcp-Name: add",
)
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
PARAMS = {"name": "add", "arguments": {"x": 7, "y": 3}, "_meta": META}
MESSAGE = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": PARAMS}


class ShortTimeout(UvicornProtocol):
    idle_timeout = 0.3


class LongHalfClose(UvicornProtocol):
    half_close_timeout = 20.0


@pytest.fixture(scope="module")
def short_timeout_port() -> Iterator[int]:
    with served_with(ShortTimeout) as port:
        yield port


@contextmanager
def served_with(protocol: type[UvicornProtocol]) -> Iterator[int]:
    """Serve an app in a thread; the port."""
    app = App("short_timeout")

    @app.tool
    def add(x: int, y: int) -> int:
        return x + y

    @app.tool
    async def slow() -> str:
        await asyncio.sleep(3 * ShortTimeout.idle_timeout)
        return "done"

    @app.tool
    async def until_cancelled(folder: str) -> None:
        Path(folder, "began").touch()
        try:
            await asyncio.sleep(60)
        finally:
            Path(folder, "ended").touch()

    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(app.asgi(), http=protocol, ws="none", log_level="warning")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(20)


@pytest.mark.parametrize("sent", [20, -5], ids=["headers", "body"])
def test_an_incomplete_request_is_refused_with_408_after_the_time_out(
    short_timeout_port: int, connect: Any, request_bytes: Any, sent: int
) -> None:
    connection = connect(short_timeout_port)
    connection.send(request_bytes()[:sent])
    response = connection.read_response()

    assert response.status == 408
    assert response.json == {"error": "The request did not arrive in time"}
    assert connection.is_closed_by_server()


def test_a_silent_connection_is_closed_after_the_time_out(
    short_timeout_port: int, connect: Any
) -> None:
    assert connect(short_timeout_port).is_closed_by_server()


@pytest.mark.parametrize("version", [b"1.1", b"1.0"])
def test_a_client_that_closes_its_sending_half_gets_the_response_of_a_slow_call(
    connect: Any, request_bytes: Any, version: bytes
) -> None:
    with served_with(LongHalfClose) as port:
        connection = connect(port)
        connection.send(request_bytes("/functions/slow", b"{}").replace(b"1.1", version))
        connection.socket.shutdown(socket.SHUT_WR)
        response = connection.read_response()

        assert (response.status, response.json) == (200, {"result": "done"})
        assert connection.is_closed_by_server()


@pytest.mark.parametrize("sent", [20, -5], ids=["headers", "body"])
def test_a_client_that_waits_for_a_slow_response_is_not_timed_out(
    short_timeout_port: int, connect: Any, request_bytes: Any, sent: int
) -> None:
    connection = connect(short_timeout_port)
    # The second request stops half way while the first is being answered.
    connection.send(request_bytes("/functions/slow", b"{}") + request_bytes()[:sent])

    assert connection.read_response().json == {"result": "done"}


def test_the_time_out_of_a_pipelined_body_starts_after_the_earlier_response(
    short_timeout_port: int, connect: Any, request_bytes: Any
) -> None:
    connection = connect(short_timeout_port)
    connection.send(request_bytes("/functions/slow", b"{}") + request_bytes()[:-5])
    assert connection.read_response().status == 200

    time.sleep(ShortTimeout.idle_timeout * 0.8)  # The pause is what is tested.
    connection.send(request_bytes()[-5:])

    assert connection.read_response().json == {"result": 10}


def _get_with_a_body(request_bytes: Any) -> bytes:
    """The start of a GET with a body; it is answered before the body has arrived."""
    sent: bytes = request_bytes("/functions", None, "Content-Length: 9", method="GET")
    return sent


@pytest.mark.parametrize("after", ["", "a response", "a response to a part of a body"])
def test_a_connection_on_which_no_request_begins_is_closed(
    short_timeout_port: int, connect: Any, request_bytes: Any, after: str
) -> None:
    connection = connect(short_timeout_port)
    if after:
        connection.send(_get_with_a_body(request_bytes) if "body" in after else request_bytes())
        assert connection.read_response().status == 200

    connection.send(b"12345" if "body" in after else b"\r\n")

    assert connection.is_closed_by_server()


def test_a_disconnect_cancels_the_earlier_of_two_pipelined_calls(
    short_timeout_port: int, connect: Any, request_bytes: Any, tmp_path: Path
) -> None:
    params = {"name": "until_cancelled", "arguments": {"folder": str(tmp_path)}, "_meta": META}
    body = json.dumps(MESSAGE | {"params": params}).encode()
    connection = connect(short_timeout_port)
    connection.send(
        request_bytes("/mcp", body, *STATELESS[:-1], "Mcp-Name: until_cancelled") + request_bytes()
    )
    wait_until((tmp_path / "began").exists)

    connection.close()

    assert wait_until((tmp_path / "ended").exists)


def test_a_slow_body_is_not_timed_out_while_parts_of_it_arrive(
    short_timeout_port: int, connect: Any, request_bytes: Any
) -> None:
    connection = connect(short_timeout_port)
    whole = request_bytes("/functions/add", b'{"x":7,"y":3}' + b" " * 4)
    connection.send(whole[:-4])
    for _ in range(4):
        time.sleep(ShortTimeout.idle_timeout / 2)  # The pauses are what is tested.
        connection.send(b" ")

    assert connection.read_response().json == {"result": 10}


def test_clients_that_disconnect_before_the_response_are_not_logged(
    serve: Any, connect: Any, request_bytes: Any
) -> None:
    sent = request_bytes("/mcp", json.dumps(MESSAGE).encode(), *STATELESS)
    with serve(EVERYTHING) as server:
        for _ in range(30):
            address = ("127.0.0.1", server.port)
            connections = [socket.create_connection(address, timeout=20) for _ in range(100)]
            for connection in connections:
                connection.sendall(sent)
            for connection in connections:
                select.select([connection], [], [], 20)
                connection.sendall(sent)
            # Closing with an unread response resets the connection, so the server notices it.
            for connection in connections:
                connection.close()
        last = connect(server.port)
        last.send(request_bytes())
        response = last.read_response()
        server.process.terminate()
        logged = server.stderr.read()

    assert response.body == b'{"result":10}'
    assert logged == b""


@pytest.mark.parametrize("half_close", [False, True], ids=["close", "half-close"])
def test_a_running_tool_sees_that_its_client_disconnected(
    serve: Any, request_bytes: Any, tmp_path: Path, half_close: bool
) -> None:
    running, stopped = tmp_path / "running", tmp_path / "stopped"
    app = tmp_path / "long.py"
    app.write_text(
        "import pathlib, time\n"
        "from answerback import App, Context\n"
        "app = App('long')\n"
        "@app.tool\n"
        "def work(ctx: Context) -> None:\n"
        f"    pathlib.Path({str(running)!r}).touch()\n"
        "    while not ctx.cancelled:\n"
        "        time.sleep(0.005)\n"
        f"    pathlib.Path({str(stopped)!r}).touch()\n"
        "if __name__ == '__main__':\n"
        "    app.run()\n"
    )
    with serve(app) as server:
        connection = socket.create_connection(("127.0.0.1", server.port), timeout=20)
        connection.sendall(request_bytes("/functions/work", b"{}"))
        wait_until(running.exists)
        assert not stopped.exists()
        connection.shutdown(socket.SHUT_WR) if half_close else connection.close()

        assert wait_until(stopped.exists)
        if half_close:
            assert connection.recv(1) == b""
            connection.close()
