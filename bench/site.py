"""The tools of the benchmarks as an ASGI application."""

from __future__ import annotations

from .apps import app

site = app.asgi()
