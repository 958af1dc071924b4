"""Lists that the client keeps: by time, until they change, and for one token alone."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest
from tests.client.conftest import SERVED, http_server
from tests.conftest import serving

from answerback import ToolError, connect

CHANGED = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {}}


class Lister(BaseHTTPRequestHandler):
    """A stateless server that keeps the tokens of those who read its list of tools."""

    ttl = 60_000
    scope = "private"
    readers: list[str]
    has_changed: threading.Event

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        method = asked["method"]
        if method == "subscriptions/listen":
            self.listen()
            return
        if method == "tools/list":
            self.readers.append(self.headers.get("authorization", ""))
        results: dict[str, Any] = {
            "server/discover": {
                "supportedVersions": ["2026-07-28"],
                "capabilities": {"tools": {"listChanged": True}},
            },
            "tools/list": {"tools": [{"name": "add", "inputSchema": {"type": "object"}}]},
        }
        common = {"resultType": "complete", "ttlMs": self.ttl, "cacheScope": self.scope}
        result = {**results[method], **common}
        body = json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def listen(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        self.has_changed.wait(60)
        self.wfile.write(f"data: {json.dumps(CHANGED)}\n\n".encode())

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is logged."""


def lister(**settings: Any) -> type[Lister]:
    own = {"readers": [], "has_changed": threading.Event(), **settings}
    return type("OwnLister", (Lister,), own)


class Tokens:
    """The token of the next request, which a test may change."""

    def __init__(self, token: str) -> None:
        self.token = token

    async def headers(self) -> Mapping[str, str]:
        return {"authorization": self.token}

    async def challenged(self, challenge: Any) -> Mapping[str, str]:
        return await self.headers()


def test_a_list_is_read_again_after_its_time_to_live() -> None:
    server = lister(ttl=300)

    with http_server(server) as url, connect(url, timeout=60) as remote:
        began = time.monotonic()
        while len(server.readers) < 2 and time.monotonic() - began < 60:
            remote.tools()
        seconds = time.monotonic() - began

    assert len(server.readers) == 2
    assert seconds >= 0.3


@pytest.mark.parametrize("scope", ["private", "public"])
def test_a_kept_list_is_never_used_for_another_token(scope: str) -> None:
    server = lister(scope=scope)
    tokens = Tokens("Bearer A")

    with http_server(server) as url, connect(url, auth=tokens, timeout=60) as remote:
        remote.tools()
        remote.tools()
        tokens.token = "Bearer B"
        remote.tools()
        remote.tools()
        tokens.token = "Bearer A"
        remote.tools()

    assert server.readers == ["Bearer A", "Bearer B", "Bearer A"]


def test_two_connections_do_not_share_a_list_even_if_it_is_public() -> None:
    server = lister(scope="public")

    with http_server(server) as url:
        for token in ("A", "B"):
            with connect(url, auth=token, timeout=60) as remote:
                remote.tools()

    assert server.readers == ["Bearer A", "Bearer B"]


def test_a_list_that_has_changed_is_read_again_before_its_time_is_over() -> None:
    server = lister()
    is_told = threading.Event()

    with (
        http_server(server) as url,
        connect(url, timeout=60, on_change=lambda change: is_told.set()) as remote,
    ):
        remote.tools()
        remote.tools()
        before = len(server.readers)
        server.has_changed.set()
        assert is_told.wait(60)
        remote.tools()

    assert (before, len(server.readers)) == (1, 2)


def test_the_last_list_is_used_while_a_server_is_down(caplog: pytest.LogCaptureFixture) -> None:
    tokens = Tokens("Bearer A")

    with (
        ExitStack() as running,
        connect(running.enter_context(http_server(lister(ttl=0))), auth=tokens) as remote,
    ):
        before = remote.tools()
        running.close()
        during, call = remote.tools(), remote.call("add")
        again = remote.tools()
        tokens.token = "Bearer B"
        with pytest.raises(ToolError) as refused:
            remote.tools()

    assert [tool.name for tool in before] == ["add"]
    assert during == again == before
    assert call.error is not None
    assert call.error.code == refused.value.code == "UNAVAILABLE"
    assert ["http://127.0.0.1" in record.getMessage() for record in caplog.records] == [True] * 2


def test_a_list_that_was_never_read_from_a_server_that_is_down_is_an_error() -> None:
    with (
        ExitStack() as running,
        connect(running.enter_context(http_server(lister()))) as remote,
    ):
        running.close()
        with pytest.raises(ToolError) as refused:
            remote.tools()

    assert refused.value.code == "UNAVAILABLE"


def test_the_last_list_is_used_while_a_server_with_sessions_is_down() -> None:
    with ExitStack() as running:
        url = f"{running.enter_context(serving(SERVED)).url}/mcp"
        with connect(url, version="2025-11-25") as remote:
            before = [tool.name for tool in remote.tools()]
            running.close()
            calls = [remote.call("add", x=1, y=2).ok for _ in range(2)]
            after = [tool.name for tool in remote.tools()]

    assert calls == [False, False]
    assert after == before
