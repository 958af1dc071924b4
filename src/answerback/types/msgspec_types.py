"""The typed tree to annotations that msgspec decodes.

What msgspec takes as it is stays as it is and runs in C. Where it would refuse (a union of
two dataclasses), overlook something (pydantic's `Field`) or crash (`unions.is_misread`), a
stand-in class takes the place: msgspec hands the decoded JSON to a hook, and `building` makes
the value.
"""

from collections.abc import Callable
from typing import Annotated, Any, Union

import msgspec

from . import nodes
from .coerce_union import is_misread
from .nodes import Node
from .scalars import is_loose, meta_type


class _AnyInstance(type):
    # msgspec checks what a hook returns against the stand-in; anything may come back.
    def __instancecheck__(cls, instance: object) -> bool:
        return True


class StandIn(metaclass=_AnyInstance):
    """The base of the classes that stand in for a node in an annotation."""

    node: Node


def is_stand_in(annotation: Any) -> bool:
    """Whether a hook makes the value."""
    return isinstance(annotation, _AnyInstance)


class Natives:
    """Works out, and remembers, what msgspec should decode for each node.

    With *canonical* text, as our own encoder writes it, msgspec's looser reading of UUIDs
    and durations does no harm and is let through, because it is faster.
    """

    def __init__(self, *, canonical: bool = False) -> None:
        self._canonical = canonical
        self._known: dict[int, tuple[Node, Any]] = {}
        self._mirrors: dict[int, Any] = {}

    def of(self, node: Node) -> Any:
        """The annotation that msgspec decodes for *node*."""
        if id(node) not in self._known:
            # The node is kept too, so that its id stays its own.
            if isinstance(node, nodes.Record) and not self._is_clean(node):
                self._known[id(node)] = (node, _stand_in(node))
            else:
                self._known[id(node)] = (node, self._work_out(node))
        return self._known[id(node)][1]

    def _work_out(self, node: Node) -> Any:
        wanted = _NATIVE[type(node)](self, node)
        return wanted if wanted is not None and accepted(wanted) else _stand_in(node)

    def mirror(self, record: nodes.Record) -> Any:
        """A Struct with the fields of *record*, each as msgspec should decode it."""
        if id(record) not in self._mirrors:
            self._mirrors[id(record)] = self._make_mirror(record)
        return self._mirrors[id(record)]

    def _make_mirror(self, record: nodes.Record) -> Any:
        tag_field, tag = record.tag or (None, None)
        return msgspec.defstruct(
            record.cls.__name__,
            [_mirrored(field, self.of(field.node)) for field in record.fields],
            rename={field.name: field.wire for field in record.fields},
            forbid_unknown_fields=record.closed,
            array_like=record.array,
            tag_field=tag_field,
            tag=tag,
            # Fields without a default may follow those with one.
            kw_only=not record.array,
        )

    def loose(self, node: nodes.Scalar) -> bool:
        """Whether msgspec would take more for this scalar than its schema says."""
        if self._canonical and node.kind.__name__ != "Decimal":
            return False
        return is_loose(node)

    def _is_clean(self, record: nodes.Record) -> bool:
        below = nodes.reachable(record)
        return not any(map(self._is_foreign, below)) and accepted(record.annotation)

    def _is_foreign(self, node: Node) -> bool:
        match node:
            case nodes.Scalar(foreign=foreign):
                return foreign or self.loose(node)
            case nodes.Array(foreign=foreign) | nodes.Mapping(foreign=foreign):
                return foreign
            case nodes.Record(style="dataclass"):
                return not self._canonical and _is_left_bare(node)
            case nodes.Union():
                return is_misread(node)
        return isinstance(node, nodes.Model)


def _is_left_bare(record: nodes.Record) -> bool:
    """Whether msgspec leaves defaults to the class, and its encoder then leaves them out."""
    if not record.cls.__dictoffset__:
        return False
    return any(not field.required and hasattr(record.cls, field.name) for field in record.fields)


def accepted(annotation: Any) -> bool:
    """Whether msgspec can decode *annotation*."""
    try:
        msgspec.json.Decoder(annotation, dec_hook=_no_hook)
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def _no_hook(kind: type, value: Any) -> Any:
    raise NotImplementedError


def _stand_in(node: Node) -> Any:
    return _AnyInstance("StandIn", (StandIn,), {"node": node})


def _mirrored(field: nodes.Field, annotation: Any) -> tuple[str, Any] | tuple[str, Any, Any]:
    if field.required:
        return (field.name, annotation)
    return (field.name, annotation, msgspec.UNSET)


def _scalar(natives: Natives, node: nodes.Scalar) -> Any:
    return None if natives.loose(node) else meta_type(node)


def _choice(natives: Natives, node: nodes.Choice) -> Any:
    values = [value for value, _ in node.values]
    # msgspec's Literal of True and 1, or of enum members, is not ours.
    plain = all(python is value for value, python in node.values)
    is_enum = isinstance(node.annotation, type)
    return node.annotation if values and (plain or is_enum) else None


def _sized(annotation: Any, limits: nodes.Limits) -> Any:
    given = limits.given()
    return Annotated[annotation, msgspec.Meta(**given)] if given else annotation


def _array(natives: Natives, node: nodes.Array) -> Any:
    item = natives.of(node.item)
    args = (item, ...) if node.container is tuple else item
    # A type made as the program runs, which mypy cannot follow.
    return _sized(node.container[args], node.limits)  # type: ignore[index]


def _fixed(natives: Natives, node: nodes.Fixed) -> Any:
    # A type made as the program runs, which mypy cannot follow.
    return tuple[tuple(natives.of(item) for item in node.items)]  # type: ignore[misc]


def _mapping(natives: Natives, node: nodes.Mapping) -> Any:
    # A type made as the program runs, which mypy cannot follow.
    return _sized(dict[natives.of(node.key), natives.of(node.value)], node.limits)  # type: ignore[misc]


def _union(natives: Natives, node: nodes.Union) -> Any:
    if is_misread(node):
        return None
    return Union[tuple(natives.of(member) for member in node.members)]  # noqa: UP007 - of many


_NATIVE: dict[type[Node], Callable[[Natives, Any], Any]] = {
    nodes.Anything: lambda natives, node: Any,
    nodes.Null: lambda natives, node: type(None),
    nodes.Scalar: _scalar,
    nodes.Choice: _choice,
    nodes.Array: _array,
    nodes.Fixed: _fixed,
    nodes.Mapping: _mapping,
    nodes.Record: lambda natives, node: node.annotation,
    nodes.Union: _union,
    nodes.Model: lambda natives, node: None,
    nodes.Noted: lambda natives, node: natives.of(node.inner),
}
