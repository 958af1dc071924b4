"""An app's ASGI application, with MCP and REST at one address."""
