"""Makes up a value that a tool could be given, from its schema."""

from __future__ import annotations

from typing import Any

from .schema_words import form_of, literal, resolved

_FORMS = {
    "date": "2026-01-31",
    "date-time": "2026-01-31T12:00:00Z",
    "time": "12:00:00",
    "duration": "PT1H30M",
    "uuid": "00000000-0000-4000-8000-000000000000",
    "decimal": "1.50",
}
_TYPES = {"string": "text", "boolean": True, "null": None, "object": {}, "array": []}
_NUMBERS = {"integer": 1, "number": 1.5}
_DEEPEST = 9


def example(schema: Any, root: dict[str, Any]) -> str:
    """A value that could be given, as it is written in a shell."""
    found = resolved(schema, root)
    if isinstance(found, dict) and "contentEncoding" in found:
        return "@file"
    value = _sample(schema, root, 0)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list) and value and not any(isinstance(v, list | dict) for v in value):
        return ",".join(map(literal, value))
    return literal(value)


def _sample(schema: Any, root: dict[str, Any], depth: int) -> Any:
    """A value for the argument itself; the less the deeper it is, for a type may hold itself."""
    match resolved(schema, root):
        case {"examples": [value, *_]} | {"const": value} | {"enum": [value, *_]}:
            return value
        case {"anyOf": [*options]} | {"oneOf": [*options]}:
            if depth and {"type": "null"} in options:
                return None
            return _sample(options[0], root, depth + 1)
        case {"type": "array", "prefixItems": [*items]}:
            return [_sample(item, root, depth + 1) for item in items]
        case {"type": "array", "items": items} as found if items:
            return [_sample(items, root, depth + 1)] * found.get("minItems", 0 if depth else 1)
        case {"type": "object", "properties": members, "required": names} if depth < _DEEPEST:
            return {name: _sample(members.get(name, {}), root, depth + 1) for name in names}
        case {"type": str(name)} as found:
            return _number(found) if name in _NUMBERS else _text(found)
    return "value"


def _text(schema: dict[str, Any]) -> Any:
    if "contentEncoding" in schema:
        return "dGV4dA=="
    form = form_of(schema) if schema["type"] == "string" else None
    return _TYPES.get(schema["type"], "value") if form is None else _FORMS[form]


def _number(schema: dict[str, Any]) -> Any:
    number = _NUMBERS[schema["type"]]
    if number < schema.get("minimum", number) or number > schema.get("maximum", number):
        return schema.get("minimum", schema.get("maximum"))
    if number <= schema.get("exclusiveMinimum", number - 1):
        return schema["exclusiveMinimum"] + 1
    return number
