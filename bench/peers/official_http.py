"""`add` on the official SDK, as an ASGI application."""

from __future__ import annotations

import logging

from .official import server

logging.disable(logging.CRITICAL)
app = server.streamable_http_app()
