"""Texts and records of a given size on the official SDK: over stdio, and as an ASGI application."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from mcp.server.mcpserver import MCPServer

from ..sizes_values import RECORD_BYTES, fields, repeated

server = MCPServer("bench")


@dataclass
class Record:
    id: int
    name: str
    tags: list[str]
    price: float


@dataclass
class Note:
    id: int
    text: str


@server.tool()
def text(size: int) -> str:
    """Return a text of *size* bytes."""
    return repeated(size)


@server.tool()
def note(size: int) -> Note:
    """Return a record with a text of *size* bytes."""
    return Note(1, repeated(size))


@server.tool()
def length(text: str) -> int:
    """Return the length of *text*."""
    return len(text)


@server.tool()
def records(size: int) -> list[Record]:
    """Return records of about *size* bytes."""
    return [Record(**fields(number)) for number in range(size // RECORD_BYTES)]


if __name__ == "__main__":
    server.run(transport="stdio")
else:
    logging.disable(logging.CRITICAL)
    # JSON costs the SDK less than its default, a stream of events.
    app = server.streamable_http_app(json_response=True)
