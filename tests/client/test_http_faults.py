"""HTTP servers that fail: broken bodies, streams that break off, lost sessions, refused logins."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest
from tests.client.conftest import http_server
from tests.client.faulty_http import Faulty, faulty

from answerback import connect
from answerback.client import ConnectError, streamable_http


def cut_off(server: Faulty, asked: dict[str, Any]) -> None:
    """Announce a longer body than is sent, and close the connection."""
    server.send_response(200)
    server.send_header("content-type", "application/json")
    server.send_header("content-length", "1000")
    server.end_headers()
    server.wfile.write(b'{"jsonrpc": "2.0", "id":')
    server.close_connection = True


def end_stream(server: Faulty, asked: dict[str, Any]) -> None:
    """End a stream of events without a result."""
    server.send_body(200, b": nothing\n\n", "text/event-stream")


def refuse(server: Faulty, asked: dict[str, Any]) -> None:
    server.send_body(503, b"<h1>Service Unavailable</h1>", "text/html")


def send_garbage(server: Faulty, asked: dict[str, Any]) -> None:
    server.send_body(200, b'{"jsonrpc": "2.0"', "application/json")


@pytest.mark.parametrize("fault", [cut_off, end_stream, refuse, send_garbage])
def test_a_fault_is_a_failed_reply_and_only_safe_tools_are_called_again(fault: Any) -> None:
    server = faulty(fault)

    with http_server(server) as url, connect(url, timeout=60) as remote:
        remote.tools()
        replies = [remote.call("unsafe"), remote.call("safe")]

    assert [reply.error and reply.error.code for reply in replies] == ["UNAVAILABLE"] * 2
    assert all(reply.error and reply.error.details["may_have_run"] for reply in replies)
    assert server.calls.count("unsafe") == 1
    assert server.calls.count("safe") == (1 if fault is refuse else 2)


def lose_session(server: Faulty, asked: dict[str, Any]) -> None:
    """Answer; the test makes the server forget its sessions."""
    server.send_result(asked, {"content": []})


def test_a_lost_session_is_opened_again_and_any_tool_is_called_once() -> None:
    """The status 404 says that the call did not run, so that it is sent again."""
    server = faulty(lose_session)

    with http_server(server) as url, connect(url, timeout=60) as remote:
        server.sessions.append("another")
        safe = remote.call("safe")
        server.sessions.append("yet another")
        unsafe = remote.call("unsafe")
        after = remote.call("unsafe")

    assert safe.ok, safe.error
    assert unsafe.ok, unsafe.error
    assert after.ok, after.error
    assert server.calls == ["safe", "unsafe", "unsafe"]


def test_a_stream_that_breaks_off_is_resumed_by_the_id_of_its_last_event() -> None:
    resumed: list[str] = []
    waiting: list[dict[str, Any]] = []

    def begin(server: Faulty, asked: dict[str, Any]) -> None:
        waiting.append(asked)
        server.send_body(200, b"id: e7\nretry: 10\ndata:\n\n", "text/event-stream")

    class Handler(faulty(begin)):  # type: ignore[misc] # a class that is made for this test
        def do_GET(self) -> None:  # noqa: N802 -- the name that http.server calls
            resumed.append(self.headers.get("last-event-id", ""))
            if not resumed[-1]:
                self.send_body(405)
                return
            result = {"content": [{"type": "text", "text": "resumed"}]}
            message = {"jsonrpc": "2.0", "id": waiting[0]["id"], "result": result}
            self.send_body(200, f"data: {json.dumps(message)}\n\n".encode(), "text/event-stream")

    with http_server(Handler) as url, connect(url, timeout=60) as remote:
        reply = remote.call("unsafe")

    assert reply.ok, reply.error
    assert resumed == ["", "e7"]
    assert Handler.calls == ["unsafe"]


def ending_streams() -> Any:
    """A server that ends every stream at once, after an event with a new id and `retry: 0`."""
    event = b'id: e%d\nretry: 0\ndata: {"jsonrpc":"2.0","method":"notifications/x"}\n\n'

    def begin(server: Faulty, asked: dict[str, Any]) -> None:
        server.send_body(200, event % 0, "text/event-stream")

    class Handler(faulty(begin)):  # type: ignore[misc] # a class that is made for this test
        resumed: list[str] = []  # noqa: RUF012 -- one list for each test's server

        def do_GET(self) -> None:  # noqa: N802 -- the name that http.server calls
            self.resumed.append(self.headers.get("last-event-id", ""))
            if self.resumed[-1]:
                self.send_body(200, event % len(self.resumed), "text/event-stream")
            else:
                self.send_body(405)

    return Handler


def test_a_stream_that_ends_at_once_is_resumed_at_most_twice_a_second() -> None:
    handler = ending_streams()

    with http_server(handler) as url, connect(url, timeout=1.2) as remote:
        reply = remote.call("unsafe")

    assert reply.error is not None
    assert reply.error.code == "TIMED_OUT"
    assert len(handler.resumed) <= 4


def test_the_stream_of_a_call_is_not_resumed_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    # It is 500, half a second each.
    monkeypatch.setattr(streamable_http, "_MAX_RESUMES", 3)
    handler = ending_streams()

    with http_server(handler) as url, connect(url, timeout=None) as remote:
        reply = remote.call("unsafe")

    assert reply.error is not None
    assert reply.error.code == "UNAVAILABLE"
    assert [each for each in handler.resumed if each] == ["e0", "e2", "e3"]


class Login:
    """Logs in when the server asks for it; raises when it asks again."""

    def __init__(self) -> None:
        self.token = ""
        self.asked: list[int] = []

    async def headers(self) -> Mapping[str, str]:
        return {"authorization": f"Bearer {self.token}"} if self.token else {}

    async def challenged(self, challenge: Any) -> Mapping[str, str]:
        self.asked.append(challenge.status)
        if self.token:
            raise PermissionError("the token is refused")
        assert challenge.headers["www-authenticate"] == "Bearer"
        self.token = "good"
        return await self.headers()


def protected(token: str) -> type[Faulty]:
    class Handler(faulty(lose_session)):  # type: ignore[misc] # a class that is made for this test
        def do_POST(self) -> None:  # noqa: N802 -- the name that http.server calls
            if self.headers.get("authorization") == f"Bearer {token}":
                super().do_POST()
                return
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(401)
            self.send_header("www-authenticate", "Bearer")
            self.send_header("content-length", "0")
            self.end_headers()

    return Handler


def test_auth_answers_a_401_and_the_request_is_sent_again() -> None:
    login = Login()

    with http_server(protected("good")) as url, connect(url, auth=login) as remote:
        reply = remote.call("safe")

    assert reply.ok, reply.error
    assert login.asked == [401]


def test_a_login_that_fails_is_a_failed_reply() -> None:
    login = Login()
    server = protected("good")

    with http_server(server) as url, connect(url, auth=login) as remote:
        login.token = "expired"
        reply = remote.call("safe")

    assert reply.error is not None
    assert (reply.error.code, reply.error.details) == ("UNAUTHENTICATED", {"may_have_run": False})
    assert "the token is refused" in reply.error.message


def test_a_server_that_wants_a_login_is_an_error_without_auth() -> None:
    async def run(url: str) -> None:
        async with connect(url):
            pass

    with http_server(protected("good")) as url, pytest.raises(ConnectError, match="401"):
        asyncio.run(run(url))
