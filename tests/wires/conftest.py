"""Two ways to speak HTTP to an App: in memory, and byte by byte over a socket."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable, Mapping
from typing import Any

import httpx
import msgspec
import pytest

from answerback import App

BOUND = 20.0


class Answer(msgspec.Struct):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> str:
        """The code; what the body says of it is the contract's affair."""
        return self.headers.get("x-error-code", "")


class Line:
    """One connection to a server, for those who do not keep to HTTP."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=BOUND)
        self._file = self.socket.makefile("rb")

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def read(self, *, head: bool = False) -> Answer:
        """The next answer; that to HEAD has no body."""
        status = int(self._file.readline().split()[1])
        headers: dict[str, str] = {}
        while line := self._file.readline().rstrip(b"\r\n"):
            name, _, value = line.decode("latin-1").partition(": ")
            headers[name.lower()] = value
        length = 0 if head else int(headers.get("content-length", 0))
        return Answer(status, headers, self._file.read(length))

    def ends(self) -> bool:
        """Whether the server has nothing more to say, and has hung up."""
        return self._file.read(1) == b""

    def close(self) -> None:
        self._file.close()
        self.socket.close()


def request(
    path: str = "/functions/add",
    body: bytes | None = b'{"x":7,"y":3}',
    *headers: str,
    method: str = "POST",
    host: str | None = "127.0.0.1",
) -> bytes:
    """One request as bytes; *headers* are whole lines, in their order."""
    lines = [f"{method} {path} HTTP/1.1"]
    lines += [] if host is None else [f"Host: {host}"]
    lines += headers
    lines += [] if body is None else [f"Content-Length: {len(body)}"]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + (body or b"")


def ask(
    app: App,
    method: str,
    path: str,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    **options: Any,
) -> Answer:
    """One request in memory; *options* are those of `app.asgi()`."""

    async def send() -> httpx.Response:
        transport = httpx.ASGITransport(app.asgi(**options), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return await client.request(method, path, content=body, headers=headers)

    found = asyncio.run(asyncio.wait_for(send(), BOUND))
    return Answer(found.status_code, dict(found.headers), found.content)


@pytest.fixture(name="ask")
def _ask() -> Callable[..., Answer]:
    return ask


@pytest.fixture(name="request_bytes")
def _request_bytes() -> Callable[..., bytes]:
    return request


@pytest.fixture
def connect(request: pytest.FixtureRequest) -> Callable[[int], Line]:
    """Opens a line to a port; the test's end closes it."""

    def open_line(port: int) -> Line:
        line = Line(port)
        request.addfinalizer(line.close)
        return line

    return open_line
