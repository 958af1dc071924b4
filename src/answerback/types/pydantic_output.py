"""Return values with pydantic models in them: written by pydantic, checked by its own rules.

A model's JSON need not be JSON that the model takes (aliases, computed fields), so these
are checked as Python values, on the way down to the models; what holds no model is checked
as everything else is, and its text put in place.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from . import nodes
from .decode_hooks import make_record
from .describe import describe
from .encoding import ENCODER
from .json_text import DEEPEST, is_too_deep
from .nodes import Node
from .output import Check, has_models, may_be_not_finite, refuse_faults
from .problems import InvalidOutput, item, member
from .pydantic_types import write_model

# What is sent, and the checked value.
Written = tuple[Any, Any]


class ModelCheck:
    """How values of a type with models in it are written and checked."""

    def __init__(self, node: Node) -> None:
        self._node = node
        below = list(nodes.reachable(node))
        self._checks = {id(each): Check(each) for each in below if not has_models(each)}

    def run(self, value: Any) -> tuple[bytes, Any]:
        """The text of *value* and the checked value."""
        try:
            data, checked = self.write(self._node, value, "")
            encoded = ENCODER.encode(data)
        except InvalidOutput:
            raise
        except RecursionError:
            raise InvalidOutput("", f"nested deeper than {DEEPEST} levels") from None
        except Exception as error:
            problem = f"{type(value).__name__} cannot be written as JSON"
            raise InvalidOutput("", problem) from error
        if may_be_not_finite(encoded):
            refuse_faults(value)
        if is_too_deep(encoded):
            raise InvalidOutput("", f"nested deeper than {DEEPEST} levels")
        return encoded, checked

    def write(self, node: Node, value: Any, path: str) -> Written:
        """What is sent for *value*, and the checked value."""
        check = self._checks.get(id(node))
        if check is None:
            return _WRITE[type(node)](self, node, value, path)
        try:
            encoded, checked = check.run(value)
        except InvalidOutput as error:
            raise error.below(path) from error.__cause__
        return msgspec.Raw(encoded), checked


def _wrong(node: Node, value: Any, path: str) -> InvalidOutput:
    return InvalidOutput(path, f"expected {describe(node)}, got {type(value).__name__}")


def _model(check: ModelCheck, node: nodes.Model, value: Any, path: str) -> Written:
    return write_model(node, value, path)


def _array(check: ModelCheck, node: nodes.Array, value: Any, path: str) -> Written:
    least, most = node.limits.min_length or 0, node.limits.max_length
    if not isinstance(value, list | tuple | set | frozenset) or len(value) < least:
        raise _wrong(node, value, path)
    if most is not None and len(value) > most:
        raise _wrong(node, value, path)
    pairs = [check.write(node.item, each, item(path, n)) for n, each in enumerate(value)]
    return [data for data, _ in pairs], node.container(checked for _, checked in pairs)


def _fixed(check: ModelCheck, node: nodes.Fixed, value: Any, path: str) -> Written:
    if not isinstance(value, list | tuple) or len(value) != len(node.items):
        raise _wrong(node, value, path)
    kinds = enumerate(zip(node.items, value, strict=True))
    pairs = [check.write(kind, each, item(path, n)) for n, (kind, each) in kinds]
    return [data for data, _ in pairs], tuple(checked for _, checked in pairs)


def _mapping(check: ModelCheck, node: nodes.Mapping, value: Any, path: str) -> Written:
    if not isinstance(value, dict):
        raise _wrong(node, value, path)
    keys = nodes.Mapping(node.key, nodes.Anything(), node.limits)
    encoded, checked_keys = Check(keys).run(dict.fromkeys(value))
    pairs = [check.write(node.value, each, member(path, key)) for key, each in value.items()]
    names = msgspec.json.decode(encoded)
    data = dict(zip(names, (data for data, _ in pairs), strict=True))
    return data, dict(zip(checked_keys, (checked for _, checked in pairs), strict=True))


def _record(check: ModelCheck, node: nodes.Record, value: Any, path: str) -> Written:
    held = _held(node, value, path)
    data: dict[str, Any] = {}
    values: dict[str, Any] = {}
    for field in node.fields:
        if field.name not in held:
            if field.required:
                raise InvalidOutput(member(path, field.wire), "missing")
            continue
        spot = member(path, field.wire)
        data[field.wire], values[field.name] = check.write(field.node, held[field.name], spot)
    if node.tag is not None:
        data = {node.tag[0]: node.tag[1], **data}
    return list(data.values()) if node.array else data, make_record(node, values)


def _held(node: nodes.Record, value: Any, path: str) -> dict[str, Any]:
    """The values of the declared fields, by name."""
    if isinstance(value, dict):
        return {field.name: value[field.wire] for field in node.fields if field.wire in value}
    if node.style == "typeddict" or not isinstance(value, node.cls):
        raise _wrong(node, value, path)
    found = ((field.name, getattr(value, field.name, msgspec.UNSET)) for field in node.fields)
    return {name: each for name, each in found if each is not msgspec.UNSET}


def _union(check: ModelCheck, node: nodes.Union, value: Any, path: str) -> Written:
    refusals = []
    for kind in sorted(node.members, key=lambda kind: not _is_own(kind, value)):
        try:
            return check.write(kind, value, path)
        except InvalidOutput as error:
            if _is_own(kind, value):
                raise
            refusals.append(error)
    if len(refusals) == 1:
        raise refusals[0]
    raise _wrong(node, value, path)


def _is_own(node: Node, value: Any) -> bool:
    node = nodes.plain(node)
    cls = getattr(node, "cls", None) or getattr(node, "annotation", None)
    return isinstance(cls, type) and not hasattr(cls, "__total__") and isinstance(value, cls)


_WRITE: dict[type[Node], Callable[[ModelCheck, Any, Any, str], Written]] = {
    nodes.Model: _model,
    nodes.Array: _array,
    nodes.Fixed: _fixed,
    nodes.Mapping: _mapping,
    nodes.Record: _record,
    nodes.Union: _union,
    nodes.Noted: lambda check, node, value, path: check.write(node.inner, value, path),
}
