"""The tool of mcp-use's benchmark on the official SDK 2.x, with JSON."""

from mcp.server.mcpserver import MCPServer

server = MCPServer("echo")


@server.tool()
async def benchmark_echo(message: str) -> str:
    """Return the message."""
    return message


app = server.streamable_http_app(json_response=True)
