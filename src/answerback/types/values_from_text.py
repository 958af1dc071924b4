"""Turns the command line's `name=value` pairs into JSON arguments, according to their types.

An unreadable value stays a string, so that decoding reports the problem.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from . import nodes
from .annotation_reader import read_type
from .arguments import Parameter
from .json_text import load
from .nodes import Node
from .problems import InvalidArguments, Problem

_YES = frozenset({"true", "yes", "on", "1"})
_NO = frozenset({"false", "no", "off", "0"})
_NONE = frozenset({"null", "none", ""})


def from_strings(
    parameters: Sequence[Parameter], pairs: Sequence[tuple[str, str | bytes]]
) -> dict[str, Any]:
    """Return the argument object for the pairs; a repeated name becomes a list.

    A value is `bytes` if it is a file's content.
    """
    trees = {
        each.name: nodes.without_notes(read_type(each.annotation, each.name)) for each in parameters
    }
    first_names = {other: each.name for each in parameters for other in each.other_names}
    values_by_name: dict[str, list[str | bytes]] = {}
    for name, value in pairs:
        values_by_name.setdefault(first_names.get(name, name), []).append(value)
    problems = [
        Problem(path=name, message=message)
        for name, values in values_by_name.items()
        if name in trees and (message := _find_problem(trees[name], values))
    ]
    if problems:
        raise InvalidArguments(tuple(problems))
    return {
        name: _read_all(trees[name], values) if name in trees else _as_text(values[-1])
        for name, values in values_by_name.items()
    }


def _find_problem(node: Node, values: list[str | bytes]) -> str | None:
    """Return why the type does not allow a repeated name, binary content or a malformed object."""
    if len(values) > 1 and _array_in(node) is None and not isinstance(node, nodes.Anything):
        return f"given {len(values)} times, but takes one value"
    if not _takes_bytes(node):
        try:
            for value in values:
                if isinstance(value, bytes):
                    value.decode()
        except UnicodeDecodeError:
            return "expected text, got bytes that are not UTF-8"
    if isinstance(node, nodes.Record | nodes.Mapping):
        for text in map(_as_text, values):
            if not text.lstrip().startswith("{"):
                continue
            try:
                load(text.encode())
            except (ValueError, msgspec.ValidationError) as error:
                advice = """write it in single quotes, as in '{"name": "value"}'"""
                return f"not JSON: {error}; {advice}"
    return None


def _takes_bytes(node: Node) -> bool:
    node = nodes.without_notes(node)
    if isinstance(node, nodes.Union):
        return any(map(_takes_bytes, node.members))
    if isinstance(node, nodes.Array):
        return _takes_bytes(node.item)
    return isinstance(node, nodes.Scalar) and node.kind in nodes.BYTES_TYPES


def _read_all(node: Node, values: list[str | bytes]) -> Any:
    array = _array_in(node)
    if len(values) == 1 or array is None:
        return _read(node, values[-1])
    if isinstance(array, nodes.Fixed) and len(array.items) == len(values):
        return [_read(each, value) for each, value in zip(array.items, values, strict=True)]
    item = array.item if isinstance(array, nodes.Array) else nodes.Anything()
    return [_read(item, value) for value in values]


def _array_in(node: Node) -> nodes.Array | nodes.Fixed | None:
    node = nodes.without_notes(node)
    if isinstance(node, nodes.Array | nodes.Fixed):
        return node
    if isinstance(node, nodes.Union):
        return next((found for each in node.members if (found := _array_in(each))), None)
    return None


def _as_text(value: str | bytes) -> str:
    # Some Windows programs write a byte order mark at the start of a file.
    return value if isinstance(value, str) else value.decode("utf-8-sig", "replace")


def _read(node: Node, value: str | bytes) -> Any:
    node = nodes.without_notes(node)
    if isinstance(node, nodes.Union):
        from .coerce import fits

        members = [nodes.without_notes(member) for member in node.members]
        has_text = any(isinstance(each, nodes.Scalar) and each.kind is str for each in members)
        for member in members:
            # In a union with str, "none" and the empty string are text, not null.
            if has_text and isinstance(member, nodes.Null):
                continue
            read = _read(member, value)
            if fits(member, read):
                return read
        return _as_text(value)
    if isinstance(node, nodes.Scalar) and node.kind in nodes.BYTES_TYPES:
        from base64 import b64encode

        return b64encode(value if isinstance(value, bytes) else value.encode()).decode()
    text = _as_text(value)
    if not isinstance(value, bytes) or isinstance(node, nodes.Scalar | nodes.Choice | nodes.Custom):
        return _READ[type(node)](node, text)
    if isinstance(node, nodes.Array | nodes.Fixed):
        return _items_of_file(node, value)
    return _json(text)


def _items_of_file(node: nodes.Array | nodes.Fixed, content: bytes) -> Any:
    """Read JSON, or one item per line; for a list of bytes, the file is the only item."""
    if isinstance(node, nodes.Array) and _takes_bytes(node.item):
        return [_read(node.item, content)]
    text = _as_text(content)
    if text.lstrip().startswith("["):
        return _json(text)
    lines = text.replace("\r\n", "\n").split("\n")
    items = _read_items(node, [line for line in lines if line.strip()])
    return text if items is None else items


def _json(text: str) -> Any:
    try:
        return load(text.encode())
    except (ValueError, msgspec.ValidationError):
        return text


def _scalar(node: nodes.Scalar, text: str) -> Any:
    if node.kind is bool:
        word = text.strip().lower()
        return True if word in _YES else False if word in _NO else text
    if node.kind in (int, float):
        # Parsed by Python, which also accepts `+7` and `1_000`.
        digits = text.strip()
        try:
            if node.kind is float:
                return float(digits) if math.isfinite(float(digits)) else text
            number = float(digits) if "." in digits or "e" in digits.lower() else int(digits)
            return int(number) if number == int(number) else text
        except (ValueError, OverflowError):
            return text
    # A file may end with a line break, which only text keeps.
    return text if node.kind is str else text.strip()


def _null(node: nodes.Null, text: str) -> Any:
    return None if text.strip().lower() in _NONE else text


def _choice(node: nodes.Choice, text: str) -> Any:
    values = [value for value, _ in node.values]
    for spelling in (text, text.strip()):
        if spelling in values:
            return spelling
    for value in values:
        if value is None and text.strip().lower() in _NONE:
            return None
        if not isinstance(value, str) and _scalar(nodes.Scalar(type(value)), text) == value:
            return value
    return text


def _array(node: nodes.Array | nodes.Fixed, text: str) -> Any:
    if text.lstrip().startswith("["):
        return _json(text)
    parts = [part.strip() for part in text.split(",")] if text.strip() else []
    items = _read_items(node, parts)
    return text if items is None else items


def _read_items(node: nodes.Array | nodes.Fixed, parts: list[str]) -> list[Any] | None:
    """Return the items, or None if a tuple has a different length."""
    if isinstance(node, nodes.Array):
        return [_read(node.item, part) for part in parts]
    if len(parts) != len(node.items):
        return None
    return [_read(kind, part) for kind, part in zip(node.items, parts, strict=True)]


def _record(node: nodes.Record, text: str) -> Any:
    if text.lstrip().startswith(("{", "[")):
        return _json(text)
    parts = [part.strip() for part in text.split(",")]
    if not node.array or node.tag or not node.min_items <= len(parts) <= len(node.fields):
        return text
    return [_read(field.node, part) for field, part in zip(node.fields, parts, strict=False)]


def _object(node: Node, text: str) -> Any:
    return _json(text) if text.lstrip().startswith(("{", "[")) else text


def _anything(node: nodes.Anything | nodes.Model, text: str) -> Any:
    return _json(text)


def _custom(node: nodes.Custom, text: str) -> Any:
    return text.strip() if nodes.kinds(node) == {"string"} else _json(text)


_READ: dict[type[Node], Callable[[Any, str], Any]] = {
    nodes.Anything: _anything,
    nodes.Null: _null,
    nodes.Scalar: _scalar,
    nodes.Choice: _choice,
    nodes.Array: _array,
    nodes.Fixed: _array,
    nodes.Mapping: _object,
    nodes.Record: _record,
    nodes.Model: _anything,
    nodes.Custom: _custom,
}
