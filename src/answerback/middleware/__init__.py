"""Checks and records the replies of other frameworks: ASGI, WSGI, FastMCP and the official SDK.

Each is imported from its own module, because each needs its own framework.
"""
