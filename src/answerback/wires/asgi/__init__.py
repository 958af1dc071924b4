"""HTTP: an ASGI application for an App's tools."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...app import App
    from ..http.options import WebOptions
    from .application import Site


def asgi(app: App, options: WebOptions) -> Site:
    from .application import Site

    return Site(app, options)
