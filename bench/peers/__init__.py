"""The tool `add` on the official SDK and on FastMCP."""
