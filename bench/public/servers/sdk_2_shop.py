"""The shop on the official SDK 2.x, without sessions and with JSON."""

from mcp.server.mcpserver import MCPServer
from shop_tools import TOOLS

server = MCPServer("shop")
for tool in TOOLS:
    server.tool()(tool)
app = server.streamable_http_app(stateless_http=True, json_response=True)
