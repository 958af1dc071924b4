"""Builds stand-ins' values: the types that msgspec itself does not decode.

`MsgspecTypes` imports it at the first such value, because most apps have none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from . import nodes
from .coerce import choose_member
from .coerce_union import candidates, quick_member
from .msgspec_types import MsgspecTypes, field_name, is_stand_in
from .nodes import Node
from .problems import Coercion
from .scalars import read_scalar


class ValueBuilder:
    """A builder for stand-ins' values in one decode; it chooses a union's member once."""

    def __init__(self, types: MsgspecTypes) -> None:
        self._types = types
        self._coercion = Coercion(repair=False, lenient=types.lenient)

    def hook(self, kind: Any, value: Any) -> Any:
        """Build a stand-in's value from decoded JSON; msgspec calls it as its `dec_hook`."""
        # Few frames for each level, because recursive types nest as deep as the text may.
        node = kind.node
        while isinstance(node, nodes.Union):
            member = nodes.without_notes(self._member(node, value))
            native = self._types.type_of(member)
            if not is_stand_in(native):
                return msgspec.convert(value, native, str_keys=True, dec_hook=self.hook)
            node = member
        if isinstance(node, nodes.Model):
            return _build_model(node, value, self._types.lenient)
        if not isinstance(node, nodes.Record):
            return _BUILD[type(node)](node, value)
        mirror = self._types.mirror(node)
        built = msgspec.convert(value, mirror, str_keys=True, dec_hook=self.hook)
        return make_record(node, _present_fields(node, built))

    def _member(self, node: nodes.Union, value: Any) -> Node:
        possible = candidates(node, value)
        if len(possible) == 1:
            return possible[0]
        if quick := quick_member(possible, value):
            return quick[0]
        member = choose_member(node, value, self._coercion)
        if member is None:
            raise ValueError("none of the types fits")
        return member


def _present_fields(node: nodes.Record, mirror: Any) -> dict[str, Any]:
    return {
        field.name: value
        for n, field in enumerate(node.fields)
        if (value := getattr(mirror, field_name(n))) is not msgspec.UNSET
    }


def make_record(node: nodes.Record, values: dict[str, Any]) -> Any:
    """Make an object of the record's class; fields that are not in *values* have defaults."""
    if node.style == "typeddict":
        return values
    if node.style in ("struct", "namedtuple"):
        return node.cls(**values)
    return _make_class(node, values)


def _make_class(node: nodes.Record, values: dict[str, Any]) -> Any:
    if node.has_plain_init is None:
        node.has_plain_init = _has_plain_init(node)
    if node.has_plain_init:
        return node.cls(**values)
    if node.style == "attrs":
        fields = {field.name: field for field in node.cls.__attrs_attrs__}
    else:
        fields = node.cls.__dataclass_fields__
    init_values = {
        getattr(fields[name], "alias", None) or name: value
        for name, value in values.items()
        if fields[name].init
    }
    made = node.cls(**init_values)
    for name in values:
        if not fields[name].init:
            object.__setattr__(made, name, values[name])
    return made


def _has_plain_init(node: nodes.Record) -> bool:
    """Return whether the class takes all fields by name."""
    if node.style == "attrs":
        return False
    return all(node.cls.__dataclass_fields__[field.name].init for field in node.fields)


def _build_choice(node: nodes.Choice, value: Any) -> Any:
    for choice, python in node.values:
        if choice == value and type(choice) is type(value):
            return python
    raise ValueError("none of the values")


def _build_model(node: nodes.Model, value: Any, lenient: bool) -> Any:
    from .pydantic_types import build_model

    try:
        return build_model(node, value, lenient=lenient)
    except ValueError:
        # msgspec asks for the text of the error, and pydantic's has the representation of values.
        raise ValueError("does not fit the model") from None


def _build_custom(node: nodes.Custom, value: Any) -> Any:
    # Without `decode` the type is for results only, which are checked as JSON.
    decode = node.codec.decode
    if nodes.kind_of(value) not in nodes.kinds(node):
        raise ValueError("not of the type in its schema")
    return value if decode is None else decode(value)


_BUILD: dict[type[Node], Callable[[Any, Any], Any]] = {
    nodes.Custom: _build_custom,
    nodes.Scalar: read_scalar,
    nodes.Choice: _build_choice,
}
