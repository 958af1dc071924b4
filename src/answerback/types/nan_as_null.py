"""Floats that may be null: the types for a tool with `nan="null"`.

The mark is in a return type's `Annotated` metadata, so that the output check and the
schemas agree. A pydantic model's node is marked too, which `pydantic_types` reads.
"""

from __future__ import annotations

from math import isfinite
from typing import Annotated, Any

import msgspec

from . import nodes
from .nodes import NAN_AS_NULL, Node


def with_nan_as_null(annotation: Any) -> Any:
    """Return *annotation* with the mark."""
    return Annotated[annotation, NAN_AS_NULL]


def nan_to_none(value: Any) -> Any:
    """Return a copy of dicts and lists with None for every float that is not finite."""
    if isinstance(value, dict):
        return {key: nan_to_none(each) for key, each in value.items()}
    if isinstance(value, list):
        return [nan_to_none(each) for each in value]
    return None if isinstance(value, float) and not isfinite(value) else value


def floats_or_null(node: Node, copies: dict[int, Node] | None = None) -> Node:
    """Return a copy of the tree in which every float may be null; *copies* are by id."""
    copies = {} if copies is None else copies
    if id(node) in copies:
        return copies[id(node)]
    match node:
        case nodes.Scalar(kind=kind, limits=limits) if kind is float:
            # As foreign limits, because msgspec must not decode a class with its own annotations.
            number = nodes.Scalar(float, limits, foreign_limits=True)
            return nodes.Union(float | None, (number, nodes.Null()))
        case nodes.Record():
            return _record(node, copies)
        case nodes.Model(annotation=annotation):
            return nodes.Model(annotation, nan_is_null=True)
        case nodes.Array():
            return msgspec.structs.replace(node, item=floats_or_null(node.item, copies))
        case nodes.Fixed(items=items):
            return nodes.Fixed(tuple(floats_or_null(each, copies) for each in items))
        case nodes.Mapping():
            return msgspec.structs.replace(node, value=floats_or_null(node.value, copies))
        case nodes.Union(members=members):
            changed = tuple(floats_or_null(each, copies) for each in members)
            return nodes.Union(node.annotation, changed)
        case nodes.Noted():
            return msgspec.structs.replace(node, inner=floats_or_null(node.inner, copies))
    return node


def _may_have_nan(node: Node) -> bool:
    is_float = isinstance(node, nodes.Scalar) and node.kind is float
    return is_float or isinstance(node, nodes.Model)


def _record(record: nodes.Record, copies: dict[int, Node]) -> Node:
    below = nodes.reachable(record)
    if not any(map(_may_have_nan, below)):
        return record
    # Another annotation, so that the class's schema gets a separate definition.
    copy = msgspec.structs.replace(record, annotation=with_nan_as_null(record.annotation))
    copies[id(record)] = copy
    copy.fields = tuple(
        msgspec.structs.replace(field, node=floats_or_null(field.node, copies))
        for field in record.fields
    )
    return copy
