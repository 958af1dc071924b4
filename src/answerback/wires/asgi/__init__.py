"""The ASGI application of an app, with MCP and REST at one address."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...calls.handlers import Handlers
    from ...registry import Registry
    from ..http.options import WebOptions
    from .application import AsgiApp


def asgi(registry: Registry, handlers: Handlers, options: WebOptions) -> AsgiApp:
    from .application import AsgiApp

    return AsgiApp(registry, handlers, options)
