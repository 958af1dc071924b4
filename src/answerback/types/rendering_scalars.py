"""JSON Schema of numbers, strings and the keys of objects."""

from datetime import date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from . import nodes
from .nodes import Limits, Node
from .scalars import pattern_of

Schema = dict[str, Any]

_NUMBER_WORDS = {
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "lt": "exclusiveMaximum",
    "multiple_of": "multipleOf",
}
_PLAIN = {bool: "boolean", int: "integer", float: "number", str: "string"}
_FORMATS: dict[type, str] = {date: "date", UUID: "uuid"}
_INT_KEY = "^-?(0|[1-9][0-9]*)$"


def sizes(limits: Limits, noun: str) -> Schema:
    """Limits of length, in the words for *noun* (Items, Length, Properties)."""
    schema: Schema = {}
    if limits.min_length is not None:
        schema[f"min{noun}"] = limits.min_length
    if limits.max_length is not None:
        schema[f"max{noun}"] = limits.max_length
    return schema


def render_scalar(node: nodes.Scalar) -> Schema:
    """The schema of a scalar."""
    if node.kind in _PLAIN:
        return {"type": _PLAIN[node.kind], **_limits(node.limits)}
    if node.kind in (bytes, bytearray):
        return {
            "type": "string",
            "contentEncoding": "base64",
            "pattern": _base64_pattern(node.limits),
        }
    if node.kind is Decimal:
        number = {"type": "number", **_limits(node.limits)}
        return {"anyOf": [number, {"type": "string", "pattern": pattern_of(Decimal, node.limits)}]}
    if node.kind in _FORMATS:
        return {"type": "string", "format": _FORMATS[node.kind]}
    return {"type": "string", **_moment(node)}


def _moment(node: nodes.Scalar) -> Schema:
    schema: Schema = {"pattern": pattern_of(node.kind, node.limits)}
    # `date-time` always has an offset, so it is only true of types that ask for one.
    if node.limits.tz and node.kind is datetime:
        schema["format"] = "date-time"
    return schema


def _limits(limits: Limits) -> Schema:
    schema = {
        _NUMBER_WORDS[name]: limit
        for name, limit in limits.given().items()
        if name in _NUMBER_WORDS
    }
    if limits.pattern is not None:
        schema["pattern"] = limits.pattern
    return schema | sizes(limits, "Length")


def _base64_pattern(limits: Limits) -> str:
    """The base64 texts of as many bytes as *limits* allow."""
    least, most = limits.min_length or 0, limits.max_length
    if not least and most is None:
        return str(pattern_of(bytes, limits))
    forms = []
    for rest, tail in enumerate(("", "[A-Za-z0-9+/]{2}==", "[A-Za-z0-9+/]{3}=")):
        first = max(0, -(-(least - rest) // 3))
        last = "" if most is None else (most - rest) // 3
        if last == "" or first <= int(last):
            forms.append(f"([A-Za-z0-9+/]{{4}}){{{first},{last}}}{tail}")
    return f"^({'|'.join(forms)})$"


def render_key(node: Node) -> Schema:
    """The schema of an object's keys, which are strings whatever they stand for."""
    if isinstance(node, nodes.Choice):
        return {"enum": [str(value) for value, _ in node.values]}
    if isinstance(node, nodes.Scalar) and node.kind is int:
        return {"pattern": _INT_KEY}
    if isinstance(node, nodes.Scalar):
        schema = render_scalar(node)
        del schema["type"]
        return schema
    return {}
