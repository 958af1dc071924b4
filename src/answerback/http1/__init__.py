"""HTTP/1.1 for the client, the identity provider and the command line; independent of MCP."""
