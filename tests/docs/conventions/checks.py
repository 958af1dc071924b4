"""Registers the checks of the rows on the page about conventions, and helps them call apps."""

from __future__ import annotations

import asyncio
import logging
import os
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import httpx

from answerback import App, Contract

ROOT = Path(__file__).parent.parent.parent.parent
PACKAGE = ROOT / "src" / "answerback"
EXAMPLES = ROOT / "examples"
Check: TypeAlias = Callable[[], None]
CHECKS: dict[tuple[str, str], Check] = {}
"""The checks by section and by the beginning of the row's first cell, without backquotes."""


def rows_of(section: str) -> Callable[[str], Callable[[Check], Check]]:
    """Return the decorator `row` for the checks of a section: `@row("beginning of the cell")`."""

    def row(beginning: str) -> Callable[[Check], Check]:
        def register(check: Check) -> Check:
            assert (section, beginning) not in CHECKS
            CHECKS[section, beginning] = check
            return check

        return register

    return row


def app_of(*functions: Any, contract: str | Contract = "standard", **options: Any) -> App:
    """An app with *functions* as its tools."""
    app = App("conventions", contract=contract, **options)
    for function in functions:
        app.add_tool(function)
    return app


def example(name: str) -> App:
    """The app of a file in `examples/`."""
    app = runpy.run_path(str(EXAMPLES / name))["app"]
    assert isinstance(app, App)
    return app


def sent(app: App, name: str, dialect: Any = None, **arguments: Any) -> Any:
    """The JSON that the app sends for a call; without *dialect*, that of its HTTP body."""
    return app.write(asyncio.run(app.call(name, **arguments)), dialect)


def text_of(result: Any) -> Any:
    return result["content"][0]["text"]


def request(app: App, method: str, path: str, body: Any = None, **headers: str) -> httpx.Response:
    """The app's response to one HTTP request."""
    given = {name.replace("_", "-"): value for name, value in headers.items()}

    async def send() -> httpx.Response:
        transport = httpx.ASGITransport(app.asgi())
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return await client.request(method, path, json=body, headers=given)

    return asyncio.run(asyncio.wait_for(send(), 60))


def ask_mcp(app: App, method: str, version: str = "2025-06-18", /, **params: Any) -> Any:
    """The response to one JSON-RPC request at `/mcp`: its result, or the whole error response."""
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    response = request(app, "POST", "/mcp", message, MCP_Protocol_Version=version).json()
    return response.get("result", response)


def listed(app: App, name: str) -> Any:
    """A tool's entry in `tools/list`."""
    tools = ask_mcp(app, "tools/list")["tools"]
    return next(tool for tool in tools if tool["name"] == name)


class KeptLog(logging.Handler):
    """Keeps what a logger logs while the `with` statement runs."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.kept: list[Any] = []
        self._logger = logging.getLogger(name)

    def emit(self, record: logging.LogRecord) -> None:
        self.kept.append(record)

    def __enter__(self) -> list[Any]:
        self._logger.addHandler(self)
        return self.kept

    def __exit__(self, *exc_info: object) -> None:
        self._logger.removeHandler(self)


def run_python(*words: str, body: bytes = b"", **environ: str) -> bytes:
    """What `python WORDS` prints."""
    env = {**os.environ, **environ}
    command = [sys.executable, *words]
    done = subprocess.run(command, input=body, env=env, capture_output=True, timeout=60)
    return done.stdout


def over_cgi(name: str, path: str, body: bytes = b"{}") -> tuple[str, bytes]:
    """The head and the body of an example's CGI response."""
    environ = {"REQUEST_METHOD": "POST", "PATH_INFO": path, "CONTENT_LENGTH": str(len(body))}
    printed = run_python(str(EXAMPLES / name), "cgi", body=body, **environ)
    head, _, content = printed.partition(b"\r\n\r\n")
    return head.decode(), content
