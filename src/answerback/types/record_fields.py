"""Reads a class's fields: dataclass, attrs, TypedDict, NamedTuple, Struct."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Annotated, Any, get_args, get_type_hints

import msgspec

# msgspec's C code calls these private functions too, so it and we see the same fields: they
# fill in generics, and resolve the annotations of base classes in the bases' own modules.
from msgspec._utils import (  # type: ignore[attr-defined]
    get_class_annotations,
    get_dataclass_info,
    get_typeddict_info,
)

from ..core.content import block_class, is_result_class
from .annotated import is_field_info
from .nodes import BLOCKS_AS_NAMES, Field, Node, Record
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


def has_blocks(cls: type) -> bool:
    """Return whether the class, or a class in its fields, has a field for a content block."""
    pending: list[Any] = [cls]
    seen: set[int] = set()
    while pending:
        each = pending.pop()
        pending += get_args(each)
        if not isinstance(each, type) or id(each) in seen or is_result_class(each):
            continue
        seen.add(id(each))
        if block_class(each) is not None:
            return True
        pending += _field_types(each)
    return False


def _field_types(cls: Any) -> list[Any]:
    if hasattr(cls, "model_fields"):
        return [field.annotation for field in cls.model_fields.values()]
    try:
        return list(get_type_hints(cls).values())
    except (NameError, TypeError):
        return []


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


def mark_record(record: Record) -> None:
    """Change a record with content blocks: its data is a plain object with their names."""
    # Another annotation, so that the class's schema gets a separate definition.
    record.annotation = Annotated[record.annotation, BLOCKS_AS_NAMES]
    if not record.array:
        record.style = "typeddict"
    for field in record.fields:
        if field.default is not None:
            # It may be a block, which the schema must not show.
            field.default = msgspec.NODEFAULT


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
        _prepare_name(name)
        yield Field(name=name, json_name=name, node=read(hint, name), required=name in required)


def _dataclass(record: Record, read: ReadField) -> Iterator[Field]:
    _, infos, defaults, *_ = get_dataclass_info(record.annotation)
    padded = (msgspec.NODEFAULT,) * (len(infos) - len(defaults)) + defaults
    for (name, hint, is_factory), default in zip(infos, padded, strict=True):
        _prepare_name(name)
        yield Field(
            name=name,
            json_name=name,
            node=read(hint, name),
            required=default is msgspec.NODEFAULT,
            default=msgspec.NODEFAULT if is_factory else default,
        )


def _prepare_name(name: str) -> None:
    """Encode a name once if it is not ASCII: msgspec does not find it in JSON before."""
    # https://github.com/msgspec/msgspec/pull/1126
    if not name.isascii():
        msgspec.json.encode(name)


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


def _model(record: Record, read: ReadField) -> Iterator[Field]:
    for name, field in record.cls.model_fields.items():
        yield Field(
            name=name,
            json_name=field.serialization_alias or field.alias or name,
            node=read(Annotated[field.annotation, field], name),
            required=field.is_required(),
        )
    for name, field in record.cls.model_computed_fields.items():
        node = read(field.return_type, name)
        yield Field(name=name, json_name=field.alias or name, node=node, required=False)


_FIELDS: dict[str, Callable[[Record, ReadField], Iterator[Field]]] = {
    "typeddict": _typeddict,
    "dataclass": _dataclass,
    "attrs": _dataclass,
    "namedtuple": _namedtuple,
    "struct": _struct,
    "model": _model,
}
