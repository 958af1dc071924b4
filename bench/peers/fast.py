"""`add` on FastMCP, over stdio."""

from __future__ import annotations

from fastmcp import FastMCP

server = FastMCP("bench")


@server.tool
def add(x: int, y: int) -> int:
    """Add two numbers."""
    return x + y


if __name__ == "__main__":
    server.run(show_banner=False)
