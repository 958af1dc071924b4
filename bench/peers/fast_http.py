"""`add` on FastMCP, as an ASGI application."""

from __future__ import annotations

import logging

from .fast import server

logging.disable(logging.CRITICAL)
app = server.http_app()
