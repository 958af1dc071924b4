"""Calls the tools of a program over a wire, for tests that compare the wires."""

from __future__ import annotations

import json
import os
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from tests.conftest import serving
from tests.forked import run
from tests.protocol.recording_client import over_http, over_stdio


class Failed(NamedTuple):
    """A call's error."""

    code: str
    message: str


class Wire(Protocol):
    """Calls a tool, and returns its result or a Failed."""

    def __call__(self, tool: str, arguments: dict[str, Any]) -> Any: ...


@contextmanager
def calls_over(name: str, program: Path, loaded: str = "answerback") -> Iterator[Wire]:
    """Yield the function that calls the tools of *program* over "rest", "stdio", "http" or "cgi".

    The module *loaded* is loaded before a CGI process is forked.
    """
    match name:
        case "cgi":
            yield _over_cgi(program, loaded)
        case "rest":
            with serving(program) as server:
                yield _over_rest(server.url)
        case "stdio":
            with over_stdio(program, "2025-11-25") as client:
                assert "result" in client.open()
                yield _over_mcp(client)
        case "http":
            with serving(program) as server, over_http(server.url, "2025-11-25") as client:
                assert "result" in client.open()
                yield _over_mcp(client)


def _over_cgi(program: Path, loaded: str) -> Wire:
    def call(tool: str, arguments: dict[str, Any]) -> Any:
        body = json.dumps(arguments).encode()
        request = {
            "REQUEST_METHOD": "POST",
            "PATH_INFO": f"/functions/{tool}",
            "CONTENT_TYPE": "application/json",
            "CONTENT_LENGTH": str(len(body)),
        }
        env = {**os.environ, **request}
        done = run([str(program), "cgi"], input=body, env=env, loaded=loaded)
        done.check_returncode()
        head, _, content = done.stdout.decode().partition("\r\n\r\n")
        answer = json.loads(content)
        code = re.search(r"X-Error-Code: (\w+)", head)
        return answer["result"] if code is None else Failed(code[1], answer["error"])

    return call


def _over_rest(url: str) -> Wire:
    def call(tool: str, arguments: dict[str, Any]) -> Any:
        body = json.dumps(arguments).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{url}/functions/{tool}", body, headers)
        try:
            with urllib.request.urlopen(request, timeout=20) as response:
                return json.load(response)["result"]
        except urllib.error.HTTPError as error:
            with error:
                return Failed(error.headers["X-Error-Code"], json.load(error)["error"])

    return call


def _over_mcp(client: Any) -> Wire:
    def call(tool: str, arguments: dict[str, Any]) -> Any:
        result = client.request("tools/call", {"name": tool, "arguments": arguments})["result"]
        if not result["isError"]:
            return result["structuredContent"]["result"]
        error = result["_meta"]["answerback/error"]
        return Failed(error["code"], result["content"][0]["text"])

    return call
