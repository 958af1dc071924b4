"""Classes with named fields: dataclass, attrs, TypedDict, NamedTuple, Struct."""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

# msgspec's own C code asks these, so its view of a class and ours cannot part:
# generics filled in, bases' annotations resolved in their own modules.
from msgspec._utils import (  # type: ignore[attr-defined]
    get_class_annotations,
    get_dataclass_info,
    get_typeddict_info,
)

from .nodes import Field, Node, Record

Read = Callable[[Any, str], Node]


def style_of(cls: Any) -> str | None:
    """What sort of record *cls* is, if it is one."""
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
    """The record without its fields: they may lead back to it."""
    record = Record(annotation, cls, style)
    if style == "struct":
        config = cls.__struct_config__
        record.array = config.array_like
        record.closed = config.forbid_unknown_fields
        record.tag = None if config.tag is None else (config.tag_field, config.tag)
    if style == "namedtuple":
        record.array = record.closed = True
    return record


def read_fields(record: Record, read: Read) -> Iterator[Field]:
    """The fields of *record*, each annotation given to *read* with the field's name."""
    yield from _FIELDS[record.style](record, read)


def _typeddict(record: Record, read: Read) -> Iterator[Field]:
    hints, required = get_typeddict_info(record.annotation)
    for name, hint in hints.items():
        yield Field(name=name, wire=name, node=read(hint, name), required=name in required)


def _dataclass(record: Record, read: Read) -> Iterator[Field]:
    _, infos, defaults, *_ = get_dataclass_info(record.annotation)
    padded = (msgspec.NODEFAULT,) * (len(infos) - len(defaults)) + defaults
    for (name, hint, is_factory), default in zip(infos, padded, strict=True):
        yield Field(
            name=name,
            wire=name,
            node=read(hint, name),
            required=default is msgspec.NODEFAULT,
            default=msgspec.NODEFAULT if is_factory else default,
        )


def _namedtuple(record: Record, read: Read) -> Iterator[Field]:
    hints = get_class_annotations(record.annotation)
    for name in record.cls._fields:
        default = record.cls._field_defaults.get(name, msgspec.NODEFAULT)
        yield Field(
            name=name,
            wire=name,
            node=read(hints.get(name, Any), name),
            required=default is msgspec.NODEFAULT,
            default=default,
        )


def _struct(record: Record, read: Read) -> Iterator[Field]:
    cls = record.cls
    hints = get_class_annotations(record.annotation)
    needed = len(cls.__struct_fields__) - len(cls.__struct_defaults__)
    defaults = (msgspec.NODEFAULT,) * needed + cls.__struct_defaults__
    names = zip(cls.__struct_fields__, cls.__struct_encode_fields__, defaults, strict=True)
    for name, wire, default in names:
        shown = isinstance(default, msgspec._core.Factory) or default is msgspec.UNSET
        yield Field(
            name=name,
            wire=wire,
            node=read(hints[name], name),
            required=default is msgspec.NODEFAULT,
            default=msgspec.NODEFAULT if shown else default,
        )


_FIELDS: dict[str, Callable[[Record, Read], Iterator[Field]]] = {
    "typeddict": _typeddict,
    "dataclass": _dataclass,
    "attrs": _dataclass,
    "namedtuple": _namedtuple,
    "struct": _struct,
}
