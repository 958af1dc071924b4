"""The shop on the official SDK 1.x, without sessions and with JSON, as in the original."""

from mcp.server.fastmcp import FastMCP
from shop_tools import TOOLS

server = FastMCP("shop", stateless_http=True, json_response=True)
for tool in TOOLS:
    server.tool()(tool)
app = server.streamable_http_app()
