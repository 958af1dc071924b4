"""Clients that stop sending, send slowly, or disconnect while `serve` is at work."""

from __future__ import annotations

import asyncio
import json
import select
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest
import uvicorn
from tests.loop_clock import advance_clock
from tests.server.processes import wait_until

from answerback import App
from answerback.server.uvicorn.uvicorn_protocol import UvicornProtocol

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


class ClockedServer:
    """A server in a thread. A test knows what it has received, and sets its clock forward."""

    def __init__(self) -> None:
        self.goes_on = asyncio.Event()
        """Lets the tool `slow` return."""
        self._received: SimpleQueue[int] = SimpleQueue()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]

    @contextmanager
    def run(self, app: App) -> Iterator[None]:
        clocked = self

        class Watched(UvicornProtocol):
            half_close_timeout = HALF_CLOSE

            def connection_made(self, transport: Any) -> None:
                super().connection_made(transport)
                clocked._loop = self.loop
                clocked._received.put(0)

            def data_received(self, data: bytes) -> None:
                super().data_received(data)
                clocked._received.put(len(data))

        config = uvicorn.Config(
            app.asgi(),
            http=Watched,
            ws="none",
            loop="asyncio",
            log_level="warning",
            timeout_keep_alive=KEEP_ALIVE,
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [self._listener]})
        thread.start()
        try:
            yield
        finally:
            server.should_exit = True
            thread.join(60)

    def wait_for_bytes(self, count: int) -> None:
        """Wait until the server has accepted a connection and received so many bytes more."""
        left = count - self._received.get(timeout=60)
        while left > 0:
            left -= self._received.get(timeout=60)

    def advance(self, seconds: float) -> None:
        """Return once the timers that are due have run."""
        self._in_loop(lambda: advance_clock(seconds))
        for _ in range(2):
            self._in_loop(lambda: None)

    def go_on(self) -> None:
        self._in_loop(self.goes_on.set)

    def _in_loop(self, step: Callable[[], None]) -> None:
        done = threading.Event()
        assert self._loop is not None
        self._loop.call_soon_threadsafe(step)
        self._loop.call_soon_threadsafe(done.set)
        assert done.wait(60)


IDLE = UvicornProtocol.idle_timeout
KEEP_ALIVE = 3600
HALF_CLOSE = 3600.0


@pytest.fixture
def clocked() -> Iterator[ClockedServer]:
    app, server = App("clocked"), ClockedServer()

    @app.tool
    def add(x: int, y: int) -> int:
        return x + y

    @app.tool
    async def slow() -> str:
        await server.goes_on.wait()
        return "done"

    @app.tool
    async def until_cancelled(folder: str) -> None:
        Path(folder, "began").touch()
        try:
            await asyncio.Event().wait()
        finally:
            Path(folder, "ended").touch()

    with server.run(app):
        yield server


@pytest.mark.parametrize("sent", [20, -5], ids=["headers", "body"])
def test_an_incomplete_request_is_refused_with_408_after_the_time_out(
    clocked: ClockedServer, connect: Any, request_bytes: Any, sent: int
) -> None:
    connection = connect(clocked.port)
    start = request_bytes()[:sent]
    connection.send(start)
    clocked.wait_for_bytes(len(start))
    clocked.advance(IDLE + 1)
    response = connection.read_response()

    assert response.status == 408
    assert response.json == {"error": "The request did not arrive in time"}
    assert connection.is_closed_by_server()


def test_a_silent_connection_is_closed_after_the_time_out(
    clocked: ClockedServer, connect: Any
) -> None:
    connection = connect(clocked.port)
    clocked.wait_for_bytes(0)

    clocked.advance(IDLE + 1)

    assert connection.is_closed_by_server()


@pytest.mark.parametrize("count", [2, 3])
def test_a_connection_is_kept_alive_from_its_last_response_on(
    clocked: ClockedServer, connect: Any, request_bytes: Any, count: int
) -> None:
    connection = connect(clocked.port)
    clocked.wait_for_bytes(0)
    for _ in range(count):
        connection.send(request_bytes())
        assert connection.read_response().status == 200
        clocked.advance(KEEP_ALIVE * 0.9)

    clocked.advance(KEEP_ALIVE * 0.2)

    assert connection.is_closed_by_server()


@pytest.mark.parametrize("version", [b"1.1", b"1.0"])
def test_a_client_that_closes_its_sending_half_gets_the_response_of_a_slow_call(
    clocked: ClockedServer, connect: Any, request_bytes: Any, version: bytes
) -> None:
    connection = connect(clocked.port)
    sent = request_bytes("/functions/slow", b"{}").replace(b"1.1", version)
    connection.send(sent)
    connection.socket.shutdown(socket.SHUT_WR)
    clocked.wait_for_bytes(len(sent))
    clocked.go_on()

    response = connection.read_response()

    assert (response.status, response.json) == (200, {"result": "done"})
    assert connection.is_closed_by_server()


@pytest.mark.parametrize("sent", [20, -5], ids=["headers", "body"])
def test_a_client_that_waits_for_a_slow_response_is_not_timed_out(
    clocked: ClockedServer, connect: Any, request_bytes: Any, sent: int
) -> None:
    connection = connect(clocked.port)
    # The second request stops half way while the first is being answered.
    start = request_bytes("/functions/slow", b"{}") + request_bytes()[:sent]
    connection.send(start)
    clocked.wait_for_bytes(len(start))
    clocked.advance(IDLE + 1)
    clocked.go_on()

    assert connection.read_response().json == {"result": "done"}


def test_the_time_out_of_a_pipelined_body_starts_after_the_earlier_response(
    clocked: ClockedServer, connect: Any, request_bytes: Any
) -> None:
    connection = connect(clocked.port)
    start = request_bytes("/functions/slow", b"{}") + request_bytes()[:-5]
    connection.send(start)
    clocked.wait_for_bytes(len(start))
    clocked.advance(IDLE + 1)
    clocked.go_on()
    assert connection.read_response().status == 200

    clocked.advance(IDLE * 0.8)
    connection.send(request_bytes()[-5:])

    assert connection.read_response().json == {"result": 10}


def _get_with_a_body(request_bytes: Any) -> bytes:
    """The start of a GET with a body; it is answered before the body has arrived."""
    sent: bytes = request_bytes("/functions", None, "Content-Length: 9", method="GET")
    return sent


@pytest.mark.parametrize("after", ["", "a response", "a response to a part of a body"])
def test_a_connection_on_which_no_request_begins_is_closed(
    clocked: ClockedServer, connect: Any, request_bytes: Any, after: str
) -> None:
    connection = connect(clocked.port)
    first = b""
    if after:
        first = _get_with_a_body(request_bytes) if "body" in after else request_bytes()
        connection.send(first)
        assert connection.read_response().status == 200

    more = b"12345" if "body" in after else b"\r\n"
    connection.send(more)
    clocked.wait_for_bytes(len(first + more))
    clocked.advance(IDLE + 1)

    assert connection.is_closed_by_server()


def test_a_disconnect_cancels_the_earlier_of_two_pipelined_calls(
    clocked: ClockedServer, connect: Any, request_bytes: Any, tmp_path: Path
) -> None:
    params = {"name": "until_cancelled", "arguments": {"folder": str(tmp_path)}, "_meta": META}
    body = json.dumps(MESSAGE | {"params": params}).encode()
    connection = connect(clocked.port)
    connection.send(
        request_bytes("/mcp", body, *STATELESS[:-1], "Mcp-Name: until_cancelled") + request_bytes()
    )
    wait_until((tmp_path / "began").exists)

    connection.close()

    def is_cancelled() -> bool:
        # Closing looks like closing the sending half only, until that time-out is over.
        clocked.advance(HALF_CLOSE)
        return (tmp_path / "ended").exists()

    assert wait_until(is_cancelled)


def test_a_slow_body_is_not_timed_out_while_parts_of_it_arrive(
    clocked: ClockedServer, connect: Any, request_bytes: Any
) -> None:
    connection = connect(clocked.port)
    whole = request_bytes("/functions/add", b'{"x":7,"y":3}' + b" " * 4)
    connection.send(whole[:-4])
    clocked.wait_for_bytes(len(whole) - 4)
    for _ in range(4):
        clocked.advance(IDLE / 2)
        connection.send(b" ")
        clocked.wait_for_bytes(1)

    assert connection.read_response().json == {"result": 10}


def test_clients_that_disconnect_before_the_response_are_not_logged(
    serve: Any, connect: Any, request_bytes: Any
) -> None:
    sent = request_bytes("/mcp", json.dumps(MESSAGE).encode(), *STATELESS)
    with serve(EVERYTHING) as server:
        for _ in range(30):
            address = ("127.0.0.1", server.port)
            connections = [socket.create_connection(address, timeout=60) for _ in range(100)]
            for connection in connections:
                connection.sendall(sent)
            for connection in connections:
                select.select([connection], [], [], 60)
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
        connection = socket.create_connection(("127.0.0.1", server.port), timeout=60)
        connection.sendall(request_bytes("/functions/work", b"{}"))
        wait_until(running.exists)
        assert not stopped.exists()
        connection.shutdown(socket.SHUT_WR) if half_close else connection.close()

        assert wait_until(stopped.exists)
        if half_close:
            assert connection.recv(1) == b""
            connection.close()
