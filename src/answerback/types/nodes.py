"""The tree of nodes: a type's JSON form, derived once from its annotation.

`annotation_reader` builds the tree. `msgspec_types`, `coerce`, `json_schema`, `default_check`,
`values_from_text` and `pydantic_types` each have one small function for every kind of node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, time, timedelta
from decimal import Decimal
from typing import Annotated, Any
from uuid import UUID

import msgspec

from .codecs import Codec


class ValueLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits on a type's values, from any library's metadata."""

    ge: Any = None
    gt: Any = None
    le: Any = None
    lt: Any = None
    multiple_of: Any = None
    min_length: int | None = None
    max_length: int | None = None
    pattern: str | None = None
    tz: bool | None = None
    checks: tuple[Callable[[Any], Any], ...] = ()
    """Predicates that a value must pass."""

    def as_dict(self) -> dict[str, Any]:
        """Return the limits that are set, without `checks`."""
        names = (name for name in self.__struct_fields__ if name != "checks")
        return {name: limit for name in names if (limit := getattr(self, name)) is not None}


class Notes(msgspec.Struct, frozen=True, kw_only=True):
    """JSON Schema keywords that describe a type without limiting its values."""

    title: str | None = None
    description: str | None = None
    examples: list[Any] | None = None
    extra: dict[str, Any] | None = None


NO_LIMITS = ValueLimits()
NO_NOTES = Notes()


BYTES_TYPES: tuple[type, ...] = (bytes, bytearray, memoryview)
"""The types that are written as base64 in JSON."""


class Mark:
    """A mark in a return type's `Annotated` metadata."""


NAN_AS_NULL = Mark()
"""The type's floats may be null."""
BLOCKS_AS_NAMES = Mark()
"""The type's content blocks are sent as content; its data has only their names."""


def has_mark(annotation: Any, mark: Mark) -> bool:
    """Return whether *annotation* has the mark."""
    return any(each is mark for each in getattr(annotation, "__metadata__", ()))


def without_mark(annotation: Any, mark: Mark) -> Any:
    """Return the type without its mark; a pydantic model is recognised by its class."""
    others = tuple(each for each in annotation.__metadata__ if each is not mark)
    return Annotated[(annotation.__origin__, *others)] if others else annotation.__origin__


class Node(msgspec.Struct, eq=False):
    """A type's JSON form."""


class Anything(Node):
    """Any JSON value."""


class Null(Node):
    """Only `null`."""


class Scalar(Node):
    """A number, a boolean, a string, or a type that is a string in JSON, such as a date."""

    kind: type
    limits: ValueLimits = NO_LIMITS
    msgspec_ignores_limits: bool = False
    """Some limits are not in a msgspec `Meta`, so msgspec ignores them in a class's fields."""


class Choice(Node):
    """An Enum or a Literal; `values` pairs each JSON value with its Python value."""

    annotation: Any
    values: tuple[tuple[Any, Any], ...]


class Array(Node):
    """A list, a set, or a tuple of any length."""

    container: type
    item: Node
    limits: ValueLimits = NO_LIMITS
    msgspec_ignores_limits: bool = False


class Fixed(Node):
    """A fixed-length tuple whose items each have their own type."""

    items: tuple[Node, ...]


class Mapping(Node):
    """A dict, whose keys are strings in JSON."""

    key: Node
    value: Node
    limits: ValueLimits = NO_LIMITS
    msgspec_ignores_limits: bool = False


class Field(msgspec.Struct, eq=False, kw_only=True):
    """A record's field; `json_name` is its name in JSON."""

    name: str
    json_name: str
    node: Node
    required: bool
    default: Any = msgspec.field(default_factory=lambda: msgspec.NODEFAULT)


class Record(Node):
    """A class with named fields: dataclass, attrs, TypedDict, NamedTuple or Struct."""

    annotation: Any
    cls: Any
    style: str
    fields: tuple[Field, ...] = ()
    array: bool = False
    """It is written as a JSON array, not as an object."""
    closed: bool = False
    """Undeclared keys are refused."""
    tag: tuple[str, str | int] | None = None
    """The key and the value that identify a tagged Struct in a union."""
    has_plain_init: bool | None = None
    """Whether the class takes all fields by name; None until first use."""

    @property
    def min_items(self) -> int:
        """The minimum number of items in the array form."""
        required = [n for n, field in enumerate(self.fields, 1) if field.required]
        return (max(required) if required else 0) + (self.tag is not None)


class Union(Node):
    """One of several types."""

    annotation: Any
    members: tuple[Node, ...]
    members_by_kind: dict[str, list[Node]] = {}
    """The members that accept each kind of JSON value, filled in on first use."""


class Model(Node):
    """A type that pydantic validates and serialises."""

    annotation: Any
    nan_is_null: bool = False
    """Its floats may be null."""


class Custom(Node):
    """A class without its own JSON form, which a codec writes and reads."""

    cls: type
    codec: Codec


class Noted(Node):
    """A type with notes for its schema."""

    inner: Node
    notes: Notes


BLOCK_NAME = Noted(
    # This keeps msgspec from using the class's annotations to decode a class with such a field.
    Scalar(str, msgspec_ignores_limits=True),
    Notes(description="a content block: its text, URI or name, such as 'image 1'"),
)
"""A content block in a result's data."""


def without_notes(node: Node) -> Node:
    """Return the node without its notes."""
    while isinstance(node, Noted):
        node = node.inner
    return node


def tag_of(node: Node) -> str | None:
    """Return the tag key of a tagged Struct that is written as an object."""
    node = without_notes(node)
    if isinstance(node, Record) and not node.array and node.tag is not None:
        return node.tag[0]
    return None


def children(node: Node) -> tuple[Node, ...]:
    """Return the nodes directly below *node*."""
    match node:
        case Array(item=item):
            return (item,)
        case Fixed(items=items):
            return items
        case Mapping(key=key, value=value):
            return (key, value)
        case Record(fields=fields):
            return tuple(field.node for field in fields)
        case Union(members=members):
            return members
        case Noted(inner=inner):
            return (inner,)
    return ()


def reachable(node: Node) -> Iterator[Node]:
    """Yield *node* and all nodes below it, each once, even for recursive types."""
    seen: set[int] = set()
    pending = [node]
    while pending:
        node = pending.pop()
        if id(node) not in seen:
            seen.add(id(node))
            yield node
            pending.extend(children(node))


def has_models(node: Node) -> bool:
    """Return whether the type contains a type that pydantic handles."""
    return any(isinstance(each, Model) for each in reachable(node))


# msgspec accepts a UUID without hyphens, `p1d` as a duration, and NaN as a Decimal.
_LOOSE_IN_MSGSPEC = frozenset({UUID, timedelta, Decimal})


def accepts_any_text(node: Node) -> bool:
    """Return whether every `str` fits and stays unchanged, as in `str`, `str | None` and `Any`."""
    match without_notes(node):
        case Anything():
            return True
        case Scalar(kind=kind, limits=limits):
            return kind is str and limits == NO_LIMITS
        case Union(members=(member, Null())):
            return accepts_any_text(member)
    return False


def is_loose_in_msgspec(node: Scalar) -> bool:
    """Return whether msgspec accepts strings for *node* that its JSON Schema refuses."""
    if node.kind in _LOOSE_IN_MSGSPEC:
        return True
    # RFC 3339 requires the colon in an offset and the T before the time; msgspec does not.
    return node.kind in (datetime, time) and node.limits.tz is True


_KINDS: dict[type, frozenset[str]] = {
    bool: frozenset({"boolean"}),
    int: frozenset({"number"}),
    float: frozenset({"number"}),
}
ALL_KINDS = frozenset({"null", "boolean", "number", "string", "array", "object"})


def kind_of(value: object) -> str:
    """Return the JSON kind of a decoded value."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def kinds(node: Node) -> frozenset[str]:
    """Return the JSON kinds of the values that *node* may accept."""
    match node:
        case Null():
            return frozenset({"null"})
        case Scalar(kind=kind) if kind is Decimal:
            return frozenset({"number", "string"})
        case Scalar(kind=kind):
            return _KINDS.get(kind, frozenset({"string"}))
        case Choice(values=values):
            return frozenset(kind_of(value) for value, _ in values)
        case Array() | Fixed() | Record(array=True):
            return frozenset({"array"})
        case Mapping() | Record():
            return frozenset({"object"})
        case Union(members=members):
            return frozenset().union(*map(kinds, members))
        case Noted(inner=inner):
            return kinds(inner)
        case Custom(codec=codec):
            name = str(codec.schema.get("type")).replace("integer", "number")
            return frozenset({name}) if name in ALL_KINDS else ALL_KINDS
    return ALL_KINDS
