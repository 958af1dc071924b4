"""Makes a foreign tool's schema well-formed: a keyword with a malformed value is left out.

The other modules rely on it: afterwards each keyword has the type that JSON Schema requires,
so that one broken tool does not break the whole request.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any

from ..core.json_value import is_integer, is_number

_TYPES = ("object", "array", "string", "integer", "number", "boolean", "null")
_SCHEMAS_BY_NAME = frozenset(
    {"properties", "$defs", "definitions", "patternProperties", "dependentSchemas"}
)
_SCHEMA_LISTS = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_SCHEMAS = frozenset(
    {"additionalProperties", "not", "if", "then", "else", "contains", "propertyNames"}
    | {"additionalItems", "unevaluatedProperties", "unevaluatedItems"}
)


def well_formed(schema: Any, changed: Callable[[str, str], None], path: str) -> dict[str, Any]:
    """Return a copy of *schema* without malformed keywords; *changed* gets each of them."""
    if not isinstance(schema, Mapping):
        if schema is False:
            return {"not": {}}
        if schema is not True:
            changed(path, f"a schema that is {type(schema).__name__}, which is left out")
        return {}
    found: dict[str, Any] = {}
    for keyword, value in schema.items():
        if not isinstance(keyword, str) or not _is_well_formed(keyword, value):
            changed(path, f"{str(keyword)[:60]} is malformed, and left out")
        elif keyword in _SCHEMAS_BY_NAME:
            found[keyword] = {
                str(name): _inner(each, changed, f"{path}.{name}") for name, each in value.items()
            }
        elif keyword in _SCHEMA_LISTS or (keyword == "items" and isinstance(value, list)):
            found[keyword] = [well_formed(each, changed, path) for each in value]
        elif keyword in _SCHEMAS or keyword == "items":
            found[keyword] = _inner(value, changed, path)
        else:
            found[keyword] = value
    return found


def _inner(schema: Any, changed: Callable[[str, str], None], path: str) -> Any:
    """Return a schema where true and false may stay unchanged."""
    return schema if isinstance(schema, bool) else well_formed(schema, changed, path)


def _is_well_formed(keyword: str, value: Any) -> bool:
    if keyword in _KINDS:
        return isinstance(value, _KINDS[keyword])
    check = _CHECKS.get(keyword)
    return check is None or check(value)


def _is_type(value: Any) -> bool:
    if isinstance(value, str):
        return value in _TYPES
    return _is_filled_list(value) and all(each in _TYPES for each in value)


def _is_filled_list(value: Any) -> bool:
    return isinstance(value, list) and bool(value)


def _are_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _is_number(value: Any) -> bool:
    return is_number(value) and isfinite(value)


def _is_count(value: Any) -> bool:
    return is_integer(value) and value >= 0


_KINDS: dict[str, type] = {
    **dict.fromkeys(_SCHEMAS_BY_NAME, Mapping),
    **dict.fromkeys(("pattern", "format", "title", "description", "$ref"), str),
    **dict.fromkeys(("$schema", "$id", "$comment", "$anchor"), str),
    **dict.fromkeys(("nullable", "uniqueItems", "deprecated", "readOnly"), bool),
}
_CHECKS: dict[str, Callable[[Any], bool]] = {
    "type": _is_type,
    "enum": _is_filled_list,
    "required": _are_names,
    **dict.fromkeys(_SCHEMA_LISTS, _is_filled_list),
    **dict.fromkeys(("minimum", "maximum", "multipleOf"), _is_number),
    **dict.fromkeys(("exclusiveMinimum", "exclusiveMaximum"), _is_number),
    **dict.fromkeys(("minItems", "maxItems", "minLength", "maxLength"), _is_count),
    **dict.fromkeys(("minProperties", "maxProperties", "minContains", "maxContains"), _is_count),
}
