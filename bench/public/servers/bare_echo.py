"""The tool of mcp-use's benchmark without an MCP library."""

from bare_server import bare_app


async def benchmark_echo(message: str) -> str:
    return message


app = bare_app({"benchmark_echo": benchmark_echo})
