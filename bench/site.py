"""The measured tools as an ASGI application."""

from __future__ import annotations

from .apps import app

site = app.asgi()
