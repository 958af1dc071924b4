"""Annotations to the typed tree. It asks nothing of msgspec's decoders: it must be quick."""

import collections.abc as abc
import enum
import types
import typing
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import msgspec

from . import nodes
from .annotated import Extras, read_metadata
from .nodes import NO_LIMITS, NO_NOTES, Limits, Node
from .problems import UnservableType
from .record_fields import read_fields, start_record, style_of
from .refusals import name_of, refusal

SCALARS = frozenset(
    {bool, int, float, str, bytes, bytearray, datetime, date, time, timedelta, UUID, Decimal}
)
_NUMERIC = frozenset({"ge", "gt", "le", "lt", "multiple_of"})
_SIZES = frozenset({"min_length", "max_length"})
# Which limits a scalar can have; the rest of them can only be compared.
_TAKES: dict[type, frozenset[str]] = {
    bool: frozenset(),
    str: _SIZES | {"pattern"},
    bytes: _SIZES,
    bytearray: _SIZES,
    UUID: frozenset(),
    datetime: _NUMERIC - {"multiple_of"} | {"tz"},
    time: _NUMERIC - {"multiple_of"} | {"tz"},
    date: _NUMERIC - {"multiple_of"},
    timedelta: _NUMERIC - {"multiple_of"},
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
_ENDLESS = "{} holds itself with no class between; write Any"
_WRAPPERS: frozenset[Any] = frozenset({typing.Final, typing.Required, typing.NotRequired})


def read_type(annotation: Any, where: str = "") -> Node:
    """The tree of *annotation*; raises UnservableType, naming *where*, if there is none."""
    if _hashable(annotation) and annotation in _PLAIN:
        return _PLAIN[annotation]
    try:
        return _Reader().read(annotation, where)
    except RecursionError:
        raise UnservableType(where, _ENDLESS.format(name_of(annotation))) from None


def _refuse_name(bare: Any, where: str) -> None:
    if isinstance(bare, str):
        raise NameError(f"{where}: {bare!r} is not the name of a type that is known here")
    if isinstance(bare, typing.ForwardRef):
        # Names were looked up before; one is left where that would never end.
        raise UnservableType(where, _ENDLESS.format(bare.__forward_arg__))


def _hashable(annotation: Any) -> bool:
    try:
        hash(annotation)
    except TypeError:
        return False
    return True


def peel(annotation: Any) -> tuple[Any, tuple[Any, ...]]:
    """The type inside Annotated, NewType, aliases and Final, and all metadata on the way."""
    metadata: tuple[Any, ...] = ()
    while True:
        origin = getattr(annotation, "__origin__", None)
        if hasattr(annotation, "__metadata__"):
            metadata = annotation.__metadata__ + metadata
            annotation = origin
        elif _is_wrapper(origin):
            annotation = annotation.__args__[0]
        elif type(origin).__name__ == "TypeAliasType":
            annotation = typing.cast(Any, origin).__value__[annotation.__args__]
        elif type(annotation).__name__ == "TypeAliasType":
            annotation = annotation.__value__
        elif hasattr(annotation, "__supertype__"):
            annotation = annotation.__supertype__
        else:
            return annotation, metadata


def _is_wrapper(origin: Any) -> bool:
    name = getattr(origin, "_name", None) or getattr(origin, "__name__", None)
    return origin is not None and (origin in _WRAPPERS or name == "ReadOnly")


class _Reader:
    """Reads one annotation; remembers its classes, because they may be recursive."""

    def __init__(self) -> None:
        self._records: dict[Any, nodes.Record] = {}
        # Inside a generic class an unfilled TypeVar means Any; outside it is a mistake.
        self._depth = 0

    def read(self, annotation: Any, where: str, outer: tuple[Any, ...] = ()) -> Node:
        """Read one annotation; *outer* is what was said about the union it is a member of."""
        bare, metadata = peel(annotation)
        extras = read_metadata((*outer, *metadata))
        if extras.needs_pydantic or _is_pydantic(bare):
            return nodes.Model(annotation)
        if typing.get_origin(bare) in _UNIONS:
            node = self._union(bare, where, (*outer, *metadata))
        else:
            node = self._bare(bare, where, extras)
        notes = read_metadata(metadata).notes if outer else extras.notes
        return node if notes == NO_NOTES else nodes.Noted(node, notes)

    def _bare(self, bare: Any, where: str, extras: Extras) -> Node:
        if _hashable(bare) and bare in SCALARS:
            return _scalar(bare, where, extras)
        _refuse_name(bare, where)
        if isinstance(bare, typing.TypeVar):
            return self._type_var(bare, where)
        origin = typing.get_origin(bare) or bare
        if origin in _CONTAINERS or origin is tuple:
            return self._array(bare, origin, where, extras)
        if origin in _MAPPINGS:
            return self._mapping(bare, where, extras)
        _expect(extras.limits, frozenset(), bare, where)
        if origin is typing.Literal:
            return _literal(bare, where)
        if isinstance(origin, type) and issubclass(origin, enum.Enum):
            return _enum(origin, where)
        if style := style_of(origin):
            return self._record(bare, origin, style, where)
        if plain := _PLAIN.get(bare):
            return plain
        raise UnservableType(where, refusal(bare))

    def _type_var(self, var: Any, where: str) -> Node:
        if not self._depth:
            raise UnservableType(where, f"{var} stands for no type here; write the type itself")
        return nodes.Anything() if var.__bound__ is None else self.read(var.__bound__, where)

    def _union(self, bare: Any, where: str, metadata: tuple[Any, ...]) -> Node:
        limits = read_metadata(metadata).limits
        arms = [arm for arm in typing.get_args(bare) if arm is not msgspec.UnsetType]
        takers = [arm for arm in arms if _may_take(arm, limits)]
        if not takers:
            _expect(limits, frozenset(), bare, where)
        members = tuple(self.read(arm, where, metadata if arm in takers else ()) for arm in arms)
        return members[0] if len(members) == 1 else nodes.Union(bare, members)

    def _array(self, bare: Any, origin: Any, where: str, extras: Extras) -> Node:
        args = typing.get_args(bare)
        if origin is tuple and (args or bare is not tuple) and args[-1:] != (...,):
            if bare is typing.Tuple:  # noqa: UP006 - the old spelling of a bare tuple
                return nodes.Array(tuple, nodes.Anything(), extras.limits, extras.foreign)
            _expect(extras.limits, frozenset(), bare, where)
            items = () if args == ((),) else args
            return nodes.Fixed(
                tuple(self.read(arg, f"{where}[{n}]") for n, arg in enumerate(items))
            )
        _expect(extras.limits, _SIZES, bare, where)
        item = self.read(args[0], f"{where}[]") if args else nodes.Anything()
        container = _CONTAINERS.get(origin, tuple)
        if container in (set, frozenset) and not _can_be_in_a_set(item):
            raise UnservableType(where, f"{bare!r} has items that no set can hold; write list[...]")
        return nodes.Array(container, item, extras.limits, extras.foreign)

    def _mapping(self, bare: Any, where: str, extras: Extras) -> Node:
        _expect(extras.limits, _SIZES, bare, where)
        args = typing.get_args(bare) or (str, Any)
        key = nodes.Scalar(str) if args[0] is Any else self.read(args[0], f"{where} (key)")
        if not _can_be_a_key(key):
            raise UnservableType(where, f"{bare!r}: JSON keys are strings; write dict[str, ...]")
        value = self.read(args[1], f"{where}[]")
        return nodes.Mapping(key, value, extras.limits, extras.foreign)

    def _record(self, bare: Any, cls: Any, style: str, where: str) -> nodes.Record:
        if bare in self._records:
            return self._records[bare]
        record = self._records[bare] = start_record(bare, cls, style)
        self._depth += 1
        try:
            fields = read_fields(record, lambda hint, name: self.read(hint, f"{where}.{name}"))
            record.fields = tuple(fields)
        except (TypeError, NotImplementedError) as error:
            if isinstance(error, UnservableType):
                raise
            raise UnservableType(where, f"{cls.__name__} cannot be read: {error}") from error
        finally:
            self._depth -= 1
        return record


def _is_pydantic(bare: Any) -> bool:
    origin = typing.get_origin(bare) or bare
    return isinstance(origin, type) and (
        hasattr(origin, "__pydantic_validator__") or hasattr(origin, "__get_pydantic_core_schema__")
    )


def _takes(bare: Any) -> frozenset[str]:
    origin = typing.get_origin(bare) or bare
    if _hashable(origin) and origin in SCALARS:
        return _TAKES.get(origin, _NUMERIC)
    if origin in _CONTAINERS or origin in _MAPPINGS or origin is tuple:
        return _SIZES
    return frozenset()


def _may_take(annotation: Any, limits: Limits) -> bool:
    bare, _ = peel(annotation)
    if limits.checks and bare not in SCALARS:
        return False
    return limits != NO_LIMITS and limits.given().keys() <= _takes(bare)


def _expect(limits: Limits, takes: frozenset[str], bare: Any, where: str) -> None:
    if limits is NO_LIMITS:
        return
    for name in limits.given():
        if name not in takes:
            raise UnservableType(where, f"{name} says nothing about {name_of(bare)}; remove it")
    if limits.checks and bare not in SCALARS:
        raise UnservableType(where, f"a predicate on {name_of(bare)} is never asked; remove it")


def _scalar(kind: type, where: str, extras: Extras) -> Node:
    if extras.limits is NO_LIMITS:
        return _PLAIN[kind]
    _expect(extras.limits, _takes(kind), kind, where)
    return nodes.Scalar(kind, extras.limits, extras.foreign)


def _literal(bare: Any, where: str) -> Node:
    values = typing.get_args(bare)
    pairs = tuple((v.value if isinstance(v, enum.Enum) else v, v) for v in values)
    return _choice(bare, pairs, where)


def _enum(cls: type[enum.Enum], where: str) -> Node:
    if issubclass(cls, enum.Flag):
        problem = f"{cls.__name__} stands for more values than it lists; write list of an Enum"
        raise UnservableType(where, problem)
    return _choice(cls, tuple((member.value, member) for member in cls), where)


def _choice(bare: Any, pairs: tuple[tuple[Any, Any], ...], where: str) -> Node:
    for value, _ in pairs:
        if not isinstance(value, str | int | float | None):
            raise UnservableType(where, f"{value!r} of {bare!r} is no JSON value; use str or int")
    if not pairs:
        raise UnservableType(where, f"{bare!r} has no values")
    return nodes.Choice(bare, pairs)


def _can_be_in_a_set(node: Node) -> bool:
    match nodes.plain(node):
        case nodes.Array(container=container, item=item):
            return container in (tuple, frozenset) and _can_be_in_a_set(item)
        case nodes.Mapping() | nodes.Record(style="typeddict"):
            return False
        case nodes.Union(members=members):
            return all(map(_can_be_in_a_set, members))
    return True


def _can_be_a_key(node: Node) -> bool:
    match nodes.plain(node):
        case nodes.Scalar(kind=kind):
            return kind not in (bool, float, Decimal, bytes, bytearray)
        case nodes.Choice(values=values):
            return all(type(value) in (str, int) for value, _ in values)
    return False


_PLAIN: dict[Any, Node] = {
    **{kind: nodes.Scalar(kind) for kind in SCALARS},
    Any: nodes.Anything(),
    object: nodes.Anything(),
    None: nodes.Null(),
    type(None): nodes.Null(),
    typing.LiteralString: nodes.Scalar(str),
}
