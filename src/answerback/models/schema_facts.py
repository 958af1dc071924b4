"""Facts about JSON Schemas that conversions for providers need; never changes a schema."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from sys import float_info
from typing import Any, TypeAlias

import msgspec

from ..core.json_value import is_integer, is_number
from ..types.schema_references import alternatives, follow, inner_schemas, target

Schema: TypeAlias = Mapping[str, Any]

CONTAINERS = frozenset({"object", "array"})
_OBJECT_WORDS = frozenset({"properties", "additionalProperties", "patternProperties", "required"})
_ARRAY_WORDS = frozenset({"items", "prefixItems", "minItems", "maxItems"})
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
    """Return a copy of *schema* without malformed keywords; *changed* is called for each."""
    if not isinstance(schema, Mapping):
        if schema is False:
            return {"not": {}}
        if schema is not True:
            changed(path, f"a schema of type {type(schema).__name__}, which is left out")
        return {}
    found: dict[str, Any] = {}
    for keyword, value in schema.items():
        kind, check = _KINDS.get(keyword, object), _CHECKS.get(keyword)
        is_valid = isinstance(value, kind) and (check is None or check(value))
        if not isinstance(keyword, str) or not is_valid:
            changed(path, f"{str(keyword)[:60]} is malformed and left out")
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
    """Return a well-formed schema; here, true and false stay unchanged."""
    return schema if isinstance(schema, bool) else well_formed(schema, changed, path)


def _is_type(value: Any) -> bool:
    if isinstance(value, str):
        return value in _TYPES
    return _is_filled_list(value) and all(each in _TYPES for each in value)


def _is_filled_list(value: Any) -> bool:
    return isinstance(value, list) and bool(value)


def _are_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _is_number(value: Any) -> bool:
    return is_number(value) and abs(value) <= float_info.max


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


def recursive_pointers(root: dict[str, Any], limit: int) -> frozenset[str] | None:
    """Return a document's references that lead back to themselves, or to others that do.

    Return None if the definitions have more than *limit* schemas in total.
    """
    graph = _references(root, limit)
    if graph is None:
        return None
    before: dict[str, list[str]] = {pointer: [] for pointer in graph}
    left = {pointer: len(refs) for pointer, refs in graph.items()}
    for pointer, refs in graph.items():
        for each in refs:
            before[each].append(pointer)
    # A definition without references is not recursive, so references to it no longer count.
    ended = [pointer for pointer, count in left.items() if not count]
    while ended:
        for each in before[ended.pop()]:
            left[each] -= 1
            if not left[each]:
                ended.append(each)
    return frozenset(pointer for pointer, count in left.items() if count)


def _references(root: dict[str, Any], limit: int) -> dict[str, set[str]] | None:
    """Map each of a document's references to the references in its target; None above *limit*."""
    graph: dict[str, set[str]] = {}
    visited = 0
    waiting: list[tuple[str | None, Any]] = [(None, root)]
    while waiting:
        pointer, schema = waiting.pop()
        refs = set()
        for each in inner_schemas(schema):
            visited += 1
            if visited > limit:
                return None
            if isinstance(each.get("$ref"), str):
                refs.add(each["$ref"])
        if pointer is not None:
            graph[pointer] = refs
        for each in [ref for ref in refs if ref not in graph]:
            graph[each] = set()
            waiting.append((each, target(each, root)))
    return graph


def types_of(schema: Schema) -> tuple[str, ...]:
    """Return the types that a schema names or implies; none if it accepts any value."""
    types = schema.get("type")
    if isinstance(types, str):
        return (types,)
    if isinstance(types, Sequence) and types:
        return tuple(types)
    if "const" in schema:
        return (type_of_value(schema["const"]),)
    if schema.get("enum"):
        return tuple(dict.fromkeys(map(type_of_value, schema["enum"])))
    if not _OBJECT_WORDS.isdisjoint(schema):
        return ("object",)
    return ("array",) if not _ARRAY_WORDS.isdisjoint(schema) else ()


def type_of_value(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
    return "object" if isinstance(value, Mapping) else "array"


def allows_null(schema: Any, root: dict[str, Any]) -> bool:
    """Return whether null fits *schema*, or one of its alternatives."""
    for each in alternatives(schema, root):
        types = types_of(each)
        fits = None in each.get("enum", (None,)) and (not types or "null" in types)
        if fits or each.get("nullable") is True:
            return True
    return False


def merged(schemas: Sequence[Schema]) -> dict[str, Any] | None:
    """Return one schema equivalent to all of *schemas* together; None if there is no simple one."""
    closed = [each for each in schemas if each.get("additionalProperties") is False]
    if 0 < len(closed) < len(schemas):
        names = {name for each in schemas for name in each.get("properties", {})}
        if any(names - each.get("properties", {}).keys() for each in closed):
            return None
    result: dict[str, Any] = {}
    for schema in schemas:
        for keyword, value in schema.items():
            if keyword == "required":
                result[keyword] = list(dict.fromkeys([*result.get(keyword, ()), *value]))
            elif keyword in ("properties", "$defs", "definitions"):
                both = result.get(keyword, {}).keys() & value.keys()
                if any(result[keyword][name] != value[name] for name in both):
                    return None
                result[keyword] = {**result.get(keyword, {}), **value}
            elif keyword in ("title", "description", "default", "examples"):
                result.setdefault(keyword, value)
            elif result.setdefault(keyword, value) != value:
                return None
    return result


def alternatives_merged(base: Schema, branches: Sequence[Schema]) -> dict[str, Any]:
    """Return one object schema that accepts whatever any alternative accepts, and more."""
    properties: dict[str, list[Any]] = {}
    for schema in [base, *branches]:
        for name, value in (schema.get("properties") or {}).items():
            found = properties.setdefault(name, [])
            if value not in found:
                found.append(value)
    common = set.intersection(*(set(each.get("required", ())) for each in branches))
    required = [name for name in properties if name in common or name in base.get("required", ())]
    result = {**base, "type": "object"}
    result["properties"] = {
        name: found[0] if len(found) == 1 else {"anyOf": found}
        for name, found in properties.items()
    }
    result["required"] = required
    if all(each.get("additionalProperties") is False for each in branches):
        result["additionalProperties"] = False
    return result


def are_disjoint(one: Schema, other: Schema, root: dict[str, Any], depth: int = 6) -> bool:
    """Return whether no value fits both converted schemas; *root* has their definitions."""
    one, other = follow(one, root) or {}, follow(other, root) or {}
    if depth == 0:
        return False
    for first, second in ((one, other), (other, one)):
        if "anyOf" in first:
            return all(are_disjoint(each, second, root, depth - 1) for each in first["anyOf"])
    types, others = _wide_types(one), _wide_types(other)
    if types and others and not types & others:
        return True
    values, other_values = _values(one), _values(other)
    if values is not None and other_values is not None:
        return not values & other_values
    if not types == others == {"object"}:
        return False
    members, other_members = one.get("properties", {}), other.get("properties", {})
    required, also_required = set(one.get("required", ())), set(other.get("required", ()))
    if other.get("additionalProperties") is False and required - other_members.keys():
        return True
    if one.get("additionalProperties") is False and also_required - members.keys():
        return True
    both = required & also_required & members.keys() & other_members.keys()
    return any(
        are_disjoint(members[name], other_members[name], root, depth - 1) for name in sorted(both)
    )


def _wide_types(schema: Schema) -> set[str]:
    return {"number" if each == "integer" else each for each in types_of(schema)}


def _values(schema: Schema) -> set[bytes] | None:
    if "const" in schema:
        return {msgspec.json.encode(schema["const"])}
    return {msgspec.json.encode(each) for each in schema["enum"]} if "enum" in schema else None
