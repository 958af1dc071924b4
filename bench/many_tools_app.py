"""`python -m bench.many_tools_app KIND COUNT` serves so many tools over stdio.

It imports nothing else, because its start is measured.
"""

from __future__ import annotations

import sys


def add(x: int, y: int) -> int:
    """Add two numbers."""
    return x + y


def serve(kind: str, count: int) -> None:
    names = ["add", *(f"add_{number}" for number in range(1, count))]
    {"ours": _ours, "mcp": _official, "fastmcp": _fast}[kind](names)


def _ours(names: list[str]) -> None:
    from answerback import App

    app = App("bench")
    for name in names:
        app.add_tool(add, name=name)
    app.run()


def _official(names: list[str]) -> None:
    from mcp.server.mcpserver import MCPServer

    server = MCPServer("bench")
    for name in names:
        server.add_tool(add, name=name)
    server.run(transport="stdio")


def _fast(names: list[str]) -> None:
    from fastmcp import FastMCP

    server = FastMCP("bench")
    for name in names:
        server.tool(add, name=name)
    server.run(show_banner=False)


if __name__ == "__main__":
    # `app.run` reads what is left: the command `mcp`.
    kind, count, *rest = sys.argv[1:]
    sys.argv[1:] = rest
    serve(kind, int(count))
