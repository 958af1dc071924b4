"""The shop on FastMCP, without sessions and with JSON."""

from fastmcp import FastMCP
from shop_tools import TOOLS

server = FastMCP("shop")
for tool in TOOLS:
    server.tool(tool)
app = server.http_app(stateless_http=True, json_response=True)
