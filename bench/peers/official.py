"""`add` on the official SDK, over stdio."""

from __future__ import annotations

from mcp.server.mcpserver import MCPServer

server = MCPServer("bench")


@server.tool()
def add(x: int, y: int) -> int:
    """Add two numbers."""
    return x + y


if __name__ == "__main__":
    server.run(transport="stdio")
