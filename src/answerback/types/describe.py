"""Words for types and values in messages."""

from __future__ import annotations

import math
from typing import Any, get_args, get_origin

from . import nodes
from .nodes import Node

# Longer texts are cut in messages.
MAX_SHOWN = 60
_SIGNS = {"ge": ">=", "gt": ">", "le": "<=", "lt": "<", "multiple_of": "multiple of"}
_KINDS = {"null": "null", "array": "array", "object": "object", "boolean": "bool"}


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """Return the number and its noun: `1 tool`, `2 tools`, `1,000 replies`."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def without_metadata(annotation: Any) -> Any:
    """Return the type inside `Annotated`."""
    while hasattr(annotation, "__metadata__"):
        annotation = annotation.__origin__
    return annotation


def is_plain_dict(annotation: Any) -> bool:
    """Return True for `dict` and `dict[str, Any]`, which say nothing about the members."""
    plain = without_metadata(annotation)
    items = get_args(plain)
    return dict in (plain, get_origin(plain)) and (not items or items[1] in (Any, object))


def name_of(annotation: Any) -> str:
    """Return the name of a type as its author would write it."""
    return annotation.__name__ if type(annotation) is type else str(annotation)


def shown(value: object) -> str:
    """Return how an author would write *value*, cut to a limited length."""
    text = repr(value)
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 1]}…"


def describe_value(value: Any) -> str:
    """Return a JSON value's kind; for a scalar also the value, cut to a limited length."""
    name = kind_name(value)
    if value is None or isinstance(value, list | dict):
        return name
    # repr of a whole long string is slow; repr of a huge int raises.
    text = repr(value[:MAX_SHOWN]) if isinstance(value, str) else _describe_number(value)
    return f"{name} {text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 1] + '…'}"


def kind_name(value: Any) -> str:
    """Return a JSON value's kind, without the value."""
    kind = nodes.kind_of(value)
    return _KINDS.get(kind) or type(value).__name__


def describe_length(node: Node, value: Any) -> str:
    """Return a text's, array's or object's length, if the length may be what is wrong with it."""
    node = nodes.without_notes(node)
    if isinstance(value, str):
        members = node.members if isinstance(node, nodes.Union) else (node,)
        return f" of length {len(value)}" if any(_limits(each, value) for each in members) else ""
    is_array = isinstance(node, nodes.Array | nodes.Fixed) or getattr(node, "array", False)
    wanted = list if is_array else dict if isinstance(node, nodes.Mapping) else ()
    return f" of length {len(value)}" if isinstance(value, wanted) else ""


def _limits(node: Node, text: str) -> bool:
    """Return whether *node* is a str type that allows only shorter or only longer texts."""
    node = nodes.without_notes(node)
    if not isinstance(node, nodes.Scalar) or node.kind is not str:
        return False
    shortest, longest = node.limits.min_length or 0, node.limits.max_length
    return len(text) < shortest or (longest is not None and len(text) > longest)


def _describe_number(value: Any) -> str:
    if isinstance(value, int) and value.bit_length() > 256:
        return f"of about {int(value.bit_length() * math.log10(2)) + 1} digits"
    return repr(value)


def describe(node: Node) -> str:
    """Return in a few words which values *node* accepts."""
    match node:
        case nodes.Noted(inner=inner):
            return describe(inner)
        case nodes.Scalar(kind=kind, limits=limits):
            return kind.__name__ + _describe_limits(limits)
        case nodes.Choice(values=values):
            shown = ", ".join(repr(value) for value, _ in values[:20])
            return f"one of {shown}"
        case nodes.Array(limits=limits):
            return "array" + _describe_limits(limits)
        case nodes.Fixed(items=items):
            return f"array of length {len(items)}"
        case nodes.Mapping(limits=limits):
            return "object" + _describe_limits(limits)
        case nodes.Union(members=members):
            return " | ".join(dict.fromkeys(map(describe, members)))
    return _describe_class(node)


def _describe_class(node: Node) -> str:
    match node:
        case nodes.Record(array=True, min_items=min_items, cls=cls):
            return f"{cls.__name__} array of length >= {min_items}"
        case nodes.Record(cls=cls, tag=(field, tag)):
            return f"{cls.__name__} object with {field} {tag!r}"
        case nodes.Record(cls=cls):
            return f"{cls.__name__} object"
        case nodes.Model(annotation=annotation):
            bare = without_metadata(annotation)
            return str(getattr(bare, "__name__", bare))
        case nodes.Null():
            return "null"
        case nodes.Custom(cls=cls):
            return cls.__name__
    return "any value"


def _describe_limits(limits: nodes.ValueLimits) -> str:
    parts = []
    for name, limit in limits.as_dict().items():
        if name in _SIGNS:
            parts.append(f"{_SIGNS[name]} {limit}")
        elif name == "pattern":
            # Not as repr, which doubles each backslash.
            parts.append(f"matching '{limit}'")
        elif name == "tz":
            parts.append("with an offset" if limit else "without an offset")
        else:
            parts.append(f"of length {'>=' if name == 'min_length' else '<='} {limit}")
    parts.extend("that passes its check" for _ in limits.checks[:1])
    return "".join(f" {each}" for each in parts)
