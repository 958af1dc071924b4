"""The body of a request: malformed, too large, incomplete, or sent slowly."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any

import pytest

from answerback import App

SendRequest = Callable[..., Any]
MIB = 1024 * 1024


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b'{"x":7,"y":3} trailing',
        b"x=7&y=3",
        b"\xff\xfe",
        b'{"x":7,"y":3,"s":"\xff"}',
        '{"x":7,"y":3}'.encode("utf-16"),
        b"[" * 100_000,
        b'{"x":' * 100_000 + b"1" + b"}" * 100_000,
        b'{"x":NaN,"y":3}',
    ],
    ids=["cut", "trailing", "form", "bytes", "not-utf-8", "utf-16", "deep", "deep-object", "nan"],
)
def test_a_body_that_is_not_json_is_refused_with_400(
    still_served: Any, connect: Any, request_bytes: Any, body: bytes
) -> None:
    connection = connect(still_served.port)
    connection.send(request_bytes(body=body))
    response = connection.read_response()

    assert (response.status, response.error) == (400, "INVALID_JSON")
    assert response.body == b'{"error":"Invalid JSON body"}'


@pytest.mark.parametrize("body", [b"[7,3]", b"7", b"null", b'"add"'])
def test_a_json_body_that_is_not_an_object_is_refused_with_400(
    everything: App, send_request: SendRequest, body: bytes
) -> None:
    response = send_request(everything, "POST", "/functions/add", body)

    assert (response.status, response.error) == (400, "INVALID_ARGUMENTS")


def test_a_body_past_the_limit_is_refused_with_413(
    everything: App, send_request: SendRequest
) -> None:
    body = b'{"name":"%b"}' % (b"a" * 100)

    at = send_request(everything, "POST", "/functions/greet", body, max_body=len(body))
    past = send_request(everything, "POST", "/functions/greet", body, max_body=len(body) - 1)

    assert at.status == 200
    assert (past.status, past.error) == (413, "TOO_LARGE")
    assert past.json == {"error": "Body larger than 110 bytes"}


def test_a_client_that_sends_all_of_a_large_body_can_read_the_refusal(
    still_served: Any, connect: Any, request_bytes: Any
) -> None:
    connection = connect(still_served.port)
    connection.send(request_bytes(body=b"a" * 8 * MIB))
    response = connection.read_response()
    connection.send(request_bytes())

    assert (response.status, response.error) == (413, "TOO_LARGE")
    assert connection.read_response().body == b'{"result":10}'


def test_a_chunked_body_past_the_limit_is_refused_with_413(
    still_served: Any, connect: Any, request_bytes: Any
) -> None:
    connection = connect(still_served.port)
    connection.send(request_bytes("/functions/add", None, "Transfer-Encoding: chunked"))
    for _ in range(128):
        connection.send(b"10000\r\n" + b"a" * 65536 + b"\r\n")
    connection.send(b"0\r\n\r\n")

    assert connection.read_response().status == 413


def test_a_client_that_expects_100_continue_is_refused_before_it_sends(
    still_served: Any, connect: Any, request_bytes: Any
) -> None:
    connection = connect(still_served.port)
    connection.send(
        request_bytes("/functions/add", None, "Expect: 100-continue", f"Content-Length: {8 * MIB}")
    )

    assert connection.read_response().status == 413


def test_a_request_sent_byte_by_byte_is_read(
    still_served: Any, connect: Any, request_bytes: Any
) -> None:
    connection = connect(still_served.port)
    connection.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for byte in request_bytes("/functions/add", b'{"x":7,"y":3}'):
        connection.send(bytes([byte]))

    assert connection.read_response().body == b'{"result":10}'


@pytest.mark.parametrize("length", ["100", "99999999999"])
def test_a_client_that_disconnects_in_the_middle_of_a_body_gets_no_response(
    still_served: Any, connect: Any, request_bytes: Any, length: str
) -> None:
    connection = connect(still_served.port)
    connection.send(request_bytes("/functions/add", None, f"Content-Length: {length}") + b'{"x":7')
    connection.socket.shutdown(socket.SHUT_WR)

    assert connection.is_closed_by_server()


class AsgiRequest:
    """One request as an ASGI server makes it: the messages to read, and those that were sent."""

    def __init__(self, *messages: dict[str, Any]) -> None:
        self.unread = list(messages)
        self.sent: list[dict[str, Any]] = []
        self.unread_when_answered: int | None = None

    async def receive(self) -> dict[str, Any]:
        return self.unread.pop(0)

    async def send(self, message: Any) -> None:
        if not self.sent:
            self.unread_when_answered = len(self.unread)
        self.sent.append(message)

    def post(self, app: App, path: str, *headers: tuple[bytes, bytes], **options: Any) -> None:
        scope = {"type": "http", "method": "POST", "path": path, "headers": [*headers]}
        asyncio.run(app.asgi(**options)(scope, self.receive, self.send))


def body_message(body: bytes, *, more: bool = True) -> dict[str, Any]:
    return {"type": "http.request", "body": body, "more_body": more}


def test_a_body_that_was_announced_but_dropped_is_refused_with_400(
    everything: App,
) -> None:
    """Other ASGI servers drop the body of a request with an `Upgrade` header."""
    request = AsgiRequest(body_message(b"", more=False))

    request.post(everything, "/functions/greet", (b"content-length", b"13"))

    assert request.sent[0]["status"] == 400


def test_a_body_that_is_too_large_is_read_to_its_end_but_not_kept() -> None:
    """A client that is still sending does not read yet, so the server must read the rest."""
    alive = peak = 0

    class Chunk(bytes):
        def __new__(cls) -> Chunk:
            nonlocal alive, peak
            alive += 1
            peak = max(peak, alive)
            return super().__new__(cls, b"a" * 1000)

        def __del__(self) -> None:
            nonlocal alive
            alive -= 1

    class Sender(AsgiRequest):
        async def receive(self) -> dict[str, Any]:
            self.unread.pop()
            return body_message(Chunk(), more=bool(self.unread))

    request = Sender(*({} for _ in range(100)))
    request.post(App("empty"), "/functions/any", max_body=5000)

    assert request.sent[0]["status"] == 413
    assert request.unread_when_answered == 0
    assert peak <= 7


def test_no_tool_runs_for_a_client_that_disconnected() -> None:
    app = App("late")
    ran: list[int] = []
    app.add_tool(lambda: ran.append(1), name="run")
    request = AsgiRequest(body_message(b"{"), {"type": "http.disconnect"})

    request.post(app, "/functions/run")

    assert ran == []
    # Nobody reads this response, but middleware expects one.
    assert [message.get("body", b"") for message in request.sent] == [b"", b""]
