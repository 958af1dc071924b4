"""The author's own pages, served over HTTP beside the tools."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias

import msgspec

from ..contract import RESERVED_ROUTES
from .declarations import Registry

RouteFunction: TypeAlias = Callable[[Any], Awaitable[Any]]
"""Takes Starlette's Request and returns one of its responses."""


class OwnRoute(msgspec.Struct, frozen=True):
    """A page: its path, which may have Starlette's parameters, and its methods."""

    path: str
    methods: tuple[str, ...]
    fn: RouteFunction


def check_route(registry: Registry, path: object, methods: Sequence[str]) -> None:
    """Raise TypeError or ValueError for a path that cannot be served, or is served already."""
    if callable(path):
        raise TypeError("@app.route takes a path: @app.route('/plans')")
    if not isinstance(path, str) or not path.startswith("/"):
        raise ValueError(f"{path!r} is not a path; write one that begins with a slash: '/plans'")
    if isinstance(methods, str) or not methods:
        raise TypeError(f"methods is a list: methods=[{methods or 'GET'!r}]")
    first = path[1:].partition("/")[0]
    if first in RESERVED_ROUTES or first == ".well-known":
        raise ValueError(f"{path!r} is a path of the server's own; choose another")
    if registry.contract.route == "/" and path[1:] in registry.tools.own:
        raise ValueError(f"{path!r} is the path of a tool; choose another")
    for each in registry.routes:
        if each.path == path and set(each.methods) & set(methods):
            raise ValueError(f"there is a route {path!r} for {' '.join(each.methods)} already")
