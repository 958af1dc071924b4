"""Which entries a caller may see: those that no gate hides, and that `@app.visible` shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from ..core.log import logger
from ..tools.callable_source import required_parameters, source_of
from ..tools.tool import Tool
from .declarations import Registry

if TYPE_CHECKING:
    from ..core.request_info import RequestInfo

VisibleFunction: TypeAlias = Callable[[Any, Any], bool]
"""Takes a VisibleEntry and the RequestInfo; returns whether the caller may see the entry."""


class VisibleEntry(msgspec.Struct, frozen=True):
    """A tool, a resource or a prompt, as a function of `@app.visible` sees it."""

    kind: str
    """"tool", "resource" or "prompt"."""
    name: str
    """The name of the tool or prompt, or the URI or URI template of the resource."""
    tags: frozenset[str]


def add_visible(registry: Registry, function: VisibleFunction) -> None:
    """Let *function* decide who sees what; raises TypeError or ValueError."""
    given: object = function
    if not callable(given) or isinstance(given, type):
        raise TypeError("@app.visible decorates a function: def visible(entry, request) -> bool")
    source = source_of(function)
    name = source.function.__name__
    names = required_parameters(source)
    if source.is_async or len(names) != 2:
        found = "is async" if source.is_async else f"takes {names}"
        raise TypeError(f"{name!r} {found}; write def {name}(entry, request) -> bool")
    if _is_served(registry):
        raise ValueError(f"register {name!r} before {registry.name!r} is served or called")
    registry.visible = (*registry.visible, function)


def _is_served(registry: Registry) -> bool:
    if registry.changes.attached():
        return True
    composition = registry.composition
    return composition is not None and any(_is_served(each.app) for each in composition.including())


def is_hidden(entry: Tool, request: RequestInfo) -> bool:
    """Return whether the entry does not exist for the caller of *request*."""
    if entry.gates is not None and entry.gates.hide_from(request.user):
        return True
    return is_filtered(entry, request)


def is_filtered(entry: Tool, request: RequestInfo) -> bool:
    """Return whether a function of `@app.visible` hides the entry; gates do not count."""
    functions = [each for app in entry.path for each in app.visible if entry.is_listed]
    return bool(functions) and not all(_shows(each, entry, request) for each in functions)


def _shows(function: VisibleFunction, entry: Tool, request: RequestInfo) -> bool:
    listed = VisibleEntry(entry.noun, entry.public_name, frozenset(entry.settings.tags))
    try:
        return bool(function(listed, request))
    except Exception:  # noqa: BLE001 -- the author's code may raise anything
        logger().exception("%r failed, so %s is hidden", function, entry.owner)
        return False
