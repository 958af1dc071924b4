"""The ASGI application of an app, with MCP and REST at one address."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...calls.runtime import Runtime
    from ..http.server_options import WebOptions
    from .application import AsgiApp


def asgi(runtime: Runtime, options: WebOptions) -> AsgiApp:
    from .application import AsgiApp

    return AsgiApp(runtime, options)
