"""`x-mcp-header`: a tool's arguments that are repeated in HTTP headers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from ..core.json_value import Json, JsonObject
from ..protocol.mcp_request_info import encode_header

MARK = "x-mcp-header"
HeaderPaths: TypeAlias = dict[tuple[str, ...], str]
"""A header's name, by the path of the argument that it repeats."""

_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_TYPES = frozenset({"string", "integer", "boolean"})
# The keywords of JSON Schema that contain schemas. Values such as `default` and `enum` are data.
_ONE = frozenset(
    {"items", "contains", "unevaluatedItems", "additionalProperties", "propertyNames"}
    | {"unevaluatedProperties", "not", "if", "then", "else", "contentSchema"}
)
_SEVERAL = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_NAMED = frozenset({"patternProperties", "dependentSchemas", "$defs", "definitions"})


class BadAnnotation(ValueError):
    """A tool's `x-mcp-header` breaks an MCP rule; clients must leave out such a tool."""


def header_paths(schema: Json) -> HeaderPaths:
    """Return the headers for calls of a tool with this input schema; raises BadAnnotation."""
    found: HeaderPaths = {}
    seen: set[str] = set()
    for path, part in _schemas(schema):
        if MARK not in part:
            continue
        name = part[MARK]
        if not path:
            raise BadAnnotation(f"{MARK} stands where no property of the arguments is")
        if not isinstance(name, str) or not _TOKEN.fullmatch(name):
            raise BadAnnotation(f"{MARK} {name!r} is not the name of a header")
        if not isinstance(part.get("type"), str) or part["type"] not in _TYPES:
            raise BadAnnotation(f"{MARK} {name!r} is on a property of type {part.get('type')!r}")
        if name.lower() in seen:
            raise BadAnnotation(f"{MARK} {name!r} is used twice")
        seen.add(name.lower())
        found[path] = name
    return found


def param_headers(paths: HeaderPaths, arguments: Mapping[str, Any]) -> dict[str, str]:
    """Return a call's `Mcp-Param-*` headers; an absent or null argument has none."""
    headers = {}
    for path, name in paths.items():
        value = _value_at(arguments, path)
        if isinstance(value, bool):
            headers[f"Mcp-Param-{name}"] = "true" if value else "false"
        elif isinstance(value, str | int | float):
            headers[f"Mcp-Param-{name}"] = encode_header(str(value))
    return headers


def _value_at(arguments: Json, path: tuple[str, ...]) -> Json:
    for name in path:
        if not isinstance(arguments, Mapping):
            return None
        arguments = arguments.get(name)
    return arguments


def _schemas(root: Json) -> Iterator[tuple[tuple[str, ...] | None, JsonObject]]:
    """Yield every schema in *root*, with its path if only `properties` lead to it; skip `$ref`."""
    waiting: list[tuple[tuple[str, ...] | None, Any]] = [((), root)]
    while waiting:
        path, part = waiting.pop()
        if not isinstance(part, dict):
            continue
        yield path, part
        for keyword, value in part.items():
            waiting.extend(_within(path, keyword, value))


def _within(
    path: tuple[str, ...] | None, keyword: str, value: Json
) -> Iterator[tuple[tuple[str, ...] | None, Any]]:
    if keyword == "properties" and isinstance(value, dict):
        for name, part in value.items():
            yield (None if path is None else (*path, name)), part
    elif keyword in _ONE:
        yield None, value
    elif keyword in _SEVERAL and isinstance(value, list):
        yield from ((None, part) for part in value)
    elif keyword in _NAMED and isinstance(value, dict):
        yield from ((None, part) for part in value.values())
