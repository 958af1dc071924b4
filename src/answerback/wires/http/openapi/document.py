"""The OpenAPI document as a whole: paths, and the components that they use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import msgspec

from ....types.json_text import ENCODER
from .blocks import ROOT
from .bodies import shared_schemas
from .operations import HEADERS, RESPONSES, operation, shared_responses
from .pages import page_paths
from .references import used
from .schemas import tool_schemas

if TYPE_CHECKING:
    from ....registry import Registry

Schema = dict[str, Any]

_made: WeakKeyDictionary[Registry, tuple[Any, bytes]] = WeakKeyDictionary()


def document(registry: Registry, base: str = "") -> Schema:
    """The OpenAPI 3.1 document of *registry*, for the caller to keep and change.

    *base* is the path that the app is mounted under, where there is one.
    """
    made: Schema = msgspec.json.decode(document_json(registry, base))
    return made


def document_json(registry: Registry, base: str = "") -> bytes:
    """The document as compact JSON, made once until a tool is added."""
    made_of = (
        base,
        registry.name,
        registry.version,
        registry.description,
        *registry.tools.values(),
    )
    known = _made.get(registry)
    if known is None or known[0] != made_of:
        made = _document(registry) | ({"servers": [{"url": base}]} if base else {})
        known = _made[registry] = (made_of, ENCODER.encode(made))
    return known[1]


def _document(registry: Registry) -> Schema:
    shared = shared_schemas(registry.contract)
    tools = list(registry.tools.values())
    found, classes = tool_schemas(tools, shared)
    paths: Schema = {
        registry.contract.route + tool.name: {"post": operation(tool, arguments, data)}
        for tool, (arguments, data) in zip(tools, found, strict=True)
    }
    paths |= page_paths(registry.contract)
    responses = used(paths, shared_responses(registry.contract), RESPONSES)
    schemas = used([paths, responses], classes | shared, ROOT)
    components = {"schemas": schemas, "responses": responses, "headers": HEADERS if tools else {}}
    info = {"title": registry.name, "version": registry.version}
    if registry.description:
        info["description"] = registry.description
    return {"openapi": "3.1.1", "info": info, "paths": paths, "components": components}
