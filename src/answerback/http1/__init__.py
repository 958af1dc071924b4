"""HTTP/1.1 for the client, the identity provider and the command line; nothing here knows MCP."""
