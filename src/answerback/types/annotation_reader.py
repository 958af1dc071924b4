"""Reads annotations into a tree of nodes, and refuses types that cannot be served.

It also reads the fields of all kinds of records. It runs at registration and has to be fast, so it
builds no msgspec decoders.
"""

from __future__ import annotations

import collections.abc as abc
import enum
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Annotated, Any, get_args, get_type_hints
from uuid import UUID

import msgspec

# msgspec's C code also calls these private functions, so we see the same fields as msgspec: they
# fill in generics, and resolve the annotations of base classes in those classes' own modules.
from msgspec._utils import (  # type: ignore[attr-defined]
    get_class_annotations,
    get_dataclass_info,
    get_typeddict_info,
)

from ..core.content import block_class, is_result_class
from . import nodes
from .codecs import codec_for
from .nodes import (
    BLOCK_NAME,
    BLOCKS_AS_NAMES,
    BYTES_TYPES,
    NAN_AS_NULL,
    NO_LIMITS,
    NO_NOTES,
    Field,
    Node,
    Notes,
    Record,
    ValueLimits,
    has_mark,
    without_mark,
)
from .problems import UnservableType, explain_unservable, name_of

_LIMIT_NAMES = ("ge", "gt", "le", "lt", "multiple_of", "min_length", "max_length", "pattern")
_NOTE_NAMES = ("title", "description", "examples")
# Of two limits with the same name, the narrower one applies.
_NARROWER: dict[str, Any] = {
    "ge": max,
    "gt": max,
    "min_length": max,
    "le": min,
    "lt": min,
    "max_length": min,
}


class Metadata(msgspec.Struct, kw_only=True):
    """The limits and notes from one type's `Annotated` metadata."""

    limits: ValueLimits = NO_LIMITS
    notes: Notes = NO_NOTES
    msgspec_ignores_limits: bool = False
    """Some of the limits are not in a msgspec `Meta`, so msgspec does not apply them."""
    replaced_patterns: tuple[str, ...] = ()
    """Patterns kept as checks, because a later pattern is the limit."""
    needs_pydantic: bool = False
    """The metadata has objects that only pydantic can apply: a validator, `strip_whitespace`."""


def _flatten(items: Iterable[Any]) -> Iterator[Any]:
    for item in items:
        if getattr(item, "__is_annotated_types_grouped_metadata__", False):
            yield from _flatten(item)
        elif is_field_info(item):
            yield from _flatten(item.metadata)
            yield item
        else:
            yield item


def is_field_info(item: Any) -> bool:
    """Return whether *item* is pydantic's `Field(...)`, or a subclass such as FastAPI's `Query`."""
    return any(
        cls.__name__ == "FieldInfo" and cls.__module__.startswith("pydantic.")
        for cls in type(item).__mro__
    )


def read_metadata(items: Iterable[Any]) -> Metadata:
    """Read the items of an `Annotated`, innermost first."""
    metadata = Metadata()
    for item in _flatten(items):
        library = type(item).__module__.partition(".")[0]
        if isinstance(item, msgspec.Meta):
            _add_limits(metadata, item, (*_LIMIT_NAMES, "tz"))
            _add_notes(metadata, item, item.extra_json_schema)
        elif isinstance(item, str):
            metadata.notes = msgspec.structs.replace(metadata.notes, description=item)
        elif is_field_info(item):
            extra = item.json_schema_extra if isinstance(item.json_schema_extra, dict) else {}
            deprecated = {"deprecated": True} if getattr(item, "deprecated", None) else {}
            _add_notes(metadata, item, {**deprecated, **extra})
        elif type(item).__name__ == "Doc":
            metadata.notes = msgspec.structs.replace(metadata.notes, description=item.documentation)
        elif library == "annotated_types":
            metadata.msgspec_ignores_limits = True
            match type(item).__name__:
                case "Predicate" | "Not":
                    _add_check(metadata, item.func if type(item).__name__ == "Predicate" else item)
                case "Timezone":
                    aware = item.tz is not None
                    metadata.limits = msgspec.structs.replace(metadata.limits, tz=aware)
                case _:
                    _add_limits(metadata, item, _LIMIT_NAMES)
        elif library in ("pydantic", "pydantic_core"):
            members = getattr(item, "__dict__", {})
            names = {name for name, value in members.items() if value is not None}
            if names and names <= set(_LIMIT_NAMES):
                metadata.msgspec_ignores_limits = True
                _add_limits(metadata, item, _LIMIT_NAMES)
            else:
                metadata.needs_pydantic = True
    return metadata


def _add_limits(metadata: Metadata, item: Any, names: tuple[str, ...]) -> None:
    found = {name: value for name in names if (value := getattr(item, name, None)) is not None}
    for name in found.keys() & _NARROWER.keys():
        earlier = getattr(metadata.limits, name)
        found[name] = found[name] if earlier is None else _NARROWER[name](earlier, found[name])
    # A second pattern or factor replaces the first, which stays as a check.
    pattern, factor = metadata.limits.pattern, metadata.limits.multiple_of
    if "pattern" in found:
        found["pattern"] = getattr(found["pattern"], "pattern", found["pattern"])
        if pattern is not None:
            from .patterns import searcher

            metadata.replaced_patterns += (pattern,)
            _add_check(metadata, lambda value: searcher(pattern)(value) is not None)
    if "multiple_of" in found and factor is not None:
        _add_check(metadata, lambda value: value % factor == 0)
    if not found:
        return
    limits = msgspec.structs.replace(metadata.limits, **found)
    # `Meta` accepts only one of `ge` and `gt`, and the narrower one implies the other.
    if limits.ge is not None and limits.gt is not None:
        dropped = "ge" if limits.gt >= limits.ge else "gt"
        limits = msgspec.structs.replace(limits, **{dropped: None})
    if limits.le is not None and limits.lt is not None:
        dropped = "le" if limits.lt <= limits.le else "lt"
        limits = msgspec.structs.replace(limits, **{dropped: None})
    metadata.limits = limits


def _add_check(metadata: Metadata, check: Callable[[Any], Any]) -> None:
    checks = (*metadata.limits.checks, check)
    metadata.limits = msgspec.structs.replace(metadata.limits, checks=checks)


def _add_notes(metadata: Metadata, item: Any, extra: dict[str, Any] | None) -> None:
    found = {
        name: value for name in _NOTE_NAMES if (value := getattr(item, name, None)) is not None
    }
    if extra:
        found["extra"] = {**(metadata.notes.extra or {}), **extra}
    metadata.notes = msgspec.structs.replace(metadata.notes, **found)


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
        if hasattr(each, "model_fields"):
            pending += [field.annotation for field in each.model_fields.values()]
            continue
        with suppress(NameError, TypeError):
            pending += get_type_hints(each).values()
    return False


def start_record(annotation: Any, cls: Any, style: str) -> Record:
    """Return the record without its fields, because their types may refer to the record."""
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
    """Return the fields of *record*; *read* reads their annotations."""
    return _FIELDS[record.style](record, read)


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
    """Encode a non-ASCII name once: until then, msgspec does not find it in JSON."""
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


def member_names(cls: Any) -> dict[str, str]:
    """Return a class's attribute names by JSON name; empty if it is not a record."""
    match style_of(cls):
        case "struct" if not cls.__struct_config__.array_like:
            return dict(zip(cls.__struct_encode_fields__, cls.__struct_fields__, strict=True))
        case "dataclass":
            return {name: name for name in cls.__dataclass_fields__}
        case "attrs":
            return {each.name: each.name for each in cls.__attrs_attrs__}
        case "typeddict":
            return {name: name for name in cls.__annotations__}
    fields = getattr(cls, "model_fields", None)
    if not isinstance(cls, type) or not isinstance(fields, dict) or not hasattr(cls, "model_dump"):
        return {}
    return {each.serialization_alias or each.alias or name: name for name, each in fields.items()}


def object_members(value: object) -> dict[str, Any]:
    """Return an object's members by JSON name; empty if it is not a record."""
    if isinstance(value, dict):
        return value
    if isinstance(value, Mapping):
        return dict(value)
    names = member_names(type(value))
    found = {name: getattr(value, attribute, None) for name, attribute in names.items()}
    return {name: each for name, each in found.items() if each is not msgspec.UNSET}


_SCALARS = frozenset(
    {bool, int, float, str, *BYTES_TYPES, datetime, date, time, timedelta, UUID, Decimal}
)
_COMPARISONS = frozenset({"ge", "gt", "le", "lt"})
_NUMBER_LIMITS = _COMPARISONS | {"multiple_of"}
_LENGTHS = frozenset({"min_length", "max_length"})
# The limits that each scalar type accepts; numbers accept _NUMBER_LIMITS.
_SCALAR_LIMITS: dict[type, frozenset[str]] = {
    bool: frozenset(),
    str: _LENGTHS | {"pattern"},
    **dict.fromkeys(BYTES_TYPES, _LENGTHS),
    UUID: frozenset(),
    datetime: _COMPARISONS | {"tz"},
    time: _COMPARISONS | {"tz"},
    date: _COMPARISONS,
    timedelta: _COMPARISONS,
}
_CONTAINERS: dict[Any, type] = {
    list: list,
    abc.Sequence: list,
    abc.MutableSequence: list,
    abc.Collection: list,
    set: set,
    abc.MutableSet: set,
    abc.Set: set,
    frozenset: frozenset,
}
_MAPPINGS: frozenset[Any] = frozenset({dict, abc.Mapping, abc.MutableMapping})
_UNIONS: frozenset[Any] = frozenset({typing.Union, types.UnionType})
_RECURSIVE_ALIAS = "{} contains itself without a class in between; write Any"
_WRAPPERS: frozenset[Any] = frozenset({typing.Final, typing.Required, typing.NotRequired})


def read_type(annotation: Any, where: str = "") -> Node:
    """Return the node tree for *annotation*.

    Raises UnservableType, which names *where*, or NameError for an undefined name.
    """
    if _is_hashable(annotation) and annotation in _PLAIN_NODES:
        return _PLAIN_NODES[annotation]
    try:
        if has_mark(annotation, NAN_AS_NULL):
            from .unencodable import floats_or_null

            return floats_or_null(read_type(without_mark(annotation, NAN_AS_NULL), where))
        if not has_mark(annotation, BLOCKS_AS_NAMES):
            return _Reader().read(annotation, where)
        bare = without_mark(annotation, BLOCKS_AS_NAMES)
        node = _Reader(block_names=True).read(bare, where)
        for each in nodes.reachable(node):
            if isinstance(each, nodes.Record) and holds_blocks(each):
                # Its data is a plain object with the blocks' names. The annotation is changed so
                # that the class's schema gets a separate definition.
                each.annotation = Annotated[each.annotation, BLOCKS_AS_NAMES]
                if not each.array:
                    each.style = "typeddict"
                for field in each.fields:
                    if field.default is not None:
                        # The default may be a block, which the schema must not show.
                        field.default = msgspec.NODEFAULT
        return node
    except RecursionError:
        raise UnservableType(where, _RECURSIVE_ALIAS.format(name_of(annotation))) from None


def holds_blocks(node: Node) -> bool:
    """Return whether the type declares a content block in its data."""
    return any(each is BLOCK_NAME for each in nodes.reachable(node))


def check_type(annotation: Any, where: str) -> None:
    """Raise UnservableType, which names *where*, if *annotation* has no JSON form.

    A name that is not yet defined passes, because the first call reads the annotation again.
    """
    with suppress(NameError):
        read_type(annotation, where)


def is_object(annotation: Any) -> bool:
    """Return whether all of the type's values are JSON objects."""
    return is_object_node(read_type(annotation))


def is_object_node(node: Node) -> bool:
    """Return whether all values of *node* are JSON objects."""
    match node:
        case nodes.Noted(inner=inner):
            return is_object_node(inner)
        case nodes.Union(members=members):
            return all(map(is_object_node, members))
        case nodes.Model():
            from .pydantic_types import is_object_model

            return is_object_model(node)
        case nodes.Record(array=array):
            return not array
    return isinstance(node, nodes.Mapping)


_LIMITING = frozenset(
    {
        *("$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "not", "if", "const", "enum"),
        *("patternProperties", "propertyNames", "maxProperties", "unevaluatedProperties"),
        *("dependentSchemas", "dependentRequired"),
    }
)
"""The keywords that can make a schema refuse an object with an extra member."""


def can_take_member(annotation: Any, name: str) -> bool:
    """Return whether the type is one class whose objects never have a member called *name*."""
    match read_type(annotation):
        case nodes.Record(array=False, fields=fields, tag=tag):
            is_tag = tag is not None and tag[0] == name
            return not is_tag and all(each.json_name != name for each in fields)
        case nodes.Model() | nodes.Noted():
            from .json_schema import output_schema

            schema = output_schema(annotation)
            # Additional members may have any name.
            is_closed = schema.get("additionalProperties", False) is False
            is_plain = is_closed and "properties" in schema and _LIMITING.isdisjoint(schema)
            return is_plain and name not in schema["properties"]
    return False


def _is_hashable(annotation: Any) -> bool:
    try:
        hash(annotation)
    except TypeError:
        return False
    return True


def _unwrap(annotation: Any) -> tuple[Any, tuple[Any, ...]]:
    """Return the type inside Annotated, NewType, aliases and Final, and all their metadata."""
    metadata: tuple[Any, ...] = ()
    while True:
        origin = getattr(annotation, "__origin__", None)
        if hasattr(annotation, "__metadata__"):
            metadata = annotation.__metadata__ + metadata
            annotation = origin
        elif origin in _WRAPPERS or "ReadOnly" in (
            getattr(origin, "_name", None),
            getattr(origin, "__name__", None),
        ):
            annotation = annotation.__args__[0]
        elif type(origin).__name__ == "TypeAliasType":
            annotation = typing.cast(Any, origin).__value__[annotation.__args__]
        elif type(annotation).__name__ == "TypeAliasType":
            annotation = annotation.__value__
        elif hasattr(annotation, "__supertype__"):
            annotation = annotation.__supertype__
        else:
            return annotation, metadata


class _Reader:
    """Reads one annotation, and remembers its classes because they may be recursive."""

    def __init__(self, *, block_names: bool = False) -> None:
        self._block_names = block_names
        self._records: dict[Any, nodes.Record] = {}
        # Inside a generic class, a TypeVar without a type means Any; elsewhere it is a mistake.
        self._record_depth = 0

    def read(self, annotation: Any, where: str, outer: tuple[Any, ...] = ()) -> Node:
        """Read one annotation; *outer* is the metadata of the enclosing union."""
        bare, items = _unwrap(annotation)
        metadata = read_metadata((*outer, *items))
        named = self._named(bare, where) if self._block_names else None
        if named is None and (metadata.needs_pydantic or _is_pydantic(bare)):
            return nodes.Model(annotation)
        if named is not None:
            node = named
        elif typing.get_origin(bare) in _UNIONS:
            node = self._union(bare, where, (*outer, *items))
        else:
            node = self._bare(bare, where, metadata)
        notes = read_metadata(items).notes if outer else metadata.notes
        return node if notes == NO_NOTES else nodes.Noted(node, notes)

    def _named(self, bare: Any, where: str) -> Node | None:
        """Return the node for a content block, or for a pydantic model with a block in it."""
        if not isinstance(bare, type) or is_result_class(bare):
            return None
        if block_class(bare) is not None:
            return BLOCK_NAME
        if not _is_pydantic(bare) or not has_blocks(bare):
            return None
        if "root" in getattr(bare, "model_fields", ()):
            problem = f"{name_of(bare)} has content blocks; write the type inside the RootModel"
            raise UnservableType(where, problem)
        # pydantic would refuse a name in place of the block, so the fields are checked one by one.
        return self._record(bare, bare, style_of(bare) or "model", where)

    def _bare(self, bare: Any, where: str, metadata: Metadata) -> Node:
        if _is_hashable(bare) and bare in _SCALARS:
            return _scalar(bare, where, metadata)
        if isinstance(bare, str):
            raise NameError(f"{where}: {bare!r} is not the name of a type known here")
        if isinstance(bare, typing.ForwardRef):
            # Forward references are already resolved; one that remains is a recursive alias.
            raise UnservableType(where, _RECURSIVE_ALIAS.format(bare.__forward_arg__))
        if isinstance(bare, typing.TypeVar):
            if not self._record_depth:
                raise UnservableType(where, f"{bare} has no type here; write the type itself")
            return nodes.Anything() if bare.__bound__ is None else self.read(bare.__bound__, where)
        origin = typing.get_origin(bare) or bare
        if origin in _CONTAINERS or origin is tuple:
            return self._array(bare, origin, where, metadata)
        if origin in _MAPPINGS:
            return self._mapping(bare, where, metadata)
        _check_limits(metadata.limits, frozenset(), bare, where)
        is_enum = isinstance(origin, type) and issubclass(origin, enum.Enum)
        if is_enum or origin is typing.Literal:
            return _choice(bare, where)
        if style := style_of(origin):
            return self._record(bare, origin, style, where)
        if plain := _PLAIN_NODES.get(bare):
            return plain
        if codec := codec_for(origin):
            return nodes.Custom(origin, codec)
        raise UnservableType(where, explain_unservable(bare))

    def _union(self, bare: Any, where: str, metadata: tuple[Any, ...]) -> Node:
        limits = read_metadata(metadata).limits
        members = [each for each in typing.get_args(bare) if each is not msgspec.UnsetType]
        limited = [each for each in members if _accepts_limits(each, limits)]
        if not limited:
            _check_limits(limits, frozenset(), bare, where)
        read = [self.read(each, where, metadata if each in limited else ()) for each in members]
        return read[0] if len(read) == 1 else nodes.Union(bare, tuple(read))

    def _array(self, bare: Any, origin: Any, where: str, metadata: Metadata) -> Node:
        args = typing.get_args(bare)
        if origin is tuple and (args or bare is not tuple) and args[-1:] != (...,):
            if bare is typing.Tuple:  # noqa: UP006 -- the old spelling of a bare tuple
                return nodes.Array(
                    tuple, nodes.Anything(), metadata.limits, metadata.msgspec_ignores_limits
                )
            _check_limits(metadata.limits, frozenset(), bare, where)
            items = () if args == ((),) else args
            return nodes.Fixed(
                tuple(self.read(arg, f"{where}[{n}]") for n, arg in enumerate(items))
            )
        _check_limits(metadata.limits, _LENGTHS, bare, where)
        item = self.read(args[0], f"{where}[]") if args else nodes.Anything()
        container = _CONTAINERS.get(origin, tuple)
        if container in (set, frozenset) and not _can_be_set_item(item):
            raise UnservableType(where, f"{bare!r} has items that no set can hold; write list[...]")
        return nodes.Array(container, item, metadata.limits, metadata.msgspec_ignores_limits)

    def _mapping(self, bare: Any, where: str, metadata: Metadata) -> Node:
        _check_limits(metadata.limits, _LENGTHS, bare, where)
        args = typing.get_args(bare) or (str, Any)
        key = nodes.Scalar(str) if args[0] is Any else self.read(args[0], f"{where} (key)")
        if not _can_be_key(key):
            raise UnservableType(where, f"{bare!r}: JSON keys are strings; write dict[str, ...]")
        value = self.read(args[1], f"{where}[]")
        return nodes.Mapping(key, value, metadata.limits, metadata.msgspec_ignores_limits)

    def _record(self, bare: Any, cls: Any, style: str, where: str) -> nodes.Record:
        if bare in self._records:
            return self._records[bare]
        record = self._records[bare] = start_record(bare, cls, style)
        self._record_depth += 1
        try:
            fields = read_fields(record, lambda hint, name: self.read(hint, f"{where}.{name}"))
            record.fields = tuple(fields)
        except (TypeError, NotImplementedError) as error:
            if isinstance(error, UnservableType):
                raise
            raise UnservableType(where, f"{cls.__name__} cannot be read: {error}") from error
        finally:
            self._record_depth -= 1
        for field in record.fields:
            # Outside pydantic's classes, the `Field` itself would be each object's value.
            if is_field_info(field.default):
                raise UnservableType(
                    f"{where}.{field.name}",
                    f"pydantic's Field as a default only works in pydantic's own classes; "
                    f"write {field.name}: Annotated[T, Field(...)], or use pydantic.dataclasses",
                )
        return record


def _is_pydantic(bare: Any) -> bool:
    origin = typing.get_origin(bare) or bare
    return isinstance(origin, type) and (
        hasattr(origin, "__pydantic_validator__") or hasattr(origin, "__get_pydantic_core_schema__")
    )


def _allowed_limits(bare: Any) -> frozenset[str]:
    origin = typing.get_origin(bare) or bare
    if _is_hashable(origin) and origin in _SCALARS:
        return _SCALAR_LIMITS.get(origin, _NUMBER_LIMITS)
    if origin in _CONTAINERS or origin in _MAPPINGS or origin is tuple:
        return _LENGTHS
    return frozenset()


def _accepts_limits(annotation: Any, limits: ValueLimits) -> bool:
    bare, _ = _unwrap(annotation)
    if limits.checks and bare not in _SCALARS:
        return False
    return limits != NO_LIMITS and limits.as_dict().keys() <= _allowed_limits(bare)


def _check_limits(limits: ValueLimits, allowed: frozenset[str], bare: Any, where: str) -> None:
    if limits is NO_LIMITS:
        return
    for name in limits.as_dict():
        if name not in allowed:
            raise UnservableType(where, f"{name} does not apply to {name_of(bare)}; remove it")
    if limits.checks and bare not in _SCALARS:
        raise UnservableType(where, f"a predicate on {name_of(bare)} is never called; remove it")


def _scalar(kind: type, where: str, metadata: Metadata) -> Node:
    if metadata.limits is NO_LIMITS:
        return _PLAIN_NODES[kind]
    _check_limits(metadata.limits, _allowed_limits(kind), kind, where)
    if metadata.limits.pattern is not None:
        from .patterns import find_pattern_problem

        for pattern in (metadata.limits.pattern, *metadata.replaced_patterns):
            if problem := find_pattern_problem(pattern):
                raise UnservableType(where, problem)
    return nodes.Scalar(kind, metadata.limits, metadata.msgspec_ignores_limits)


def _choice(bare: Any, where: str) -> Node:
    if isinstance(bare, type) and issubclass(bare, enum.Flag):
        problem = f"{bare.__name__} has more values than it lists; write a list of an Enum"
        raise UnservableType(where, problem)
    members: Any = bare if isinstance(bare, type) else typing.get_args(bare)
    pairs = tuple((each.value if isinstance(each, enum.Enum) else each, each) for each in members)
    for value, _ in pairs:
        if not isinstance(value, str | int | float | None):
            problem = f"{value!r} of {bare!r} is not a JSON value; use str or int"
            raise UnservableType(where, problem)
    if not pairs:
        raise UnservableType(where, f"{bare!r} has no values")
    return nodes.Choice(bare, pairs)


def _can_be_set_item(node: Node) -> bool:
    match nodes.without_notes(node):
        case nodes.Array(container=container, item=item):
            return container in (tuple, frozenset) and _can_be_set_item(item)
        case nodes.Mapping() | nodes.Record(style="typeddict"):
            return False
        case nodes.Union(members=members):
            return all(map(_can_be_set_item, members))
    return True


def _can_be_key(node: Node) -> bool:
    match nodes.without_notes(node):
        case nodes.Scalar(kind=kind):
            return kind not in (bool, float, Decimal, *BYTES_TYPES)
        case nodes.Choice(values=values):
            return all(type(value) in (str, int) for value, _ in values)
    return False


_PLAIN_NODES: dict[Any, Node] = {
    **{kind: nodes.Scalar(kind) for kind in _SCALARS},
    Any: nodes.Anything(),
    object: nodes.Anything(),
    None: nodes.Null(),
    type(None): nodes.Null(),
    typing.LiteralString: nodes.Scalar(str),
}
