"""Authentication over HTTP: OAuth tokens and API keys."""
