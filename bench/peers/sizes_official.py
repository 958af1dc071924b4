"""Texts and records of a given size on the official SDK: over stdio, and as an ASGI application."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from mcp.server.mcpserver import MCPServer

from ..sizes_values import RECORD_BYTES, TEXT, fields

server = MCPServer("bench")


@dataclass
class Record:
    id: int
    name: str
    tags: list[str]
    price: float


@server.tool()
def text(size: int) -> str:
    """Return a text of *size* bytes."""
    return TEXT * (size // len(TEXT))


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
