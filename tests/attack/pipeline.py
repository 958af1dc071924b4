"""Sends HTTP requests one after the other on a connection, without waiting for the responses."""

from __future__ import annotations

import socket
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

TIMEOUT = 60.0


@dataclass
class RawResponse:
    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


def open_connection(port: int) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def pipelined(port: int, requests: Sequence[bytes]) -> list[RawResponse]:
    """The response to each request, in order; fails if one is missing or malformed.

    A server may close the connection after a response that says so; the other requests are
    then sent on a new one.
    """
    responses: list[RawResponse] = []
    while len(responses) < len(requests):
        before = len(responses)
        responses += _on_one_connection(port, requests[before:])
        assert len(responses) > before, f"no response to {requests[before][:300]!r}"
    return responses


def _on_one_connection(port: int, requests: Sequence[bytes]) -> list[RawResponse]:
    found: list[RawResponse] = []
    with open_connection(port) as connection, connection.makefile("rb") as file:
        sender = threading.Thread(target=_send, args=(connection, requests), daemon=True)
        sender.start()
        for _ in requests:
            response = read_response(file)
            found.append(response)
            if response.headers.get("connection") == "close":
                break
        sender.join(TIMEOUT)
    return found


def _send(connection: socket.socket, requests: Sequence[bytes]) -> None:
    try:
        connection.sendall(b"".join(requests))
    except OSError:
        return  # The server closed the connection; the responses tell why.


def read_response(file: object) -> RawResponse:
    """Read one response; fails if its head or its length is malformed."""
    readline, read = file.readline, file.read  # type: ignore[attr-defined]  # a socket's file
    line = readline()
    assert line.startswith(b"HTTP/1.1 "), f"not a response: {line[:100]!r}"
    response = RawResponse(int(line.split()[1]))
    while header := readline().rstrip(b"\r\n"):
        name, colon, value = header.decode("latin-1").partition(": ")
        assert colon, f"not a header: {header!r}"
        response.headers[name.lower()] = value
    if response.headers.get("transfer-encoding") == "chunked":
        while size := int(readline(), 16):
            response.body += read(size)
            assert readline() == b"\r\n"
        readline()
    else:
        length = int(response.headers.get("content-length", "0"))
        response.body = read(length)
        assert len(response.body) == length, "the body is shorter than its length"
    return response
