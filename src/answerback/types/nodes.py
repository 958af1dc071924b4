"""The typed tree: what an annotation means on the wire, worked out once.

Data only. `reading` makes it, and everything else (`native`, `building`, `settling`,
`schema`, `strings`) goes over it with one small function per kind of node.
"""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What narrows a type, whichever library's words it was written in."""

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

    def given(self) -> dict[str, Any]:
        """The limits that were set, without `checks`."""
        names = (name for name in self.__struct_fields__ if name != "checks")
        return {name: limit for name in names if (limit := getattr(self, name)) is not None}


class Notes(msgspec.Struct, frozen=True, kw_only=True):
    """What a schema says about a type beyond the type."""

    title: str | None = None
    description: str | None = None
    examples: list[Any] | None = None
    extra: dict[str, Any] | None = None


NO_LIMITS = Limits()
NO_NOTES = Notes()


class Node(msgspec.Struct, eq=False):
    """A type on the wire."""


class Anything(Node):
    """Any JSON value."""


class Null(Node):
    """`null`."""


class Scalar(Node):
    """A number, a boolean, or a string with a form of its own."""

    kind: type
    limits: Limits = NO_LIMITS
    # Limits in other words than msgspec's Meta: it would not see them in a class's fields.
    foreign: bool = False


class Choice(Node):
    """One of a few values: an Enum or a Literal, as pairs of JSON value and Python value."""

    annotation: Any
    values: tuple[tuple[Any, Any], ...]


class Array(Node):
    """A list, a set or a tuple of any length."""

    container: type
    item: Node
    limits: Limits = NO_LIMITS
    foreign: bool = False


class Fixed(Node):
    """A tuple whose items each have a type."""

    items: tuple[Node, ...]


class Mapping(Node):
    """A dict; JSON writes its keys as strings."""

    key: Node
    value: Node
    limits: Limits = NO_LIMITS
    foreign: bool = False


class Field(msgspec.Struct, eq=False, kw_only=True):
    """A field of a record; *wire* is its name in JSON."""

    name: str
    wire: str
    node: Node
    required: bool
    default: Any = msgspec.field(default_factory=lambda: msgspec.NODEFAULT)


class Record(Node):
    """A class with named fields; `array` ones are written as JSON arrays."""

    annotation: Any
    cls: Any
    style: str
    fields: tuple[Field, ...] = ()
    array: bool = False
    closed: bool = False
    tag: tuple[str, str | int] | None = None

    @property
    def least(self) -> int:
        """How many items the array form must have at least."""
        wanted = [n for n, field in enumerate(self.fields, 1) if field.required]
        return (max(wanted) if wanted else 0) + (self.tag is not None)


class Union(Node):
    """One of several types."""

    annotation: Any
    members: tuple[Node, ...]
    # For each JSON kind the members that take it; worked out when first asked for.
    takers: dict[str, list[Node]] = {}


class Model(Node):
    """A type that pydantic reads and writes."""

    annotation: Any


class Noted(Node):
    """A type with something to say about it in a schema."""

    inner: Node
    notes: Notes


def plain(node: Node) -> Node:
    """The node without its notes."""
    while isinstance(node, Noted):
        node = node.inner
    return node


def tag_of(node: Node) -> str | None:
    """The name of the member that tells this record from others, if it has one."""
    node = plain(node)
    if isinstance(node, Record) and not node.array and node.tag is not None:
        return node.tag[0]
    return None


def children(node: Node) -> tuple[Node, ...]:
    """The nodes right below *node*."""
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
    """The node and all below it, each once, recursive types included."""
    seen: set[int] = set()
    waiting = [node]
    while waiting:
        node = waiting.pop()
        if id(node) not in seen:
            seen.add(id(node))
            yield node
            waiting.extend(children(node))


_KINDS: dict[type, frozenset[str]] = {
    bool: frozenset({"boolean"}),
    int: frozenset({"number"}),
    float: frozenset({"number"}),
}
ALL_KINDS = frozenset({"null", "boolean", "number", "string", "array", "object"})


def kind_of(value: object) -> str:
    """The JSON kind of a decoded value."""
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
    """The JSON kinds of value that *node* may take."""
    match node:
        case Null():
            return frozenset({"null"})
        case Scalar(kind=kind) if kind.__name__ == "Decimal":
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
    return ALL_KINDS
