"""The whole OpenAPI document: the paths, and the components that they use."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import msgspec

from ....core.authentication import AppAuth
from ....gates.prompts import needs_login, shown_to_all
from ....registry.declarations import Registry
from ....types.json_text import ENCODER
from ..routes import PUBLIC
from .operations import (
    BEARER,
    HEADERS,
    RESPONSES,
    SCHEMAS,
    media_types,
    operation,
    page_paths,
    paths_of_tasks,
    shared_responses,
    shared_schemas,
    tags_of,
    tool_schemas,
    used_components,
)

Schema = dict[str, Any]

_cache: WeakKeyDictionary[Registry, tuple[Any, bytes]] = WeakKeyDictionary()
"""The last document of each registry as JSON, with the values it was made from."""


def document(registry: Registry, base: str = "", *, dialects: bool = False) -> Schema:
    """Return the OpenAPI 3.1 document of *registry*. Each call returns a new dict.

    *base* is the app's mount point, or empty. *dialects* lists the media types
    of all dialects, not only that of the contract.
    """
    decoded: Schema = msgspec.json.decode(document_json(registry, base, dialects=dialects))
    return decoded


def document_json(registry: Registry, base: str = "", *, dialects: bool = False) -> bytes:
    """Return the document as compact JSON, cached until the registry changes."""
    key = (
        base,
        dialects,
        registry.name,
        registry.version,
        registry.description,
        registry.auth,
        *registry.tools.values(),
    )
    cached = _cache.get(registry)
    if cached is None or cached[0] != key:
        made = _document(registry, base or "/", dialects=dialects)
        cached = _cache[registry] = (key, ENCODER.encode(made))
    return cached[1]


def _document(registry: Registry, url: str, *, dialects: bool) -> Schema:
    media = media_types(registry.contract, dialects=dialects)
    shared = shared_schemas(registry.contract)
    tools = shown_to_all(registry.tools.values())
    if registry.has_tasks:
        from .task_paths import TASK_SCHEMAS

        shared |= TASK_SCHEMAS
    schemas_of_tools, classes = tool_schemas(tools, shared)
    paths: Schema = {
        registry.contract.route + tool.name: {"post": operation(tool, arguments, data, media)}
        for tool, (arguments, data) in zip(tools, schemas_of_tools, strict=True)
    }
    for tool in tools:
        if tool.settings.task != "forbidden":
            path = registry.contract.route + tool.name
            paths |= paths_of_tasks(tool, paths[path]["post"], media)
    paths |= page_paths(media)
    responses = used_components(paths, shared_responses(media), RESPONSES)
    schemas = used_components([paths, responses], classes | shared, SCHEMAS)
    components = {"schemas": schemas, "responses": responses, "headers": HEADERS}
    schemes: Schema = {}
    security: list[Schema] = []
    if registry.auth is not None or any(needs_login(tool) for tool in tools):
        schemes = {BEARER: {"type": "http", "scheme": "bearer"}}
    if registry.auth is not None:
        schemes |= registry.auth.security_schemes
        security = _security(registry.auth, schemes, paths)
    if schemes:
        components["securitySchemes"] = schemes
    info = {"title": registry.name, "version": registry.version}
    if registry.description:
        info["description"] = registry.description
    return {
        "openapi": "3.1.1",
        "info": info,
        "servers": [{"url": url}],
        # A tool that requires a login says so; some linters expect the document to have this.
        "security": security,
        "tags": tags_of(tools),
        "paths": paths,
        "components": components,
    }


def _security(auth: AppAuth, schemes: Schema, paths: Schema) -> list[Schema]:
    """Return the ways to authenticate; the operations that need none are marked in *paths*."""
    for path in PUBLIC:
        for each in paths.get(path, {}).values():
            each["security"] = []
    ways: list[Schema] = [{name: []} for name in schemes]
    return [{}, *ways] if auth.anonymous else ways
