"""Servers that others wrote: the official SDKs, FastMCP, the old HTTP+SSE, and plain REST."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from queue import Queue
from typing import Any

import pytest
from tests.client.conftest import SERVED, http_server
from tests.conftest import serving
from tests.protocol.official_tools import MODULES, node_command

from answerback import Text, connect

SDK = """
from mcp.server.mcpserver import MCPServer

server = MCPServer("sdk")

@server.tool()
def add(x: int, y: int) -> int:
    return x + y

server.run()
"""
FASTMCP = """
from fastmcp import FastMCP

server = FastMCP("fastmcp")

@server.tool
def add(x: int, y: int) -> int:
    return x + y

server.run(show_banner=False)
"""
EVERYTHING = MODULES / "@modelcontextprotocol" / "server-everything" / "dist" / "index.js"


@pytest.mark.parametrize("source", [SDK, FASTMCP], ids=["sdk", "fastmcp"])
def test_a_python_server_of_others_is_called(source: str) -> None:
    with connect([sys.executable, "-c", source]) as server:
        tools = [tool.name for tool in server.tools()]
        reply = server.call("add", x=1, y=2)
        wrong = server.call("add", x="one")

    assert tools == ["add"]
    assert reply.data == 3
    assert not wrong.ok


def test_the_typescript_server_is_called_and_asks_its_questions() -> None:
    async def run() -> list[Any]:
        async with connect(
            node_command(EVERYTHING),
            elicit=lambda request: {},
            sample=lambda params: "a sampled text",
            roots=["/tmp"],
        ) as server:
            return [
                server.info.version.name,
                await server.call("echo", message="hello"),
                await server.call("trigger-sampling-request", prompt="hi", maxTokens=10),
                await server.call("get-structured-content", location="New York"),
                await server.resources(),
                await server.prompts(),
            ]

    version, echo, sampled, structured, resources, prompts = asyncio.run(run())

    assert version == "2025-11-25"
    assert echo.content[0].text == "Echo: hello"
    assert "a sampled text" in sampled.content[0].text
    assert structured.data["temperature"]
    assert resources
    assert prompts


class OldSseServer(BaseHTTPRequestHandler):
    """A server of 2024-11-05: a stream of events, and a page that takes messages."""

    streams: Queue[dict[str, Any]]

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        self.wfile.write(b"event: endpoint\ndata: /messages?session=1\n\n")
        self.wfile.flush()
        while (asked := self.streams.get()) is not None:
            answer = json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": self.result(asked)})
            self.wfile.write(f"event: message\ndata: {answer}\n\n".encode())
            self.wfile.flush()

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        is_endpoint = self.path == "/messages?session=1"
        self.send_response(202 if is_endpoint else 405)
        self.send_header("content-length", "0")
        self.end_headers()
        if is_endpoint and "id" in body:
            self.streams.put(body)

    def result(self, asked: dict[str, Any]) -> dict[str, Any]:
        if asked["method"] == "initialize":
            info = {"name": "old", "version": "1"}
            return {"protocolVersion": "2024-11-05", "capabilities": {}, "serverInfo": info}
        return {"content": [{"type": "text", "text": asked["params"]["name"]}]}

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is logged."""


@pytest.mark.parametrize("options", [{}, {"transport": "sse"}], ids=["found out", "named"])
def test_the_old_http_and_sse_is_spoken_where_the_server_has_nothing_else(
    options: dict[str, Any],
) -> None:
    class Handler(OldSseServer):
        streams: Queue[dict[str, Any]] = Queue()

    with http_server(Handler) as url, connect(f"{url}/sse", **options) as server:
        version = server.info.version.name
        reply = server.call("greet")
        Handler.streams.put(None)  # type: ignore[arg-type] # ends the stream

    assert version == "2024-11-05"
    assert reply.content == (Text("greet"),)


def test_plain_rest_is_called_and_listed() -> None:
    with serving(SERVED) as served, connect(served.url, transport="rest") as server:
        tools = [tool.name for tool in server.tools()]
        replies = [server.call("add", x=1, y=2), server.call("missing"), server.call("nowhere")]

    assert tools[0] == "add"
    assert replies[0].data == 3
    assert [reply.error and reply.error.code for reply in replies[1:]] == [
        "NOT_FOUND",
        "TOOL_NOT_FOUND",
    ]


class Pages(BaseHTTPRequestHandler):
    """Serves one tool at the page *path*, and nothing else."""

    path_of_tool = ""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        found = self.path == self.path_of_tool
        result: dict[str, Any] = {"content": [{"type": "text", "text": "sunny"}], "isError": False}
        answer = {"jsonrpc": "2.0", "id": 1, "result": result} if "jsonrpc" in body else result
        text = json.dumps(answer if found else {"detail": "Not Found"}).encode()
        self.send_response(200 if found else 404)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def do_GET(self) -> None:
        self.send_error(404)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is logged."""


@pytest.mark.parametrize("page", ["/weather", "/functions/weather", "/message"])
def test_plain_rest_finds_the_form_of_request_that_a_server_takes(page: str) -> None:
    class Handler(Pages):
        path_of_tool = page

    with http_server(Handler) as url, connect(url, transport="rest") as server:
        replies = [server.call("weather", city="Oslo") for _ in range(2)]
        tools = server.tools()

    assert [reply.content for reply in replies] == [(Text("sunny"),), (Text("sunny"),)]
    assert tools == []


def test_connection_failures_of_plain_rest_are_failed_replies() -> None:
    class Handler(Pages):
        path_of_tool = "/weather"

    with http_server(Handler) as url:
        connection = connect(url, transport="rest")
        server = connection.__enter__()
        first = server.call("weather")
    broken = server.call("weather")
    connection.__exit__(None, None, None)

    assert first.ok
    assert broken.error is not None
    assert broken.error.code == "UNAVAILABLE"


def test_no_transport_needs_httpx(tmp_path: Path, served_url: str) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import sys\n"
        "from answerback import App, connect\n"
        "with connect(App('empty')) as server:\n"
        "    server.tools()\n"
        f"with connect([sys.executable, {str(SERVED)!r}, 'mcp']) as server:\n"
        "    server.tools()\n"
        f"with connect({served_url!r}) as server:\n"
        "    server.tools()\n"
        "sys.exit('httpx2' in sys.modules or 'httpx' in sys.modules)\n"
    )

    ended = subprocess.run([sys.executable, str(program)], timeout=30)

    assert ended.returncode == 0
