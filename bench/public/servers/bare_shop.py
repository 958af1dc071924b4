"""The shop without an MCP library."""

from bare_server import bare_app
from shop_tools import TOOLS

app = bare_app({tool.__name__: tool for tool in TOOLS})
