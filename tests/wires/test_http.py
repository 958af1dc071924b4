"""What `serve` says on the line: HTTP/1.1 as its callers must be able to rely on it."""

from __future__ import annotations

import asyncio
import json
import select
import socket
import threading
import time
from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from answerback import App
from answerback.wires.server.uvicorn_protocol import UvicornProtocol

EVERYTHING = Path(__file__).parent.parent / "apps" / "everything.py"
CALL = b'{"x":7,"y":3}'
ORIGIN = "https://app.example.com"


@pytest.fixture(scope="module")
def port(serve: Any) -> Iterator[int]:
    with serve(EVERYTHING, "--allow-origin", ORIGIN) as server:
        yield server.port


@pytest.fixture(scope="module")
def plain_port(serve: Any) -> Iterator[int]:
    """Without anything between the server and the application."""
    with serve(EVERYTHING) as server:
        yield server.port


def _raw(port: int, sent: bytes) -> tuple[bytes, bytes]:
    """The first lines and the rest of all that comes until the server hangs up."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as line:
        line.sendall(sent)
        said = b"".join(iter(lambda: line.recv(65536), b""))
    head, _, body = said.partition(b"\r\n\r\n")
    return head.lower(), body


def test_an_answer_says_when_it_was_made_and_how_long_it_is(
    plain_port: int, connect: Any, request_bytes: Any
) -> None:
    line = connect(plain_port)
    line.send(request_bytes())
    found = line.read()

    assert (found.status, found.json) == (200, {"result": 10})
    assert parsedate_to_datetime(found.headers["date"]).year >= 2026
    assert found.headers["content-type"] == "application/json"


def test_one_who_asks_to_close_is_answered_and_hung_up_on(
    plain_port: int, request_bytes: Any
) -> None:
    head, body = _raw(plain_port, request_bytes("/functions/add", CALL, "Connection: close"))

    assert b"connection: close" in head
    assert body == b'{"result":10}'


def test_an_answer_to_head_has_no_body(plain_port: int, request_bytes: Any) -> None:
    asked = request_bytes("/functions/add", None, "Connection: close", method="HEAD")

    head, body = _raw(plain_port, asked)

    assert head.startswith(b"http/1.1 405")
    assert body == b""


def test_requests_sent_at_once_are_answered_in_their_order(
    plain_port: int, connect: Any, request_bytes: Any
) -> None:
    line = connect(plain_port)
    bodies = [json.dumps({"x": number, "y": 0}).encode() for number in range(20)]
    line.send(b"".join(request_bytes("/functions/add", body) for body in bodies))

    assert [line.read().json["result"] for _ in bodies] == list(range(20))


def test_a_body_that_comes_in_pieces_is_waited_for(
    plain_port: int, connect: Any, request_bytes: Any
) -> None:
    line = connect(plain_port)
    whole = request_bytes()
    line.send(whole[:-5])
    other = connect(plain_port)
    other.send(whole)
    assert other.read().status == 200
    line.send(whole[-5:])

    assert line.read().json == {"result": 10}


def test_one_who_waits_for_a_go_ahead_gets_it(
    plain_port: int, connect: Any, request_bytes: Any
) -> None:
    line = connect(plain_port)
    whole = request_bytes("/functions/add", CALL, "Expect: 100-continue")
    line.send(whole[: -len(CALL)])
    go_ahead = line.read()
    line.send(CALL)

    assert go_ahead.status == 100
    assert line.read().json == {"result": 10}


def test_an_allowed_origin_is_told_so_with_every_answer(
    port: int, connect: Any, request_bytes: Any
) -> None:
    line = connect(port)
    line.send(request_bytes("/functions/add", CALL, f"Origin: {ORIGIN}"))
    called = line.read()
    message = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
    line.send(request_bytes("/mcp", message, f"Origin: {ORIGIN}", "Content-Type: application/json"))
    listed = line.read()

    assert (called.status, listed.status) == (200, 200)
    for found in (called, listed):
        assert found.headers["access-control-allow-origin"] == ORIGIN


def test_an_ended_session_is_told_without_body_and_length(
    plain_port: int, connect: Any, request_bytes: Any
) -> None:
    line = connect(plain_port)
    opening = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
        },
    }
    body = json.dumps(opening).encode()
    line.send(request_bytes("/mcp", body, "Content-Type: application/json"))
    id = line.read().headers["mcp-session-id"]
    line.send(request_bytes("/mcp", None, f"Mcp-Session-Id: {id}", method="DELETE"))
    ended = line.read()

    assert ended.status == 204
    assert "content-length" not in ended.headers


# Half-sent requests, to a server that does not wait long.


class Hasty(UvicornProtocol):
    idle_timeout = 0.3


@pytest.fixture(scope="module")
def hasty_port() -> Iterator[int]:
    app = App("hasty")

    @app.tool
    def add(x: int, y: int) -> int:
        return x + y

    @app.tool
    async def slow() -> str:
        await asyncio.sleep(3 * Hasty.idle_timeout)
        return "done"

    @app.tool
    async def until_left(notes: str) -> None:
        Path(notes, "began").touch()
        try:
            await asyncio.sleep(60)
        finally:
            Path(notes, "ended").touch()

    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(app.asgi(), http=Hasty, ws="none", log_level="warning")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(20)


@pytest.mark.parametrize("sent", [20, -5], ids=["head", "body"])
def test_a_request_that_stops_half_way_is_refused_after_a_while(
    hasty_port: int, request_bytes: Any, sent: int
) -> None:
    head, body = _raw(hasty_port, request_bytes()[:sent])

    assert head.startswith(b"http/1.1 408")
    assert json.loads(body) == {"error": "The request did not arrive in time"}


def test_one_who_says_nothing_at_all_is_hung_up_on(hasty_port: int) -> None:
    assert _raw(hasty_port, b"") == (b"", b"")


@pytest.mark.parametrize("sent", [20, -5], ids=["head", "body"])
def test_one_who_waits_for_a_long_answer_is_not_hung_up_on(
    hasty_port: int, connect: Any, request_bytes: Any, sent: int
) -> None:
    line = connect(hasty_port)
    # The second request stops half way while the first is being answered.
    line.send(request_bytes("/functions/slow", b"{}") + request_bytes()[:sent])

    assert line.read().json == {"result": "done"}


def test_a_body_that_had_to_wait_for_its_turn_has_all_its_time(
    hasty_port: int, connect: Any, request_bytes: Any
) -> None:
    line = connect(hasty_port)
    line.send(request_bytes("/functions/slow", b"{}") + request_bytes()[:-5])
    assert line.read().status == 200

    time.sleep(Hasty.idle_timeout * 0.8)  # The pause is what is tested.
    line.send(request_bytes()[-5:])

    assert line.read().json == {"result": 10}


def _asked_for_nothing(request_bytes: Any) -> bytes:
    """Answered at once, for nobody reads its body."""
    asked: bytes = request_bytes("/functions", None, "Content-Length: 9", method="GET")
    return asked


@pytest.mark.parametrize("after", ["", "answered", "body of what is answered"])
def test_one_who_sends_something_but_no_request_is_hung_up_on(
    hasty_port: int, connect: Any, request_bytes: Any, after: str
) -> None:
    line = connect(hasty_port)
    if after:
        line.send(_asked_for_nothing(request_bytes) if "body" in after else request_bytes())
        assert line.read().status == 200

    line.send(b"12345" if "body" in after else b"\r\n")

    assert line.ends()


def test_one_who_leaves_is_missed_by_what_he_asked_first_too(
    hasty_port: int, connect: Any, request_bytes: Any, tmp_path: Path
) -> None:
    params = {"name": "until_left", "arguments": {"notes": str(tmp_path)}, "_meta": META}
    body = json.dumps(MESSAGE | {"params": params}).encode()
    line = connect(hasty_port)
    line.send(
        request_bytes("/mcp", body, *STATELESS[:-1], "Mcp-Name: until_left") + request_bytes()
    )
    _appears(tmp_path / "began")

    line.close()

    _appears(tmp_path / "ended")


def _appears(path: Path) -> None:
    until = time.monotonic() + 10
    while not path.exists():
        assert time.monotonic() < until, path.name
        time.sleep(0.01)


def test_a_body_may_take_long_as_long_as_it_goes_on(
    hasty_port: int, connect: Any, request_bytes: Any
) -> None:
    line = connect(hasty_port)
    whole = request_bytes("/functions/add", b'{"x":7,"y":3}' + b" " * 4)
    line.send(whole[:-4])
    for _ in range(4):
        time.sleep(Hasty.idle_timeout / 2)  # The pauses are what is tested.
        line.send(b" ")

    assert line.read().json == {"result": 10}


# Many at once, and what comes after them.


def test_thousands_of_offers_to_upgrade_in_a_row_are_answered_as_if_they_were_none(
    plain_port: int, connect: Any, request_bytes: Any
) -> None:
    line = connect(plain_port)
    offers = request_bytes("/functions/add", CALL, "Connection: Upgrade", "Upgrade: h2c") * 5000
    threading.Thread(target=line.send, args=(offers,)).start()

    assert {line.read().status for _ in range(5000)} == {200}


def test_what_was_asked_before_garbage_is_still_answered(
    plain_port: int, request_bytes: Any
) -> None:
    head, body = _raw(plain_port, request_bytes() + b"\0\0garbage\r\n\r\n")

    assert head.startswith(b"http/1.1 200")
    assert b"connection: close" in head
    assert body == b'{"result":10}'


@pytest.mark.parametrize("before", [1, 3])
def test_what_was_asked_before_a_broken_body_is_still_answered(
    plain_port: int, connect: Any, request_bytes: Any, before: int
) -> None:
    broken = request_bytes("/functions/add", None, "Transfer-Encoding: chunked") + b"what?\r\n"
    line = connect(plain_port)
    line.send(request_bytes() * before + broken)

    assert [line.read().json for _ in range(before)] == [{"result": 10}] * before
    assert line.ends()


# What follows a body.

CHUNKED = "Transfer-Encoding: chunked"
PIECES = b"d\r\n%b\r\n0\r\n" % CALL


def test_what_follows_a_body_is_no_header(
    plain_port: int, connect: Any, request_bytes: Any
) -> None:
    line = connect(plain_port)
    tail = b"Content-Type: text/plain\r\nHost: evil.example\r\n\r\n"
    line.send(request_bytes("/functions/add", None, CHUNKED) + PIECES + tail)

    assert line.read().json == {"result": 10}


def test_what_follows_a_body_has_an_end(plain_port: int, connect: Any, request_bytes: Any) -> None:
    line = connect(plain_port)
    line.send(request_bytes("/functions/add", None, CHUNKED) + PIECES + b"X: ")

    with pytest.raises(OSError, match=r"reset|pipe"):
        line.send(b"a" * 30_000_000)


def test_a_body_in_the_smallest_pieces_is_read(
    plain_port: int, connect: Any, request_bytes: Any
) -> None:
    line = connect(plain_port)
    line.send(request_bytes("/functions/add", None, CHUNKED))
    line.send(b"1\r\n \r\n" * 100_000 + PIECES + b"\r\n")

    assert line.read().json == {"result": 10}


def test_an_offer_to_upgrade_from_an_old_client_is_answered_and_the_line_closed(
    plain_port: int, request_bytes: Any
) -> None:
    offer = request_bytes("/functions/add", CALL, "Connection: Upgrade", "Upgrade: h2c")

    head, body = _raw(plain_port, offer.replace(b"HTTP/1.1", b"HTTP/1.0"))

    assert b"connection: close" in head
    assert body == b'{"result":10}'


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


def test_callers_who_leave_before_the_answer_are_no_fault_to_be_logged(
    serve: Any, request_bytes: Any
) -> None:
    asked = request_bytes("/mcp", json.dumps(MESSAGE).encode(), *STATELESS)
    with serve(EVERYTHING) as server:
        for _ in range(30):
            address = ("127.0.0.1", server.port)
            lines = [socket.create_connection(address, timeout=20) for _ in range(100)]
            for line in lines:
                line.sendall(asked)
            for line in lines:
                select.select([line], [], [], 20)
                line.sendall(asked)
            # There is an answer that they did not read, so the server is told at once.
            for line in lines:
                line.close()
        _, body = _raw(server.port, request_bytes("/functions/add", CALL, "Connection: close"))
        server.process.terminate()
        said = server.stderr.read()

    assert body == b'{"result":10}'
    assert said == b""


def test_a_long_call_can_see_that_its_caller_has_left(
    serve: Any, request_bytes: Any, tmp_path: Path
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
        line = socket.create_connection(("127.0.0.1", server.port), timeout=20)
        line.sendall(request_bytes("/functions/work", b"{}"))
        _until_there(running)
        assert not stopped.exists()
        line.close()
        _until_there(stopped)


def _until_there(path: Path) -> None:
    end = time.monotonic() + 20
    while not path.exists():
        assert time.monotonic() < end, f"{path.name} never was"
        time.sleep(0.005)
