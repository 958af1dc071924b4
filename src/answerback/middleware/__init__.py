"""Middleware that checks and records other frameworks' replies.

ASGI, WSGI, FastMCP and the official SDK each have a module, because each needs its framework.
"""
