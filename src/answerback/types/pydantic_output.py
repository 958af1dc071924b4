"""Encodes and checks return values that contain pydantic models.

A model may refuse its own JSON (aliases, computed fields), so models are checked as Python
values, not by decoding their text. Parts without a model are checked by `OutputCheck`, and
their text is inserted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from . import nodes
from .describe import describe
from .json_text import ENCODER, MAX_DEPTH, is_too_deep
from .nodes import Node
from .output import OutputCheck, may_be_not_finite, refuse_unencodable
from .problems import InvalidOutput, dict_item, item, member
from .pydantic_types import write_model
from .value_builder import make_record

# The data to encode, and the checked value.
Written = tuple[Any, Any]


class ModelOutputCheck:
    """An encoder and checker for a type that contains pydantic models."""

    def __init__(self, node: Node, *, nan_is_null: bool = False) -> None:
        self._node = node
        self.nan_is_null = nan_is_null
        self._checks = {
            id(each): OutputCheck(each, nan_is_null=nan_is_null)
            for each in nodes.reachable(node)
            if not nodes.has_models(each)
        }

    def run(self, value: Any) -> tuple[bytes, Any]:
        """Return the text of *value*, and the checked value."""
        try:
            data, checked = self.write(self._node, value, "")
            encoded = ENCODER.encode(data)
        except InvalidOutput:
            raise
        except RecursionError:
            raise InvalidOutput("", f"nested deeper than {MAX_DEPTH} levels") from None
        except Exception as error:
            problem = f"{type(value).__name__} cannot be written as JSON"
            raise InvalidOutput("", problem) from error
        if may_be_not_finite(value, encoded, nan_is_null=self.nan_is_null):
            refuse_unencodable(value, nan_is_null=self.nan_is_null)
        if is_too_deep(encoded):
            raise InvalidOutput("", f"nested deeper than {MAX_DEPTH} levels")
        return encoded, checked

    def write(self, node: Node, value: Any, path: str) -> Written:
        """Return the data to encode for *value*, and the checked value."""
        check = self._checks.get(id(node))
        if check is None:
            return _WRITE[type(node)](self, node, value, path)
        try:
            encoded, checked = check.run(value)
        except InvalidOutput as error:
            raise error.below(path) from error.__cause__
        return msgspec.Raw(encoded), checked


def _mismatch(node: Node, value: Any, path: str) -> InvalidOutput:
    return InvalidOutput(path, f"expected {describe(node)}, got {type(value).__name__}")


def _array(check: ModelOutputCheck, node: nodes.Array, value: Any, path: str) -> Written:
    minimum, maximum = node.limits.min_length or 0, node.limits.max_length
    if not isinstance(value, list | tuple | set | frozenset) or len(value) < minimum:
        raise _mismatch(node, value, path)
    if maximum is not None and len(value) > maximum:
        raise _mismatch(node, value, path)
    pairs = [check.write(node.item, each, item(path, n)) for n, each in enumerate(value)]
    return [data for data, _ in pairs], node.container(checked for _, checked in pairs)


def _fixed(check: ModelOutputCheck, node: nodes.Fixed, value: Any, path: str) -> Written:
    if not isinstance(value, list | tuple) or len(value) != len(node.items):
        raise _mismatch(node, value, path)
    kinds = enumerate(zip(node.items, value, strict=True))
    pairs = [check.write(kind, each, item(path, n)) for n, (kind, each) in kinds]
    return [data for data, _ in pairs], tuple(checked for _, checked in pairs)


def _mapping(check: ModelOutputCheck, node: nodes.Mapping, value: Any, path: str) -> Written:
    if not isinstance(value, dict):
        raise _mismatch(node, value, path)
    # The keys are checked in a separate dict, with null for every value.
    keys = nodes.Mapping(node.key, nodes.Anything(), node.limits)
    encoded, checked_keys = OutputCheck(keys).run(dict.fromkeys(value))
    pairs = [check.write(node.value, each, dict_item(path, key)) for key, each in value.items()]
    names = msgspec.json.decode(encoded)
    data = dict(zip(names, (data for data, _ in pairs), strict=True))
    return data, dict(zip(checked_keys, (checked for _, checked in pairs), strict=True))


def _record(check: ModelOutputCheck, node: nodes.Record, value: Any, path: str) -> Written:
    present = _present_fields(node, value, path)
    data: dict[str, Any] = {}
    values: dict[str, Any] = {}
    for field in node.fields:
        field_path = member(path, field.json_name)
        if field.name not in present:
            if field.required:
                raise InvalidOutput(field_path, "missing")
            continue
        data[field.json_name], values[field.name] = check.write(
            field.node, present[field.name], field_path
        )
    if node.tag is not None:
        data = {node.tag[0]: node.tag[1], **data}
    return list(data.values()) if node.array else data, make_record(node, values)


def _present_fields(node: nodes.Record, value: Any, path: str) -> dict[str, Any]:
    """Return the values of the declared fields, by name."""
    if isinstance(value, dict):
        fields = [field for field in node.fields if field.json_name in value]
        return {field.name: value[field.json_name] for field in fields}
    is_array = node.array and node.tag is None and isinstance(value, list)
    if is_array and len(value) <= len(node.fields):
        return {field.name: each for field, each in zip(node.fields, value, strict=False)}
    if node.style == "typeddict" or not isinstance(value, node.cls):
        raise _mismatch(node, value, path)
    found = ((field.name, getattr(value, field.name, msgspec.UNSET)) for field in node.fields)
    return {name: each for name, each in found if each is not msgspec.UNSET}


def _union(check: ModelOutputCheck, node: nodes.Union, value: Any, path: str) -> Written:
    refusals = []
    for kind in sorted(node.members, key=lambda kind: not _is_instance(kind, value)):
        try:
            return check.write(kind, value, path)
        except InvalidOutput as error:
            if _is_instance(kind, value):
                raise
            refusals.append(error)
    if len(refusals) == 1:
        raise refusals[0]
    raise _mismatch(node, value, path)


def _is_instance(node: Node, value: Any) -> bool:
    node = nodes.without_notes(node)
    cls = getattr(node, "cls", None) or getattr(node, "annotation", None)
    return isinstance(cls, type) and not hasattr(cls, "__total__") and isinstance(value, cls)


_WRITE: dict[type[Node], Callable[[ModelOutputCheck, Any, Any, str], Written]] = {
    nodes.Model: lambda check, node, value, path: write_model(node, value, path),
    nodes.Array: _array,
    nodes.Fixed: _fixed,
    nodes.Mapping: _mapping,
    nodes.Record: _record,
    nodes.Union: _union,
    nodes.Noted: lambda check, node, value, path: check.write(node.inner, value, path),
}
