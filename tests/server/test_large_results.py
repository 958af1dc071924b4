"""Results that are sent in pieces, because joining them would copy them."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Server, serving

FILE = """
from answerback import App

app = App("large")

@app.tool
def text(size: int) -> str:
    return "é\\n" * (size // 2)

@app.tool
def record(size: int) -> dict[str, str]:
    return {"text": "é\\n" * (size // 2)}

if __name__ == "__main__":
    app.run()
"""
SIZES = [30, 40_000, 400_000]
VERSION = "2025-11-25"
BATCH_VERSION = "2025-03-26"
"""The last version with batches; it has no structured content."""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("large") / "large.py"
    path.write_text(FILE)
    return path


@pytest.fixture(scope="module")
def server(path: Path) -> Iterator[Server]:
    with serving(path) as server:
        yield server


def call(tool: str, size: int) -> dict[str, Any]:
    params = {"name": tool, "arguments": {"size": size}}
    return {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}


def initialize(version: str) -> dict[str, Any]:
    client = {"name": "test", "version": "1"}
    params = {"protocolVersion": version, "capabilities": {}, "clientInfo": client}
    return {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}


def over_stdio(path: Path, message: Any, version: str = VERSION) -> Any:
    lines = [json.dumps(each) for each in (initialize(version), message)]
    command = [sys.executable, str(path), "mcp"]
    sent = "".join(line + "\n" for line in lines).encode()
    done = subprocess.run(command, input=sent, capture_output=True, timeout=30, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def over_http(
    server: Server, message: Any, version: str = VERSION, accept: str = "application/json, */*"
) -> Any:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    headers = {
        "Content-Type": "application/json",
        "Accept": accept,
        "MCP-Protocol-Version": version,
    }
    connection.request("POST", "/mcp", json.dumps(message), headers)
    body = connection.getresponse().read()
    connection.close()
    last = body.partition(b"data: ")[2] if b"data: " in body else body
    return json.loads(last)


def expected(tool: str, size: int) -> dict[str, Any]:
    text = "é\n" * (size // 2)
    data = {"result": text} if tool == "text" else {"text": text}
    shown = text if tool == "text" else json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    content = [{"type": "text", "text": shown}]
    result = {"content": content, "structuredContent": data, "isError": False}
    return {"jsonrpc": "2.0", "id": 7, "result": result}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("tool", ["text", "record"])
def test_a_result_of_any_size_is_one_line_on_stdio(path: Path, tool: str, size: int) -> None:
    assert over_stdio(path, call(tool, size)) == expected(tool, size)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("tool", ["text", "record"])
def test_a_result_of_any_size_is_one_body_over_http(server: Server, tool: str, size: int) -> None:
    assert over_http(server, call(tool, size)) == expected(tool, size)


@pytest.mark.parametrize("size", SIZES)
def test_a_result_of_any_size_is_one_event_of_a_stream(server: Server, size: int) -> None:
    response = over_http(server, call("text", size), accept="text/event-stream")

    assert response == expected("text", size)


def test_large_results_are_part_of_the_response_to_a_batch(path: Path, server: Server) -> None:
    batch = [call("text", 400_000), call("record", 400_000)]

    responses = [expected("text", 400_000), expected("record", 400_000)]
    for response in responses:
        del response["result"]["structuredContent"]
    assert over_stdio(path, batch, BATCH_VERSION) == responses
    assert over_http(server, batch, BATCH_VERSION) == responses
