"""How types and values are called in messages."""

import math
from collections.abc import Iterable
from typing import Any

from . import nodes
from .nodes import Node

LONGEST = 60
_SIGNS = {"ge": ">=", "gt": ">", "le": "<=", "lt": "<", "multiple_of": "multiple of"}
_KINDS = {"null": "null", "array": "array", "object": "object", "boolean": "bool"}


def near(name: str, known: Iterable[str], most: int = 1) -> list[str]:
    """The known names that may have been meant."""
    import difflib

    # No name of ours is longer; what is sent for one may be, and comparing it takes long.
    name, known = name[:128], list(known)
    same = [each for each in known if each.casefold() == name.casefold()]
    return same[:most] or difflib.get_close_matches(name, known, n=most)


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """The number and its noun: `1 tool`, `2 tools`, `1,000 replies`."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def show(value: Any) -> str:
    """The kind of a JSON value, and a scalar's value cut to a bearable length."""
    name = kind_name(value)
    if value is None or isinstance(value, list | dict):
        return name
    # A long string is cut before repr sees it; a huge int cannot be written at all.
    text = repr(value[:LONGEST]) if isinstance(value, str) else _number(value)
    return f"{name} {text if len(text) <= LONGEST else text[: LONGEST - 1] + '…'}"


def kind_name(value: Any) -> str:
    """What the value is called, without showing it."""
    kind = nodes.kind_of(value)
    return _KINDS.get(kind) or type(value).__name__


def _number(value: Any) -> str:
    if isinstance(value, int) and value.bit_length() > 256:
        return f"of about {int(value.bit_length() * math.log10(2)) + 1} digits"
    return repr(value)


def describe(node: Node) -> str:
    """What *node* takes, in a few words."""
    match node:
        case nodes.Noted(inner=inner):
            return describe(inner)
        case nodes.Scalar(kind=kind, limits=limits):
            return kind.__name__ + _limits(limits)
        case nodes.Choice(values=values):
            shown = ", ".join(repr(value) for value, _ in values[:20])
            return f"one of {shown}"
        case nodes.Array(limits=limits):
            return "array" + _limits(limits)
        case nodes.Fixed(items=items):
            return f"array of length {len(items)}"
        case nodes.Mapping(limits=limits):
            return "object" + _limits(limits)
        case nodes.Union(members=members):
            return " | ".join(dict.fromkeys(map(describe, members)))
    return _describe_class(node)


def _describe_class(node: Node) -> str:
    match node:
        case nodes.Record(array=True, least=least, cls=cls):
            return f"{cls.__name__} array of length >= {least}"
        case nodes.Record(cls=cls, tag=(field, tag)):
            return f"{cls.__name__} object with {field} {tag!r}"
        case nodes.Record(cls=cls):
            return f"{cls.__name__} object"
        case nodes.Model(annotation=annotation):
            return str(getattr(annotation, "__name__", annotation))
        case nodes.Null():
            return "null"
    return "any value"


def _limits(limits: nodes.Limits) -> str:
    told = []
    for name, limit in limits.given().items():
        if name in _SIGNS:
            told.append(f"{_SIGNS[name]} {limit}")
        elif name == "pattern":
            told.append(f"matching {limit!r}")
        elif name == "tz":
            told.append("with an offset" if limit else "without an offset")
        else:
            told.append(f"of length {'>=' if name == 'min_length' else '<='} {limit}")
    told.extend("that passes its check" for _ in limits.checks[:1])
    return "".join(f" {each}" for each in told)
