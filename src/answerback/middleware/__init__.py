"""Middleware that checks and records the replies of other frameworks.

ASGI, WSGI, FastMCP and the official SDK each have a module, because each needs its framework.
"""
