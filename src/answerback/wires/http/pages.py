"""The pages beside the tools: the list of functions, the OpenAPI document and health."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import msgspec

from ...registry import Registry
from ...tools.tool import Tool

Page: TypeAlias = Callable[[Registry, str], bytes]
"""Makes the JSON of a page; the second argument is the path that the app is mounted under."""


def function_list(registry: Registry, root: str = "") -> bytes:
    """The tools with their schemas, as JSON."""
    return msgspec.json.encode([_function(tool) for tool in registry.tools.values()])


def _openapi(registry: Registry, root: str) -> bytes:
    from .openapi import document_json

    return document_json(registry, root)


def _health(registry: Registry, root: str) -> bytes:
    health = {"status": "ok", "name": registry.name, "version": registry.version}
    return msgspec.json.encode(health)


def _function(tool: Tool) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": tool.name, "description": tool.description}
    if tool.title:
        entry["title"] = tool.title
    entry["inputSchema"] = tool.input_schema
    if tool.output_schema is not None:
        entry["outputSchema"] = tool.output_schema
    return entry


PAGES: Mapping[str, Page] = {
    "/functions": function_list,
    "/openapi.json": _openapi,
    "/healthz": _health,
}
