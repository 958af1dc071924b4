"""Decoded JSON to typed values where msgspec alone does not reach.

Strict: what does not fit raises, and `settling` then says what is wrong and where.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from . import nodes
from .coerce import choose
from .coerce_union import candidates
from .msgspec_types import Natives, is_stand_in
from .nodes import Node
from .scalars import read_scalar
from .walk import Walk

Hook = Callable[[type, Any], Any]


def decode_hook(natives: Natives) -> Hook:
    """The `dec_hook` of a decoder whose annotations come from *natives*."""
    return lambda kind, value: Builder(natives).hook(kind, value)


class Builder:
    """Builds the values of one decode; what a union was found to be is found once."""

    def __init__(self, natives: Natives) -> None:
        self._natives = natives
        self._walk = Walk(repair=False)

    def hook(self, kind: Any, value: Any) -> Any:
        """What msgspec calls with a stand-in and decoded JSON."""
        # Few frames for each level, because recursive types nest as deep as the text may.
        node = kind.node
        while isinstance(node, nodes.Union):
            member = nodes.plain(self._member(node, value))
            native = self._natives.of(member)
            if not is_stand_in(native):
                return msgspec.convert(value, native, str_keys=True, dec_hook=self.hook)
            node = member
        if not isinstance(node, nodes.Record):
            return _BUILD[type(node)](node, value)
        mirror = self._natives.mirror(node)
        built = msgspec.convert(value, mirror, str_keys=True, dec_hook=self.hook)
        return make_record(node, _given(node, built))

    def _member(self, node: nodes.Union, value: Any) -> Node:
        likely = candidates(node, value)
        member = likely[0] if len(likely) == 1 else choose(node, value, self._walk)
        if member is None:
            raise ValueError("none of the types fits")
        return member


def _given(node: nodes.Record, mirror: Any) -> dict[str, Any]:
    return {
        field.name: given
        for field in node.fields
        if (given := getattr(mirror, field.name)) is not msgspec.UNSET
    }


def make_record(node: nodes.Record, values: dict[str, Any]) -> Any:
    """An object of the record's class; what is not in *values* has a default."""
    if node.style == "typeddict":
        return values
    if node.style in ("struct", "namedtuple"):
        return node.cls(**values)
    return _make_class(node, values)


def _make_class(node: nodes.Record, values: dict[str, Any]) -> Any:
    if node.style == "attrs":
        taken = {field.name: field for field in node.cls.__attrs_attrs__}
    else:
        taken = node.cls.__dataclass_fields__
    given = {
        getattr(taken[name], "alias", None) or name: value
        for name, value in values.items()
        if taken[name].init
    }
    made = node.cls(**given)
    for name in values:
        if not taken[name].init:
            object.__setattr__(made, name, values[name])
    return made


def _choice(node: nodes.Choice, value: Any) -> Any:
    for given, python in node.values:
        if given == value and type(given) is type(value):
            return python
    raise ValueError("none of the values")


def _model(node: nodes.Model, value: Any) -> Any:
    from .pydantic_types import build_model

    return build_model(node, value)


_BUILD: dict[type[Node], Callable[[Any, Any], Any]] = {
    nodes.Scalar: read_scalar,
    nodes.Choice: _choice,
    nodes.Model: _model,
}
