"""Turns the tree of nodes into types that msgspec decodes.

Most types stay as they are, and msgspec decodes them in C. Where msgspec would refuse a type
(a union of two dataclasses), ignore its limits (pydantic's `Field`) or crash (some unions), a
stand-in class takes its place: msgspec passes the decoded JSON to the decode hook, and
`ValueBuilder` builds the value there. A value that does not fit raises an error; `coerce` then
finds all problems.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Annotated, Any, Union

import msgspec

from . import nodes
from .nodes import Node, is_loose_in_msgspec

if TYPE_CHECKING:
    from .default_check import ValueBuilder


class _AnyInstance(type):
    # msgspec checks that a hook returns an instance of the stand-in; every value has to pass.
    def __instancecheck__(cls, instance: object) -> bool:
        return True


class StandIn(metaclass=_AnyInstance):
    """The base class of stand-ins for a node's type."""

    node: Node


def is_stand_in(annotation: Any) -> bool:
    """Return whether the type is a stand-in for a node's type."""
    return isinstance(annotation, _AnyInstance)


class MsgspecTypes:
    """The types that msgspec decodes for the nodes of one or more trees, each built once.

    *canonical* says that the text comes from our own encoder, so msgspec's loose parsing of UUIDs
    and durations is harmless, and faster than a stand-in. *lenient* is for pydantic's types.
    """

    def __init__(self, *, canonical: bool = False, lenient: bool = False) -> None:
        self._canonical = canonical
        self.lenient = lenient
        # By node id; the node itself is kept so that its id is not reused.
        self._types: dict[int, tuple[Node, Any]] = {}
        self._mirrors: dict[int, Any] = {}

    def type_of(self, node: Node) -> Any:
        """Return the type that msgspec decodes for *node*."""
        if id(node) not in self._types:
            found: Any = None
            # msgspec reads a class's own annotations, so all nodes below it must be native too.
            inside = nodes.reachable(node) if isinstance(node, nodes.Record) else ()
            if not any(map(self._needs_stand_in, inside)):
                found = _NATIVE[type(node)](self, node)
            if found is None or not _is_accepted(found):
                found = _AnyInstance("StandIn", (StandIn,), {"node": node})
            self._types[id(node)] = (node, found)
        return self._types[id(node)][1]

    def decoder(self, annotation: Any) -> msgspec.json.Decoder[Any]:
        """Return a decoder for a type that was built here."""
        return msgspec.json.Decoder(
            annotation, dec_hook=lambda kind, value: self._builder(self).hook(kind, value)
        )

    def convert(self, data: Any, annotation: Any) -> Any:
        """Convert decoded JSON to a type that was built here; raises if it does not fit."""
        return msgspec.convert(data, annotation, str_keys=True, dec_hook=self._builder(self).hook)

    @cached_property
    def _builder(self) -> type[ValueBuilder]:
        from .default_check import ValueBuilder

        return ValueBuilder

    def struct(self, name: str, fields: Iterable[tuple[str, Node, bool]], **options: Any) -> Any:
        """Define a Struct from each field's name, node and `required`.

        Absent fields that are not required are UNSET.
        """
        defined: list[Any] = [
            (field, self.type_of(node)) if required else (field, self.type_of(node), msgspec.UNSET)
            for field, node, required in fields
        ]
        return msgspec.defstruct(name, defined, **options)

    def mirror(self, record: nodes.Record) -> Any:
        """Return a Struct with the fields of *record*, each of the type that msgspec decodes.

        `field_name` returns the names of its fields.
        """
        if id(record) not in self._mirrors:
            tag_field, tag = record.tag or (None, None)
            numbered = list(enumerate(record.fields))
            self._mirrors[id(record)] = self.struct(
                record.cls.__name__,
                [(field_name(n), field.node, field.required) for n, field in numbered],
                rename={field_name(n): field.json_name for n, field in numbered},
                forbid_unknown_fields=record.closed,
                array_like=record.array,
                tag_field=tag_field,
                tag=tag,
                # With kw_only, fields without a default may follow fields with one.
                kw_only=not record.array,
            )
        return self._mirrors[id(record)]

    def is_loose(self, node: nodes.Scalar) -> bool:
        """Return whether msgspec would accept strings that the schema of *node* refuses."""
        if self._canonical and node.kind is not Decimal:
            return False
        return is_loose_in_msgspec(node)

    def _needs_stand_in(self, node: Node) -> bool:
        match node:
            case nodes.Scalar():
                is_read_well = not self.is_loose(node) and _has_simple_pattern(node)
                return node.msgspec_ignores_limits or not is_read_well
            case nodes.Array() | nodes.Mapping():
                return node.msgspec_ignores_limits
            case nodes.Record(style="dataclass"):
                return not self._canonical and _loses_defaults(node)
            case nodes.Union():
                return _is_misread(node)
        return isinstance(node, nodes.Model | nodes.Custom)


def field_name(number: int) -> str:
    """Return a valid name for a mirror's field: a TypedDict's key may be `content-type`."""
    return f"field{number}"


def _loses_defaults(record: nodes.Record) -> bool:
    """Return whether objects that msgspec decodes have defaults only on their class.

    msgspec's encoder reads the object's own `__dict__`, so it would leave them out.
    """
    if not record.cls.__dictoffset__:
        return False
    return any(not field.required and hasattr(record.cls, field.name) for field in record.fields)


def _is_accepted(annotation: Any) -> bool:
    try:
        msgspec.json.Decoder(annotation, dec_hook=lambda kind, value: None)
    except (TypeError, ValueError, OverflowError):
        return False
    return True


# The functions below return the type that msgspec should decode, or None for a stand-in.


def _scalar(types: MsgspecTypes, node: nodes.Scalar) -> Any:
    if types.is_loose(node):
        return None
    limits = node.limits
    if limits is nodes.NO_LIMITS:
        return node.kind
    given = limits.as_dict()
    if limits.checks or not _has_simple_pattern(node):
        return None
    if node.kind is int:
        # msgspec's Meta does not accept larger limits.
        if not all(-(2**62) < limit < 2**62 for limit in given.values()):
            return None
        # A limit may be a float; for an int, these integers are equivalent.
        given = {
            name: math.ceil(limit) if name in ("ge", "lt") else math.floor(limit)
            for name, limit in given.items()
        }
    elif node.kind not in (float, str, *nodes.BYTES_TYPES) and given.keys() - {"tz"}:
        return None
    return _with_meta(node.kind, given)


def _has_simple_pattern(node: nodes.Scalar) -> bool:
    if node.limits.pattern is None:
        return True
    from .patterns import is_simple

    return is_simple(node.limits.pattern)


def _with_meta(annotation: Any, limits: dict[str, Any]) -> Any:
    return Annotated[annotation, msgspec.Meta(**limits)] if limits else annotation


def _choice(types: MsgspecTypes, node: nodes.Choice) -> Any:
    values = [value for value, _ in node.values]
    # msgspec does not support a Literal of enum members.
    plain = all(python is value for value, python in node.values)
    is_enum = isinstance(node.annotation, type)
    return node.annotation if values and (plain or is_enum) else None


def _array(types: MsgspecTypes, node: nodes.Array) -> Any:
    item = types.type_of(node.item)
    args = (item, ...) if node.container is tuple else item
    # mypy cannot check a type that is built at run time.
    return _with_meta(node.container[args], node.limits.as_dict())  # type: ignore[index]


def _fixed(types: MsgspecTypes, node: nodes.Fixed) -> Any:
    # mypy cannot check a type that is built at run time.
    return tuple[tuple(types.type_of(item) for item in node.items)]  # type: ignore[misc]


def _mapping(types: MsgspecTypes, node: nodes.Mapping) -> Any:
    # mypy cannot check a type that is built at run time.
    native: Any = dict[types.type_of(node.key), types.type_of(node.value)]  # type: ignore[misc]
    return _with_meta(native, node.limits.as_dict())


def _union(types: MsgspecTypes, node: nodes.Union) -> Any:
    if _is_misread(node):
        return None
    members = tuple(types.type_of(member) for member in node.members)
    return Union[members]  # noqa: UP007 -- `|` cannot join the items of a tuple


_NATIVE: dict[type[Node], Callable[[MsgspecTypes, Any], Any]] = {
    nodes.Anything: lambda types, node: Any,
    nodes.Null: lambda types, node: type(None),
    nodes.Scalar: _scalar,
    nodes.Choice: _choice,
    nodes.Array: _array,
    nodes.Fixed: _fixed,
    nodes.Mapping: _mapping,
    nodes.Record: lambda types, node: node.annotation,
    nodes.Union: _union,
    nodes.Model: lambda types, node: None,
    nodes.Custom: lambda types, node: None,
    nodes.Noted: lambda types, node: types.type_of(node.inner),
}


def _is_misread(union: nodes.Union) -> bool:
    """Return whether msgspec (0.20 to 0.22) would crash on the union, or mix up its limits.

    It frees a pattern as if it were an item's type, and expects a fixed-length tuple's items
    after the other limits, although it stores them first.
    """
    members = list(_flatten(union))
    limits = set().union(*map(_limit_names, members))
    if "pattern" in limits and any(isinstance(m, nodes.Array | nodes.Mapping) for m in members):
        return True
    if limits - {"pattern"} and any(isinstance(m, nodes.Fixed) for m in members):
        return True
    for one, other in combinations(members, 2):
        # msgspec would apply one member's limits or choices to the other.
        shared = nodes.kinds(one) & nodes.kinds(other)
        if "number" in shared and isinstance(one, nodes.Choice) != isinstance(other, nodes.Choice):
            return True
        if shared and (_limit_names(one) or _limit_names(other)):
            return True
    return False


def _flatten(node: Node) -> Iterator[Node]:
    """Yield the members of a union, and of the unions inside it."""
    node = nodes.without_notes(node)
    if isinstance(node, nodes.Union):
        for member in node.members:
            yield from _flatten(member)
    else:
        yield node


def _limit_names(node: Node) -> set[str]:
    limits = getattr(node, "limits", nodes.NO_LIMITS)
    # msgspec does not store `tz` in the slots that it mixes up.
    return set(limits.as_dict()) - {"tz"}
