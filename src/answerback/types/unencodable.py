"""Finds out why a value cannot be encoded as JSON, and at which path."""

from __future__ import annotations

from collections.abc import Awaitable, Iterator, Mapping
from decimal import Decimal
from math import isfinite
from typing import Annotated, Any

import msgspec

from . import nodes
from .codecs import codec_of_value
from .json_text import ENCODER, MAX_DEPTH, PLAIN_COLLECTIONS, UnencodableType, dump
from .nodes import NAN_AS_NULL, Node
from .problems import InvalidOutput, dict_item, item, member


def with_nan_as_null(annotation: Any) -> Any:
    """Return *annotation*, marked so that its floats may be null."""
    return Annotated[annotation, NAN_AS_NULL]


def nan_to_none(value: Any) -> Any:
    """Return a copy of dicts and lists with None for every non-finite float."""
    if isinstance(value, dict):
        return {key: nan_to_none(each) for key, each in value.items()}
    if isinstance(value, list):
        return [nan_to_none(each) for each in value]
    return None if isinstance(value, float) and not isfinite(value) else value


def floats_or_null(node: Node, copies: dict[int, Node] | None = None) -> Node:
    """Return a copy of the tree in which every float may be null; *copies* maps ids to copies."""
    copies = {} if copies is None else copies
    if id(node) in copies:
        return copies[id(node)]
    match node:
        case nodes.Scalar(kind=kind, limits=limits) if kind is float:
            # This keeps msgspec from using a class's annotations to decode such a field.
            number = nodes.Scalar(float, limits, msgspec_ignores_limits=True)
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
    # The annotation is changed so that the class's schema gets a separate definition.
    copy = msgspec.structs.replace(record, annotation=with_nan_as_null(record.annotation))
    copies[id(record)] = copy
    copy.fields = tuple(
        msgspec.structs.replace(field, node=floats_or_null(field.node, copies))
        for field in record.fields
    )
    return copy


def find_fault(value: Any, *, nan_is_null: bool = False) -> InvalidOutput | None:
    """Return the first fault in *value*; an exception from the author's code becomes its cause.

    With *nan_is_null*, a float may be NaN, but a Decimal may not, because it is a string in JSON.
    """
    return _find(value, "", (), Decimal if nan_is_null else (float, Decimal))


def _fault(path: str, message: str, cause: Exception | None = None) -> InvalidOutput:
    fault = InvalidOutput(path, message)
    fault.__cause__ = cause
    return fault


def _find(value: Any, path: str, containers: tuple[int, ...], finite: Any) -> InvalidOutput | None:
    """Find a fault at *path*; *containers* has the ids of the values around *value*.

    Numbers of the types in *finite* must be finite.
    """
    try:
        if (codec := codec_of_value(value)) is not None:
            value = codec.encode(value)
    except Exception as error:  # noqa: BLE001 -- an author's function may raise any exception
        return _fault(path, f"{type(value).__name__} cannot be encoded", error)
    if isinstance(value, finite) and not Decimal(value).is_finite():
        return _fault(path, "a number that is not finite")
    try:
        members = list(_members(value, path))
    except Exception as error:  # noqa: BLE001 -- an author's property may raise any exception
        return _fault(path, f"{type(value).__name__} cannot be read", error)
    if not members:
        return _leaf_fault(value, path)
    if id(value) in containers:
        return _fault(path, "a reference cycle: the value contains itself")
    if len(containers) >= MAX_DEPTH:
        return _fault(path, f"nested deeper than {MAX_DEPTH} levels")
    around = (*containers, id(value))
    for member_path, key, each in members:
        try:
            ENCODER.encode({key: None})
        except Exception:  # noqa: BLE001 -- msgspec raises several classes for keys
            message = f"a key of type {type(key).__name__}, which JSON does not support"
            return _fault(member_path, message)
        if (fault := _find(each, member_path, around, finite)) is not None:
            return fault
    return None


def _members(value: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    """Yield the path, key and value of each member, item or field."""
    if isinstance(value, Mapping):
        yield from ((dict_item(path, key), key, each) for key, each in value.items())
    elif isinstance(value, (list, tuple, set, frozenset, *PLAIN_COLLECTIONS)):
        yield from ((item(path, n), n, each) for n, each in enumerate(value))
    elif hasattr(value, "__pydantic_serializer__"):
        from .pydantic_types import to_plain

        dumped, plain = dump(value), to_plain(value)
        pairs = [("root", dumped)]
        if isinstance(dumped, dict) and isinstance(plain, dict):
            # pydantic writes some non-finite numbers as null, so they are missing from `dumped`.
            numbers = (float, Decimal, list, dict)
            others = [(name, each) for name, each in plain.items() if isinstance(each, numbers)]
            pairs = [*dumped.items(), *others]
        yield from ((member(path, name), name, each) for name, each in pairs)
    elif not isinstance(value, type):
        kind = type(value)
        names = [
            *getattr(kind, "__struct_fields__", ()),
            *getattr(kind, "__dataclass_fields__", ()),
            *(field.name for field in getattr(kind, "__attrs_attrs__", ())),
        ]
        for name in names:
            if hasattr(value, name):
                yield member(path, name), name, getattr(value, name)


def _leaf_fault(value: Any, path: str) -> InvalidOutput | None:
    try:
        ENCODER.encode(value)
    except UnicodeEncodeError:
        return _fault(path, "text with an unpaired surrogate, which UTF-8 cannot encode")
    except UnencodableType:
        hint = "; wrap it in list(…)" if isinstance(value, Iterator) else ""
        if isinstance(value, Awaitable):
            hint = "; write await before the call"
        return _fault(path, f"{type(value).__name__} cannot be written as JSON{hint}")
    except Exception as error:  # noqa: BLE001 -- from msgspec, or from an author's class
        # The error's text is left out, because it may contain the value.
        return _fault(path, f"{type(value).__name__} cannot be written as JSON", error)
    return None
