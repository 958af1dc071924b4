"""Transports: each carries frames between this process and one server."""
