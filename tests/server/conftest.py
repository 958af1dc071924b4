"""Clients for the tests of the wires: requests in memory, and raw bytes over a connection."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from answerback import App

BOUND = 60.0


class Response(msgspec.Struct):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> str:
        """The error code in the headers; the body depends on the contract."""
        return self.headers.get("x-error-code", "")


class Connection:
    """A connection to a server, on which a test may send malformed HTTP."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=BOUND)
        self._file = self.socket.makefile("rb")

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def read_response(self, *, head: bool = False) -> Response:
        """Read the next response; *head* says that it has no body, because the method was HEAD."""
        status = int(self._file.readline().split()[1])
        headers: dict[str, str] = {}
        while line := self._file.readline().rstrip(b"\r\n"):
            name, _, value = line.decode("latin-1").partition(": ")
            headers[name.lower()] = value
        length = 0 if head else int(headers.get("content-length", 0))
        return Response(status, headers, self._file.read(length))

    def is_closed_by_server(self) -> bool:
        """Wait for the next byte, and tell whether the server closed the connection instead."""
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
    """A request as bytes; *headers* are whole lines, in their order."""
    lines = [f"{method} {path} HTTP/1.1"]
    lines += [] if host is None else [f"Host: {host}"]
    lines += headers
    lines += [] if body is None else [f"Content-Length: {len(body)}"]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + (body or b"")


def send_request(
    app: App,
    method: str,
    path: str,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    **options: Any,
) -> Response:
    """Send a request in memory; *options* are those of `app.asgi()`."""

    async def send() -> httpx.Response:
        transport = httpx.ASGITransport(app.asgi(**options), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return await client.request(method, path, content=body, headers=headers)

    response = asyncio.run(asyncio.wait_for(send(), BOUND))
    return Response(response.status_code, dict(response.headers), response.content)


@pytest.fixture(name="send_request")
def _send_request() -> Callable[..., Response]:
    return send_request


@pytest.fixture(name="request_bytes")
def _request_bytes() -> Callable[..., bytes]:
    return request


@pytest.fixture
def connect(request: pytest.FixtureRequest) -> Callable[[int], Connection]:
    """Connects to a port; the connection is closed at the end of the test."""

    def open_connection(port: int) -> Connection:
        connection = Connection(port)
        request.addfinalizer(connection.close)
        return connection

    return open_connection


@pytest.fixture
def still_served(everything_served: Any, connect: Any, request_bytes: Any) -> Any:
    """The server of `everything`; after the test it must still answer a call."""
    yield everything_served
    connection = connect(everything_served.port)
    connection.send(request_bytes())
    assert connection.read_response().body == b'{"result":10}'


@pytest.fixture
def waiting_app(tmp_path: Path) -> Path:
    """An app whose tools create the file `….running`, and return once the file itself exists."""
    path = tmp_path / "waiting.py"
    path.write_text(
        "import asyncio, os, pathlib, time\n"
        "from answerback import App\n"
        "app = App('waiting')\n"
        "@app.tool\n"
        "def wait(release: str) -> str:\n"
        "    pathlib.Path(release + '.running').touch()\n"
        "    while not os.path.exists(release):\n"
        "        time.sleep(0.005)\n"
        "    return 'done'\n"
        "@app.tool(inline=True)\n"
        "def wait_inline(release: str) -> str:\n"
        "    return wait(release)\n"
        "@app.tool\n"
        "async def wait_stubbornly(release: str) -> str:\n"
        "    pathlib.Path(release + '.running').touch()\n"
        "    while not os.path.exists(release):\n"
        "        try:\n"
        "            await asyncio.sleep(0.005)\n"
        "        except asyncio.CancelledError:\n"
        "            pass\n"
        "    return 'done'\n"
        "@app.tool(inline=True)\n"
        "def pid() -> int:\n"
        "    return os.getpid()\n"
        "app.run()\n"
    )
    return path


@pytest.fixture
def call(connect: Any, request_bytes: Any) -> Callable[..., Any]:
    """Makes one call on its own connection, and returns the JSON of the response."""

    def send(server: Any, name: str, **arguments: Any) -> Any:
        connection = connect(server.port)
        connection.send(request_bytes(f"/functions/{name}", json.dumps(arguments).encode()))
        response = connection.read_response()
        connection.close()
        return response.json

    return send
