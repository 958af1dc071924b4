"""Checks at registration that a parameter's default is a value of its type.

Only the type counts: pydantic, like Python, lets a default be outside the limits.
"""

from __future__ import annotations

import collections.abc as abc
from collections.abc import Callable
from decimal import Decimal
from enum import Enum
from typing import Any

import msgspec

from ..core.json_value import is_integer, is_number
from . import nodes
from .arguments import Parameter
from .describe import name_of, shown, without_metadata
from .nodes import Node
from .problems import UnservableType


def check_default(parameter: Parameter, node: Node, where: str) -> None:
    """Raise UnservableType, which names *where*, for a result-only type or a wrong default."""
    _refuse_results(node, where)
    default = parameter.default
    if default is msgspec.NODEFAULT or default is msgspec.UNSET or _fits(node, default):
        return
    raise UnservableType(where, _advice(parameter, default))


def _refuse_results(node: Node, where: str) -> None:
    for each in nodes.reachable(node):
        if isinstance(each, nodes.Custom) and each.codec.decode is None:
            name = each.cls.__name__
            problem = f"{name} is registered without decode, for results only; give it one"
            raise UnservableType(where, problem)


def _advice(parameter: Parameter, default: Any) -> str:
    name, annotation = parameter.target, _type_text(parameter.annotation)
    problem = f"its default {shown(default)} is not {annotation}"
    instead = _member_of_enum(parameter.annotation, default)
    if instead is not None:
        return f"{problem}; write {instead}"
    if not isinstance(default, bool | int | float | str):
        return f"{problem}; write a default of that type"
    wider = f"{annotation} | {type(default).__name__}"
    return f"{problem}; write {name}: {wider}, or another default"


def _type_text(annotation: Any) -> str:
    """Return a type as its author would write it, without metadata."""
    bare = without_metadata(annotation)
    return bare.__name__ if isinstance(bare, type) else name_of(bare).replace("typing.", "")


def _member_of_enum(annotation: Any, default: Any) -> str | None:
    bare = without_metadata(annotation)
    if isinstance(bare, type) and issubclass(bare, Enum):
        return next((str(each) for each in bare if each.value == default), None)
    return None


def _fits(node: Node, value: Any) -> bool:
    return _FITS[type(node)](node, value)


def _scalar(node: nodes.Scalar, value: Any) -> bool:
    if node.kind is float or node.kind is Decimal:
        return is_number(value) or isinstance(value, Decimal)
    if node.kind is int:
        return is_integer(value)
    if node.kind in nodes.BYTES_TYPES:
        return isinstance(value, nodes.BYTES_TYPES)
    return isinstance(value, node.kind)


def _choice(node: nodes.Choice, value: Any) -> bool:
    # A member of a StrEnum or IntEnum equals its value, and functions treat both alike.
    return any(type(value) is type(each) and value == each for _, each in node.values) or any(
        isinstance(each, Enum) and each == value for _, each in node.values
    )


def _array(node: nodes.Array, value: Any) -> bool:
    # A tuple for a list is a common default, because it cannot be changed.
    if not isinstance(value, list | tuple | set | frozenset):
        return False
    return all(_fits(node.item, each) for each in value)


def _fixed(node: nodes.Fixed, value: Any) -> bool:
    if not isinstance(value, list | tuple) or len(value) != len(node.items):
        return False
    return all(_fits(kind, each) for kind, each in zip(node.items, value, strict=True))


def _mapping(node: nodes.Mapping, value: Any) -> bool:
    if not isinstance(value, abc.Mapping):
        return False
    return all(_fits(node.value, each) for each in value.values())


def _record(node: nodes.Record, value: Any) -> bool:
    return isinstance(value, dict if node.style == "typeddict" else node.cls)


def _model(node: nodes.Model, value: Any) -> bool:
    cls = without_metadata(node.annotation)
    if hasattr(cls, "model_fields"):
        return isinstance(value, cls)
    # pydantic reads other types, such as AnyUrl, from text, and does not check their defaults.
    return value is not None or not isinstance(cls, type)


_FITS: dict[type[Node], Callable[[Any, Any], bool]] = {
    nodes.Anything: lambda node, value: True,
    nodes.Null: lambda node, value: value is None,
    nodes.Scalar: _scalar,
    nodes.Choice: _choice,
    nodes.Array: _array,
    nodes.Fixed: _fixed,
    nodes.Mapping: _mapping,
    nodes.Record: _record,
    nodes.Union: lambda node, value: any(_fits(each, value) for each in node.members),
    nodes.Model: _model,
    nodes.Custom: lambda node, value: isinstance(value, node.cls),
    nodes.Noted: lambda node, value: _fits(node.inner, value),
}
