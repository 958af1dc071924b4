"""The OpenAPI document as a whole: paths, and the components that they use."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import msgspec

from .blocks import ROOT
from .bodies import shared_schemas
from .operations import HEADERS, operation
from .pages import page_paths
from .schemas import Schemas

if TYPE_CHECKING:
    from ....app import App

Schema = dict[str, Any]

_made: WeakKeyDictionary[App, tuple[Any, bytes]] = WeakKeyDictionary()


def document(app: App) -> Schema:
    """The OpenAPI 3.1 document, made anew each time: it is the caller's to change."""
    shared = shared_schemas(app.contract)
    schemas = Schemas(app.tools.values(), reserved=shared)
    route = app.contract.route
    paths: Schema = {
        route + tool.name: {"post": operation(tool, *schemas.of(tool))}
        for tool in app.tools.values()
    }
    paths |= page_paths()
    used = _used(paths, {**schemas.components, **shared})
    components = {"schemas": used, "headers": HEADERS} if app.tools else {}
    info = {"title": app.name, "version": app.version}
    if app.description:
        info["description"] = app.description
    return {"openapi": "3.1.1", "info": info, "paths": paths, "components": components}


def document_json(app: App) -> bytes:
    """The document as compact JSON, made once until a tool is added."""
    made_of = (app.name, app.version, app.description, *app.tools.values())
    known = _made.get(app)
    if known is None or known[0] != made_of:
        known = _made[app] = (made_of, msgspec.json.encode(document(app)))
    return known[1]


def _used(paths: Schema, components: dict[str, Schema]) -> dict[str, Schema]:
    """The components that something refers to, by name in order."""
    waiting = list(_refs(paths))
    used: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in used:
            used.add(name)
            waiting.extend(_refs(components[name]))
    return {name: components[name] for name in sorted(used)}


def _refs(node: Any) -> Iterator[str]:
    """The names of the components that *node* refers to."""
    if isinstance(node, list):
        for item in node:
            yield from _refs(item)
    elif isinstance(node, dict):
        target = node.get("$ref")
        if isinstance(target, str) and target.startswith(ROOT):
            yield target.removeprefix(ROOT)
        for value in node.values():
            yield from _refs(value)
