"""`answerback console TARGET` as a process, for tests."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from tests.conftest import Server

INITIALIZE: dict[str, Any] = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"elicitation": {"form": {}}},
    "clientInfo": {"name": "test", "version": "1"},
}


class Opened(Server):
    """The running console; *page* is its address with the token."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        super().__init__(process)
        found = re.search(r"http://\S+", self.announced)
        assert found is not None
        self.page = found.group()
        self.token = self.page.partition("#token=")[2]
        self.http = httpx.Client(
            base_url=self.url, headers={"X-Answerback-Console": self.token}, timeout=60
        )

    def message(self, method: str, id: int | None = 1, **params: Any) -> dict[str, Any]:
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
        return message if id is None else {**message, "id": id}

    def post(
        self, message: dict[str, Any], session: str = "", path: str = "/targets/0/mcp", **more: str
    ) -> httpx.Response:
        headers = {**({"Mcp-Session-Id": session} if session else {}), **more}
        return self.http.post(path, json=message, headers=headers)

    def initialize(self, path: str = "/targets/0/mcp", **headers: str) -> str:
        """Open a session with a target; return its id."""
        answer = self.post(self.message("initialize", **INITIALIZE), path=path, **headers)
        assert answer.status_code == 200, answer.text
        session = answer.headers["Mcp-Session-Id"]
        initialized = self.message("notifications/initialized", None)
        assert self.post(initialized, session, path, **headers).status_code == 202
        return str(session)

    def call(self, session: str, tool: str, /, **arguments: Any) -> httpx.Response:
        message = self.message("tools/call", 2, name=tool, arguments=arguments)
        return self.post(message, session)


def events(lines: Iterator[str]) -> Iterator[Any]:
    """Yield the messages of an event stream."""
    for line in lines:
        if line.startswith("data: {"):
            yield json.loads(line[6:])


@contextmanager
def opened(target: str | Path, *flags: str, cwd: Path | None = None) -> Iterator[Opened]:
    """Open a console without a browser, and end it afterwards."""
    command = [sys.executable, "-m", "answerback", "console", str(target), "--no-browser", *flags]
    process = subprocess.Popen(
        command,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
        cwd=cwd,
    )
    try:
        console = Opened(process)
        with console.http:
            yield console
    finally:
        process.terminate()
        process.communicate(timeout=60)


def stdio_command(path: Path) -> str:
    """The command that serves the App in a file over stdio."""
    return f"{shlex.quote(sys.executable)} -m answerback mcp {shlex.quote(str(path))}"
