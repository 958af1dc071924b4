"""The ASGI application of an app, with MCP and REST at one address."""
