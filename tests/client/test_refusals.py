"""Responses with an HTTP status instead of an answer: what errors say, and what they leave out."""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
from base64 import b64encode
from http.server import BaseHTTPRequestHandler
from typing import Any, Literal

import pytest
from tests.client.conftest import http_server, stream_server
from tests.client.faulty_http import Faulty, faulty

from answerback import Text, connect
from answerback.client import ConnectError
from answerback.client.login import Login

TOKEN = "s3cr3t/t0ken+42"
PASSWORD = "hunter2hunter2"
BASIC = b64encode(f"anna:{PASSWORD}".encode()).decode()


def echo_of(request: BaseHTTPRequestHandler) -> str:
    """The credentials of a request, as a page for developers shows them."""
    names = ("authorization", "x-api-key", "cookie")
    return f"POST {request.path} {[each for name in names if (each := request.headers[name])]}"


class Echo(BaseHTTPRequestHandler):
    """Refuses each request, with the request in the body."""

    status = 500

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.do_GET()

    def do_GET(self) -> None:
        body = echo_of(self).encode()
        self.send_response(self.status)
        self.send_header("content-type", "text/plain")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is logged."""


class Bearer:
    """Gives each request the token, and no other one if it is refused."""

    async def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {TOKEN}"}

    async def challenged(self, challenge: Any) -> dict[str, str]:
        raise PermissionError(challenge.body.decode())


CREDENTIALS: dict[str, tuple[str, dict[str, Any]]] = {
    "a header": ("", {"headers": {"Authorization": f"Bearer {TOKEN}"}}),
    "a header with a secret's name": ("", {"headers": {"X-Api-Key": TOKEN}}),
    "a cookie": ("", {"headers": {"Cookie": f"theme=dark; sid={TOKEN}"}}),
    "a token": ("", {"auth": TOKEN}),
    "a login": ("", {"auth": Bearer()}),
    "a parameter": (f"/mcp?api_key={TOKEN}", {}),
}


@pytest.mark.parametrize("status", [403, 500])
@pytest.mark.parametrize("name", CREDENTIALS)
def test_an_error_does_not_show_the_credentials_that_the_server_echoes(
    name: str, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    path, options = CREDENTIALS[name]
    handler = type("Refuses", (Echo,), {"status": status})

    with http_server(handler) as url, pytest.raises(ConnectError) as refused:
        connect(url + path, **options).__enter__()

    said = str(refused.value).partition(": ")[2]
    assert "***" in said or said == "the token does not allow this (HTTP status 403)"
    assert TOKEN not in f"{refused.value} {caplog.text}"


def test_a_token_without_a_scope_is_refused_with_the_scopes_that_it_needs() -> None:
    class Handler(Echo):
        status = 403

        def send_response(self, code: int, message: str | None = None) -> None:
            super().send_response(code, message)
            scopes = f"notes notes:delete {self.headers['authorization'].split()[1]}"
            challenge = f'Bearer error="insufficient_scope", scope="{scopes}"'
            self.send_header("www-authenticate", challenge)

    with http_server(Handler) as url, pytest.raises(ConnectError) as refused:
        connect(url, auth=TOKEN).__enter__()

    assert "it needs the scopes notes notes:delete" in str(refused.value)
    assert TOKEN not in str(refused.value)


def test_a_login_at_a_server_that_wants_a_key_says_how_to_give_it() -> None:
    handler = type("WantsKey", (Echo,), {"status": 401})

    with http_server(handler) as url, pytest.raises(ConnectError) as refused:
        connect(url, auth=Login()).__enter__()

    assert "does not say where to log in; if you have a key or a token" in str(refused.value)


def test_the_password_of_a_url_is_masked_in_each_form() -> None:
    class Handler(Echo):
        def do_POST(self) -> None:
            self.path = f"/ no user anna:{PASSWORD}"
            super().do_POST()

    with http_server(Handler) as url, pytest.raises(ConnectError) as refused:
        connect(url.replace("//", f"//anna:{PASSWORD}@") + "/mcp").__enter__()

    said = str(refused.value).partition("HTTP status 500")[2]
    assert "no user anna:***" in said
    assert PASSWORD not in said
    assert BASIC not in said


def answer_error(handler: Faulty, asked: dict[str, Any]) -> None:
    error = {"code": -32603, "message": echo_of(handler), "data": {"sent": echo_of(handler)}}
    body = json.dumps({"jsonrpc": "2.0", "id": asked["id"], "error": error})
    handler.send_body(200, body.replace("/", "\\/").encode(), "application/json")


def answer_failed(handler: Faulty, asked: dict[str, Any]) -> None:
    text = {"type": "text", "text": echo_of(handler)}
    handler.send_result(asked, {"content": [text], "isError": True})


def answer_no_message(handler: Faulty, asked: dict[str, Any]) -> None:
    handler.send_body(200, echo_of(handler).encode())


@pytest.mark.parametrize("respond", [answer_error, answer_failed, answer_no_message])
def test_a_failed_reply_does_not_show_the_credentials_that_the_server_echoes(
    respond: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    options: dict[str, Any] = {"headers": {"Authorization": f"Bearer {TOKEN}"}}

    with http_server(faulty(respond)) as url, connect(url, timeout=60, **options) as server:
        reply = server.call("unsafe")

    assert reply.error is not None
    assert TOKEN not in f"{reply!r} {reply.error.details} {reply.raw} {caplog.text}"


def test_the_result_of_a_tool_is_not_changed() -> None:
    def respond(handler: Faulty, asked: dict[str, Any]) -> None:
        handler.send_result(asked, {"content": [{"type": "text", "text": f"key {TOKEN}"}]})

    with http_server(faulty(respond)) as url, connect(url, auth=TOKEN) as server:
        reply = server.call("unsafe")

    assert reply.content == (Text(f"key {TOKEN}"),)


def test_headers_without_a_secrets_name_do_not_change_a_failed_reply() -> None:
    tenant = "tenant-4711-of-acme"

    def respond(handler: Faulty, asked: dict[str, Any]) -> None:
        meta = {"answerback/error": {"code": "NOT_FOUND"}, "seen": tenant}
        text = {"type": "text", "text": "no such answerback"}
        handler.send_result(asked, {"content": [text], "isError": True, "_meta": meta})

    headers = {"X-Application": "answerback", "X-Tenant": tenant}
    with http_server(faulty(respond)) as url, connect(url, headers=headers) as server:
        reply = server.call("unsafe")

    assert reply.error is not None
    assert (reply.error.code, reply.error.message) == ("NOT_FOUND", "no such answerback")
    assert reply.raw["_meta"]["seen"] == tenant


def test_a_failed_page_of_plain_rest_does_not_show_the_credentials_that_it_echoes() -> None:
    async def run(url: str) -> Any:
        async with connect(url, transport="rest", headers={"X-Api-Key": TOKEN}) as server:
            return await server.call("tool")

    with http_server(Echo) as url:
        reply = asyncio.run(run(url))

    assert reply.error is not None
    assert "***" in f"{reply!r}{reply.raw}"
    assert TOKEN not in f"{reply!r}{reply.raw}"


@pytest.mark.parametrize("transport", ["http", "sse", "rest"])
def test_a_redirect_to_another_host_says_where_it_leads_and_that_it_is_not_followed(
    transport: Any,
) -> None:
    class Handler(Echo):
        status = 307

        def end_headers(self) -> None:
            self.send_header("location", "https://anna:pw@evil.example/mcp?token=x")
            super().end_headers()

    with http_server(Handler) as url:
        try:
            with connect(f"{url}/mcp", transport=transport) as server:
                reply = server.call("tool")
            assert reply.error is not None
            text = reply.error.message
        except ConnectError as refused:
            text = str(refused)

    assert "HTTP status 307: a redirect to https://evil.example/mcp, which is not followed" in text
    assert "because credentials would be sent to another host" in text


def test_a_redirect_that_would_change_the_method_says_so() -> None:
    class Handler(Echo):
        status = 302

        def end_headers(self) -> None:
            self.send_header("location", "/login")
            super().end_headers()

    with http_server(Handler) as url, pytest.raises(ConnectError) as refused:
        connect(f"{url}/mcp").__enter__()

    assert f"HTTP status 302: a redirect to {url}/login, which is not followed" in str(
        refused.value
    )


def test_a_redirect_to_no_url_is_an_error_of_the_connection() -> None:
    class Handler(Echo):
        status = 307

        def end_headers(self) -> None:
            self.send_header("location", "http://[evil/")
            super().end_headers()

    with http_server(Handler) as url, pytest.raises(ConnectError) as refused:
        connect(f"{url}/mcp").__enter__()

    assert "a redirect to something that is not an HTTP URL" in str(refused.value)


@pytest.mark.parametrize("status", [404, 405])
def test_a_url_without_a_path_that_has_no_mcp_gets_advice(status: int) -> None:
    handler = type("Refuses", (Echo,), {"status": status})

    with http_server(handler) as url, pytest.raises(ConnectError) as refused:
        connect(url, headers={"X-Api-Key": TOKEN}).__enter__()

    assert f"try {url}/mcp" in str(refused.value)
    assert "the rest transport" in str(refused.value)


class Pages(Echo):
    """A server without MCP, which has one function."""

    def do_GET(self) -> None:
        self._send(200, [{"name": "add", "inputSchema": {"type": "object"}}])

    def do_POST(self) -> None:
        given = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.path == "/add":
            self._send(200, {"result": given["x"] + given["y"]})
        else:
            self._send(404, {"error": "no page"})

    def _send(self, status: int, found: Any) -> None:
        body = json.dumps(found).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def run_command(*arguments: str) -> int:
    return subprocess.run([sys.executable, "-m", "answerback", *arguments], timeout=30).returncode


def test_the_command_line_calls_and_lists_a_server_without_mcp(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with http_server(Pages) as url:
        statuses = [
            run_command("call", url, "add", "x=1", "y=2"),
            run_command("call", url, "add", "x=1", "y=2", "--transport", "rest"),
            run_command("list", url, "--transport", "rest"),
            run_command("call", "calculator.py", "add", "--transport", "rest"),
        ]

    out, err = capfd.readouterr()
    assert statuses == [69, 0, 0, 2]
    assert f"try {url}/mcp, or the rest transport" in err
    assert out == '{"result":3}\nadd\n'
    assert "--transport is for a server" in err


BROKEN = {
    "the status line": f"HTTP/1.1 {'no' * 32} {TOKEN}\r\n\r\n",
    "a header": f"HTTP/1.1 200 OK\r\n{TOKEN}\r\n\r\n",
    "the length": f"HTTP/1.1 200 OK\r\nContent-Length: {TOKEN}\r\n\r\n",
    "the encoding": f"HTTP/1.1 200 OK\r\nContent-Encoding: {TOKEN}\r\n\r\n",
    "the size of a chunk": f"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{TOKEN}\r\n",
}


@pytest.mark.parametrize("transport", ["http", "rest"])
@pytest.mark.parametrize("answer", BROKEN.values(), ids=BROKEN)
def test_an_error_does_not_show_the_credentials_that_a_malformed_response_repeats(
    answer: str, transport: Literal["http", "rest"]
) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer.encode())
        writer.close()

    async def run() -> None:
        async with (
            stream_server(serve) as port,
            connect(f"http://127.0.0.1:{port}", auth=TOKEN, transport=transport),
        ):
            pass

    with pytest.raises(ConnectError) as raised:
        asyncio.run(run())

    assert "***" in str(raised.value)
    assert TOKEN[:4] not in str(raised.value)


class Flooding(Faulty):
    """Refuses calls with a body that ends only when nobody reads it any more."""

    sent = 0

    def refuse(self, asked: dict[str, Any]) -> None:
        self.send_response(500)
        self.send_header("content-type", "text/plain")
        self.send_header("content-length", str(60 * 1024 * 1024))
        self.end_headers()
        try:
            for _ in range(60):
                self.wfile.write(b"no " * 349_525 + b"!")
                type(self).sent += 1
        except OSError:
            self.close_connection = True


def test_a_refusal_is_read_only_as_far_as_it_is_shown() -> None:
    class Handler(Flooding):
        calls: list[str] = []  # noqa: RUF012 -- one list for this test's server
        sessions: list[str] = ["none"]  # noqa: RUF012 -- one list for this test's server
        answer = Flooding.refuse

    with http_server(Handler) as url, connect(url, timeout=60) as remote:
        reply = remote.call("tool")

    assert reply.error is not None
    assert reply.error.details["status"] == 500
    assert reply.error.message.startswith("the server answered with HTTP status 500: no no")
    assert Handler.sent < 40
