"""An HTTP server of the stateful era whose answers to tool calls a test decides."""

from __future__ import annotations

import json
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from typing import Any, ClassVar

INFO = {"name": "faulty", "version": "1"}


class Faulty(BaseHTTPRequestHandler):
    """A stateful server whose method *answer* sends the response of a tool call."""

    calls: list[str]
    sessions: list[str]
    answer: ClassVar[Callable[[Faulty, dict[str, Any]], None]]

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        method = asked["method"]
        session = self.headers.get("mcp-session-id")
        if method not in ("initialize", "server/discover") and session != self.sessions[-1]:
            self.send_body(404, b"unknown session")
        elif method == "initialize":
            self.sessions.append(f"s{len(self.sessions)}")
            result = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": INFO}
            self.send_result(asked, result)
        elif method == "tools/list":
            safe = {"name": "safe", "annotations": {"idempotentHint": True}}
            self.send_result(asked, {"tools": [safe, {"name": "unsafe"}]})
        elif method == "tools/call":
            self.calls.append(asked["params"]["name"])
            self.answer(asked)
        elif "id" in asked:
            self.send_body(400, b"no session")
        else:
            self.send_body(202)

    def do_GET(self) -> None:
        self.send_body(405)

    def do_DELETE(self) -> None:
        self.send_body(200)

    def send_result(self, asked: dict[str, Any], result: Any) -> None:
        message = {"jsonrpc": "2.0", "id": asked["id"], "result": result}
        self.send_body(200, json.dumps(message).encode(), "application/json")

    def send_body(
        self, status: int, body: bytes = b"", kind: str = "text/plain", **headers: str
    ) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("mcp-session-id", self.sessions[-1])
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is logged."""


def faulty(respond: Callable[[Faulty, dict[str, Any]], None]) -> type[Faulty]:
    """A server of its own for each test."""

    class Handler(Faulty):
        calls: list[str] = []  # noqa: RUF012 -- one list for each test's server
        sessions: list[str] = ["none"]  # noqa: RUF012 -- one list for each test's server
        answer = respond

    return Handler
