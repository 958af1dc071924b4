"""The whole OpenAPI document: the paths, and the components that they use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import msgspec

from ....types.json_text import ENCODER
from .bodies import shared_schemas
from .components import SCHEMAS, tool_schemas, used_components
from .operations import HEADERS, RESPONSES, operation, page_paths, shared_responses

if TYPE_CHECKING:
    from ....registry import Registry

Schema = dict[str, Any]

_cache: WeakKeyDictionary[Registry, tuple[Any, bytes]] = WeakKeyDictionary()
"""The last document of each registry as JSON, with the values that it was made from."""


def document(registry: Registry, base: str = "") -> Schema:
    """The OpenAPI 3.1 document of *registry*. Each call returns a new dict.

    *base* is the path that the app is mounted under, or empty.
    """
    decoded: Schema = msgspec.json.decode(document_json(registry, base))
    return decoded


def document_json(registry: Registry, base: str = "") -> bytes:
    """The document as compact JSON, cached until the registry changes."""
    key = (
        base,
        registry.name,
        registry.version,
        registry.description,
        *registry.tools.values(),
    )
    cached = _cache.get(registry)
    if cached is None or cached[0] != key:
        servers = {"servers": [{"url": base}]} if base else {}
        cached = _cache[registry] = (key, ENCODER.encode(_document(registry) | servers))
    return cached[1]


def _document(registry: Registry) -> Schema:
    shared = shared_schemas(registry.contract)
    tools = list(registry.tools.values())
    schemas_of_tools, classes = tool_schemas(tools, shared)
    paths: Schema = {
        registry.contract.route + tool.name: {"post": operation(tool, arguments, data)}
        for tool, (arguments, data) in zip(tools, schemas_of_tools, strict=True)
    }
    paths |= page_paths(registry.contract)
    responses = used_components(paths, shared_responses(registry.contract), RESPONSES)
    schemas = used_components([paths, responses], classes | shared, SCHEMAS)
    components = {"schemas": schemas, "responses": responses, "headers": HEADERS if tools else {}}
    info = {"title": registry.name, "version": registry.version}
    if registry.description:
        info["description"] = registry.description
    return {"openapi": "3.1.1", "info": info, "paths": paths, "components": components}
