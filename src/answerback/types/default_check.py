"""Builds the values of types that msgspec cannot decode, and checks parameter defaults.

Only a default's type is checked: as in Python and pydantic, its value may exceed the limits.
"""

from __future__ import annotations

import collections.abc as abc
from collections.abc import Callable
from decimal import Decimal
from enum import Enum
from typing import Any

import msgspec

from ..core.json_value import is_integer, is_number
from . import nodes
from .arguments import Parameter
from .coerce import candidates, choose_member, quick_member
from .json_schema import read_scalar
from .msgspec_types import MsgspecTypes, field_name, is_stand_in
from .nodes import Node
from .problems import Coercion, UnservableType, name_of, shown, without_metadata


class ValueBuilder:
    """Builds stand-ins' values during one decode, and chooses each union's member only once."""

    def __init__(self, types: MsgspecTypes) -> None:
        self._types = types
        self._coercion = Coercion(repair=False, lenient=types.lenient)

    def hook(self, kind: Any, value: Any) -> Any:
        """Build a stand-in's value from decoded JSON; msgspec calls this as its `dec_hook`."""
        # Use few frames per level, because recursive types may be nested as deeply as the text.
        node = kind.node
        while isinstance(node, nodes.Union):
            possible = candidates(node, value)
            member: Node | None
            if len(possible) == 1:
                member = possible[0]
            elif quick := quick_member(possible, value):
                member = quick[0]
            else:
                member = choose_member(node, value, self._coercion)
            if member is None:
                raise ValueError("none of the types fits")
            member = nodes.without_notes(member)
            native = self._types.type_of(member)
            if not is_stand_in(native):
                return msgspec.convert(value, native, str_keys=True, dec_hook=self.hook)
            node = member
        if isinstance(node, nodes.Model):
            from .pydantic_types import build_model

            try:
                return build_model(node, value, lenient=self._types.lenient)
            except ValueError:
                # msgspec copies the error's text, and pydantic's text contains the repr of values.
                raise ValueError("does not fit the model") from None
        if not isinstance(node, nodes.Record):
            return _BUILD[type(node)](node, value)
        mirror = self._types.mirror(node)
        built = msgspec.convert(value, mirror, str_keys=True, dec_hook=self.hook)
        present = {
            field.name: each
            for n, field in enumerate(node.fields)
            if (each := getattr(built, field_name(n))) is not msgspec.UNSET
        }
        return make_record(node, present)


def make_record(node: nodes.Record, values: dict[str, Any]) -> Any:
    """Create an instance of the record's class; fields missing from *values* use defaults."""
    if node.style == "typeddict":
        return values
    if node.style in ("struct", "namedtuple"):
        return node.cls(**values)
    if node.has_plain_init is None:
        # Whether the class takes all fields by name; attrs may use other names.
        node.has_plain_init = node.style != "attrs" and all(
            node.cls.__dataclass_fields__[field.name].init for field in node.fields
        )
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


def _build_choice(node: nodes.Choice, value: Any) -> Any:
    for choice, python in node.values:
        if choice == value and type(choice) is type(value):
            return python
    raise ValueError("none of the values")


def _build_custom(node: nodes.Custom, value: Any) -> Any:
    # Without `decode`, the type is only for results, which are checked as JSON.
    decode = node.codec.decode
    if nodes.kind_of(value) not in nodes.kinds(node):
        raise ValueError("not of the type in its schema")
    return value if decode is None else decode(value)


_BUILD: dict[type[Node], Callable[[Any, Any], Any]] = {
    nodes.Custom: _build_custom,
    nodes.Scalar: read_scalar,
    nodes.Choice: _build_choice,
}


def check_default(parameter: Parameter, node: Node, where: str) -> None:
    """Raise UnservableType, which names *where*, for a result-only type or a wrong default."""
    for each in nodes.reachable(node):
        if isinstance(each, nodes.Custom) and each.codec.decode is None:
            name = each.cls.__name__
            problem = f"{name} is registered without decode, for results only; pass decode too"
            raise UnservableType(where, problem)
    default = parameter.default
    if default is msgspec.NODEFAULT or default is msgspec.UNSET or _fits(node, default):
        return
    raise UnservableType(where, _advice(parameter, default))


def _advice(parameter: Parameter, default: Any) -> str:
    bare = without_metadata(parameter.annotation)
    annotation = bare.__name__ if isinstance(bare, type) else name_of(bare).replace("typing.", "")
    problem = f"its default {shown(default)} is not {annotation}"
    if isinstance(bare, type) and issubclass(bare, Enum):
        for each in bare:
            if each.value == default:
                return f"{problem}; write {each!s}"
    if not isinstance(default, bool | int | float | str):
        return f"{problem}; write a default of that type"
    wider = f"{annotation} | {type(default).__name__}"
    return f"{problem}; write {parameter.target}: {wider}, or another default"


def _fits(node: Node, value: Any) -> bool:
    return _FITS[type(node)](node, value)


def _scalar(node: nodes.Scalar, value: Any) -> bool:
    if node.kind is float or node.kind is Decimal:
        return is_number(value) or isinstance(value, Decimal)
    if node.kind is int:
        return is_integer(value)
    if node.kind in nodes.BYTES_TYPES:
        return isinstance(value, nodes.BYTES_TYPES)
    return isinstance(value, node.kind)


def _choice(node: nodes.Choice, value: Any) -> bool:
    # A member of a StrEnum or IntEnum equals its value, and functions treat both alike.
    return any(type(value) is type(each) and value == each for _, each in node.values) or any(
        isinstance(each, Enum) and each == value for _, each in node.values
    )


def _array(node: nodes.Array, value: Any) -> bool:
    # A tuple is a common default for a list, because it is immutable.
    if not isinstance(value, list | tuple | set | frozenset):
        return False
    return all(_fits(node.item, each) for each in value)


def _fixed(node: nodes.Fixed, value: Any) -> bool:
    if not isinstance(value, list | tuple) or len(value) != len(node.items):
        return False
    return all(_fits(kind, each) for kind, each in zip(node.items, value, strict=True))


def _mapping(node: nodes.Mapping, value: Any) -> bool:
    if not isinstance(value, abc.Mapping):
        return False
    return all(_fits(node.value, each) for each in value.values())


def _record(node: nodes.Record, value: Any) -> bool:
    return isinstance(value, dict if node.style == "typeddict" else node.cls)


def _model(node: nodes.Model, value: Any) -> bool:
    cls = without_metadata(node.annotation)
    if hasattr(cls, "model_fields"):
        return isinstance(value, cls)
    # pydantic reads other types, such as AnyUrl, from strings, and does not check their defaults.
    return value is not None or not isinstance(cls, type)


_FITS: dict[type[Node], Callable[[Any, Any], bool]] = {
    nodes.Anything: lambda node, value: True,
    nodes.Null: lambda node, value: value is None,
    nodes.Scalar: _scalar,
    nodes.Choice: _choice,
    nodes.Array: _array,
    nodes.Fixed: _fixed,
    nodes.Mapping: _mapping,
    nodes.Record: _record,
    nodes.Union: lambda node, value: any(_fits(each, value) for each in node.members),
    nodes.Model: _model,
    nodes.Custom: lambda node, value: isinstance(value, node.cls),
    nodes.Noted: lambda node, value: _fits(node.inner, value),
}
