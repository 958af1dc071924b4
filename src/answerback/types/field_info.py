"""Reads a parameter's pydantic `Field(...)`: its default and aliases, and whether it is required.

FastAPI's `Query`, `Path`, `Body` and `Form` are subclasses of the same class. Neither library is
imported: their objects are recognised by their classes' modules. `annotation_reader` reads limits
and descriptions, as it does elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from types import NoneType
from typing import Annotated, Any, get_args

import msgspec

from .annotation_reader import is_field_info, read_metadata
from .arguments import Parameter, default_copier
from .problems import UnservableType, without_metadata


def read_parameter(name: str, annotation: Any, default: Any, where: str) -> Parameter:
    """Return a function's parameter; *default* is NODEFAULT for a parameter without one.

    Raises UnservableType, which names *where*, for a Field that no caller could fill in.
    """
    if is_field_info(default):
        annotation, default = Annotated[annotation, default], msgspec.NODEFAULT
    fields = [item for item in getattr(annotation, "__metadata__", ()) if is_field_info(item)]
    if not fields:
        if default is None:
            annotation = _or_none(annotation)
        return Parameter(name=name, annotation=annotation, default=default)
    field_default, factory = _default_of(fields, where)
    if default is msgspec.NODEFAULT:
        default = field_default
    else:
        factory = None
    names = _names_of(fields, where) or (name,)
    # pydantic warns about an alias on a type, and would fill in the default for a null.
    items = tuple(map(_without_default, annotation.__metadata__))
    annotation = Annotated[(annotation.__origin__, *items)]
    if default is None:
        annotation = _or_none(annotation)
    return Parameter(
        name=names[0],
        keyword=name,
        other_names=names[1:],
        annotation=annotation,
        default=default,
        default_factory=factory,
    )


def _or_none(annotation: Any) -> Any:
    """Return the type for a parameter whose default is None, such as `x: str = None`."""
    bare = without_metadata(annotation)
    if bare in (Any, object, NoneType) or NoneType in get_args(bare):
        return annotation
    metadata = getattr(annotation, "__metadata__", ())
    # A validator must not see the null, which is not a value of its type.
    if not metadata or read_metadata(metadata).needs_pydantic:
        return annotation | None
    return Annotated[(bare | None, *metadata)]


def refuse_shared_names(parameters: Sequence[Parameter], where: str) -> None:
    """Raise TypeError, which names *where*, for two parameters with the same name in JSON."""
    seen: dict[str, str] = {}
    for parameter in parameters:
        for name in (parameter.name, *parameter.other_names):
            if name in seen:
                raise TypeError(
                    f"{where} has two parameters named {name!r} in JSON, "
                    f"{seen[name]!r} and {parameter.target!r}; change an alias"
                )
            seen[name] = parameter.target


def _default_of(fields: list[Any], where: str) -> tuple[Any, Callable[[], Any] | None]:
    """Return the default and the function that creates it for each call; the last Field wins."""
    for field in reversed(fields):
        if field.default_factory is not None:
            if field.default_factory_takes_validated_data:
                problem = "its default_factory takes the other fields; write one without parameters"
                raise UnservableType(where, problem)
            return msgspec.NODEFAULT, field.default_factory
        if not field.is_required() and field.default is not ...:
            default = field.default
            return default, default_copier(default) or partial(_same, default)
    return msgspec.NODEFAULT, None


def _same(default: Any) -> Any:
    return default


def _names_of(fields: list[Any], where: str) -> tuple[str, ...]:
    """Return the argument's JSON names, starting with the schema's; empty without an alias."""
    for field in reversed(fields):
        alias = field.validation_alias or field.alias
        if alias is not None:
            # AliasChoices has several names; an AliasPath reads a value inside another argument.
            choices = getattr(alias, "choices", None)
            names = (alias,) if choices is None else tuple(choices)
            if not all(isinstance(each, str) for each in names):
                advice = "take that argument and read it"
                problem = f"an AliasPath reads inside another argument; {advice}"
                raise UnservableType(where, problem)
            return names
    return ()


_ALIASES = ("alias", "alias_priority", "validation_alias", "serialization_alias")


def _without_default(item: Any) -> Any:
    if not is_field_info(item) or (item.is_required() and item.alias is item.validation_alias):
        return item
    from copy import copy

    field = copy(item)
    for name in ("default_factory", *_ALIASES):
        setattr(field, name, None)
    # The value that pydantic itself uses for "no default".
    field.default = type(item)().default
    field._attributes_set = {
        name: value
        for name, value in getattr(item, "_attributes_set", {}).items()
        if name not in ("default", "default_factory", *_ALIASES)
    }
    return field
