"""The OpenAPI document as a whole: paths, and the components that they use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import msgspec

from ....types.encoding import ENCODER
from .blocks import ROOT
from .bodies import shared_schemas
from .operations import HEADERS, RESPONSES, operation, shared_responses
from .pages import page_paths
from .references import used
from .schemas import tool_schemas

if TYPE_CHECKING:
    from ....app import App

Schema = dict[str, Any]

_made: WeakKeyDictionary[App, tuple[Any, bytes]] = WeakKeyDictionary()


def document(app: App, base: str = "") -> Schema:
    """The OpenAPI 3.1 document of *app*, for the caller to keep and change.

    *base* is the path that the app is mounted under, where there is one.
    """
    made: Schema = msgspec.json.decode(document_json(app, base))
    return made


def document_json(app: App, base: str = "") -> bytes:
    """The document as compact JSON, made once until a tool is added."""
    made_of = (base, app.name, app.version, app.description, *app.tools.values())
    known = _made.get(app)
    if known is None or known[0] != made_of:
        made = _document(app) | ({"servers": [{"url": base}]} if base else {})
        known = _made[app] = (made_of, ENCODER.encode(made))
    return known[1]


def _document(app: App) -> Schema:
    shared = shared_schemas(app.contract)
    tools = list(app.tools.values())
    found, classes = tool_schemas(tools, shared)
    paths: Schema = {
        app.contract.route + tool.name: {"post": operation(tool, arguments, data)}
        for tool, (arguments, data) in zip(tools, found, strict=True)
    }
    paths |= page_paths(app.contract)
    responses = used(paths, shared_responses(app.contract), RESPONSES)
    schemas = used([paths, responses], classes | shared, ROOT)
    components = {"schemas": schemas, "responses": responses, "headers": HEADERS if tools else {}}
    info = {"title": app.name, "version": app.version}
    if app.description:
        info["description"] = app.description
    return {"openapi": "3.1.1", "info": info, "paths": paths, "components": components}
