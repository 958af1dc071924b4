"""Reads a class's fields: dataclass, attrs, TypedDict, NamedTuple, Struct."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

# msgspec's C code calls these private functions too, so it and we see the same fields: they
# fill in generics, and resolve the annotations of base classes in the bases' own modules.
from msgspec._utils import (  # type: ignore[attr-defined]
    get_class_annotations,
    get_dataclass_info,
    get_typeddict_info,
)

from .annotated import is_field_info
from .nodes import Field, Node, Record
from .problems import UnservableType

# Reads the named field's annotation.
ReadField = Callable[[Any, str], Node]


def style_of(cls: Any) -> str | None:
    """Return which kind of record *cls* is, or None if it is not a record."""
    if not isinstance(cls, type):
        return None
    if issubclass(cls, msgspec.Struct):
        return "struct"
    if hasattr(cls, "__dataclass_fields__"):
        return "dataclass"
    if hasattr(cls, "__attrs_attrs__"):
        return "attrs"
    if issubclass(cls, dict) and hasattr(cls, "__total__"):
        return "typeddict"
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        return "namedtuple"
    return None


def start_record(annotation: Any, cls: Any, style: str) -> Record:
    """Return the record without its fields, because their types may contain the record."""
    record = Record(annotation, cls, style)
    if style == "struct":
        config = cls.__struct_config__
        record.array = config.array_like
        record.closed = config.forbid_unknown_fields
        record.tag = None if config.tag is None else (config.tag_field, config.tag)
    if style == "namedtuple":
        record.array = record.closed = True
    return record


def read_fields(record: Record, read: ReadField) -> Iterator[Field]:
    """Yield the fields of *record*; *read* reads their annotations."""
    yield from _FIELDS[record.style](record, read)


def refuse_field_defaults(record: Record, where: str) -> None:
    """Raise UnservableType for a field with pydantic's `Field(...)` as its default.

    Such a class is not pydantic's, so each object would have the `Field` itself as its value.
    """
    for field in record.fields:
        if is_field_info(field.default):
            raise UnservableType(
                f"{where}.{field.name}",
                f"pydantic's Field as a default works in pydantic's own classes only; "
                f"write {field.name}: Annotated[T, Field(...)], or use pydantic.dataclasses",
            )


def _typeddict(record: Record, read: ReadField) -> Iterator[Field]:
    hints, required = get_typeddict_info(record.annotation)
    for name, hint in hints.items():
        yield Field(name=name, json_name=name, node=read(hint, name), required=name in required)


def _dataclass(record: Record, read: ReadField) -> Iterator[Field]:
    _, infos, defaults, *_ = get_dataclass_info(record.annotation)
    padded = (msgspec.NODEFAULT,) * (len(infos) - len(defaults)) + defaults
    for (name, hint, is_factory), default in zip(infos, padded, strict=True):
        yield Field(
            name=name,
            json_name=name,
            node=read(hint, name),
            required=default is msgspec.NODEFAULT,
            default=msgspec.NODEFAULT if is_factory else default,
        )


def _namedtuple(record: Record, read: ReadField) -> Iterator[Field]:
    hints = get_class_annotations(record.annotation)
    for name in record.cls._fields:
        default = record.cls._field_defaults.get(name, msgspec.NODEFAULT)
        yield Field(
            name=name,
            json_name=name,
            node=read(hints.get(name, Any), name),
            required=default is msgspec.NODEFAULT,
            default=default,
        )


def _struct(record: Record, read: ReadField) -> Iterator[Field]:
    cls = record.cls
    hints = get_class_annotations(record.annotation)
    without_default = len(cls.__struct_fields__) - len(cls.__struct_defaults__)
    defaults = (msgspec.NODEFAULT,) * without_default + cls.__struct_defaults__
    names = zip(cls.__struct_fields__, cls.__struct_encode_fields__, defaults, strict=True)
    for name, json_name, default in names:
        not_json = isinstance(default, msgspec._core.Factory) or default is msgspec.UNSET
        yield Field(
            name=name,
            json_name=json_name,
            node=read(hints[name], name),
            required=default is msgspec.NODEFAULT,
            default=msgspec.NODEFAULT if not_json else default,
        )


_FIELDS: dict[str, Callable[[Record, ReadField], Iterator[Field]]] = {
    "typeddict": _typeddict,
    "dataclass": _dataclass,
    "attrs": _dataclass,
    "namedtuple": _namedtuple,
    "struct": _struct,
}
