"""Functions that take all arguments as one object, or as the keywords of `**kwargs`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, Unpack, get_args, get_origin

import msgspec

from ..core.secrets import aliases_of_secrets
from . import json_text, nodes
from .annotation_reader import is_object_node, read_fields, read_type, start_record, style_of
from .arguments import Arguments, Parameter, converted, names_in, report_unknown
from .coerce import coerce
from .field_info import read_parameter
from .json_schema import argument_object_schema
from .msgspec_types import MsgspecTypes
from .problems import Coercion, InvalidArguments, UnservableType, is_plain_dict


class ObjectArguments(Arguments):
    """A decoder for an argument object that the parameter *keyword* receives as one value."""

    def __init__(self, keyword: str, annotation: Any, *, lenient: bool = False) -> None:
        super().__init__((), lenient=lenient)
        self._keyword = keyword
        self._annotation = annotation

    @cached_property
    def _object(self) -> _ObjectDecoder:
        return _ObjectDecoder(self._keyword, self._annotation, lenient=self._lenient)

    def decode(self, raw: bytes) -> dict[str, Any]:
        json_text.refuse_bad_text(raw)
        return self._coerce(self._object, raw)

    def has_too_many_values(self, raw: bytes, most: int) -> bool:
        return nodes.has_models(self._object.node) and json_text.has_more_values(raw, most)

    @property
    def aliases(self) -> frozenset[str]:
        return self._object.aliases


class _ObjectDecoder:
    """The type's node, and a msgspec type for it."""

    def __init__(self, keyword: str, annotation: Any, *, lenient: bool) -> None:
        self.node = read_type(annotation, keyword)
        self._keyword = keyword
        self._types = MsgspecTypes(lenient=lenient)
        self._type = self._types.type_of(self.node)
        schema = argument_object_schema(annotation)
        self._names = set(schema["properties"])
        bare = nodes.without_notes(self.node)
        if isinstance(bare, nodes.Model):
            from .pydantic_types import accepted_names

            # A model may accept a field under several names.
            self._names |= accepted_names(bare)
        self._is_closed = schema.get("additionalProperties") is False

    @cached_property
    def aliases(self) -> frozenset[str]:
        """All names of each field that has at least one secret name."""
        return aliases_of_secrets(names_in(self.node))

    def coerce(self, sent: dict[str, Any], coercion: Coercion) -> Any:
        """Return the object as JSON that fits the type; *coercion* collects problems."""
        # A number in the JSON was out of range.
        if coercion.problems:
            raise InvalidArguments(tuple(coercion.problems))
        unknown = sent.keys() - self._names if self._is_closed else set[str]()
        for name in sorted(unknown):
            report_unknown(name, self._names, coercion)
        known = {name: each for name, each in sent.items() if name not in unknown}
        return coerce(self.node, known, "", coercion)

    def convert(self, coerced: Any) -> dict[str, Any]:
        """Return the value as the function's only argument."""
        return {self._keyword: converted(self._types, coerced, self._type, self.aliases)}


class ArgumentObject(msgspec.Struct, frozen=True):
    """All of a function's arguments as one object."""

    parameter: str | None
    """The parameter that receives them; None if they are the keywords of `**kwargs`."""
    annotation: object
    reserved: frozenset[str] = frozenset()
    """Names that keywords must not have, because they are the names of other parameters."""

    @property
    def is_free(self) -> bool:
        """Whether the type says nothing about the arguments."""
        return is_plain_dict(self.annotation)


def keyword_parameters(
    hint: object, name: str, named: frozenset[str], owner: str
) -> list[Parameter]:
    """Return a parameter for each key of `**kwargs: Unpack[TypedDict]`.

    Raises TypeError for any other *hint*, and for a key that is also among the *named* parameters.
    """
    if get_origin(hint) is not Unpack:
        raise TypeError(
            f"{owner} takes **{name} without saying which arguments there are; name each "
            f"argument, write **{name}: Unpack[T] with a TypedDict T, pass input_schema=, or take "
            "args: Annotated[dict, AllArguments] for any arguments"
        )
    typed_dict, where = get_args(hint)[0], f"**{name} of {owner}"
    cls = getattr(typed_dict, "__origin__", None) or typed_dict
    if style_of(cls) != "typeddict":
        raise UnservableType(where, f"Unpack takes a TypedDict here, not {typed_dict!r}")
    hints: dict[str, Any] = {}

    def keep(annotation: Any, key: str) -> nodes.Node:
        hints[key] = annotation
        return nodes.Anything()

    found = []
    for field in read_fields(start_record(typed_dict, cls, "typeddict"), keep):
        default: Any = msgspec.NODEFAULT if field.required else msgspec.UNSET
        found.append(read_parameter(field.name, hints[field.name], default, where))
    _refuse_taken((each.target for each in found), named, f"**{name}", owner)
    return found


def _refuse_taken(names: Iterable[str], named: frozenset[str], where: str, owner: str) -> None:
    if taken := sorted(named.intersection(names)):
        raise TypeError(
            f"{where} of {owner} has {taken[0]!r}, but the function has a parameter of that name; "
            "rename the parameter"
        )


def refuse_others(
    found: list[ArgumentObject],
    parameters: list[Parameter],
    owner: str,
    schema: Mapping[str, Any] | None,
) -> None:
    """Raise TypeError for parameters other than the object that holds all arguments.

    A parameter that has a default and is not in the schema keeps its default, because functions
    created in a loop often have one.
    """
    if len(found) > 1:
        raise TypeError(f"{owner} takes all arguments twice; once is enough")
    (arguments,) = found
    if arguments.parameter is None:
        taken = "**kwargs"
        others = [each.target for each in parameters if each.required]
    else:
        taken = repr(arguments.parameter)
        others = [each.target for each in parameters]
        where = f"parameter {taken} of {owner}"
        try:
            node = read_type(arguments.annotation, where)
        except NameError:
            # A name is not yet defined; the first call reads the annotation again.
            pass
        else:
            if not is_object_node(node):
                advice = "write dict[str, Any], a TypedDict, a dataclass or a model"
                raise UnservableType(where, f"all arguments together are an object; {advice}")
    if others:
        also = ", ".join(map(repr, others))
        raise TypeError(
            f"{owner} takes all arguments in {taken}, and also {also}; read an argument from "
            f"{taken}, and mark a value from the server with Depends, as in "
            f"{others[0]}: Annotated[T, Depends(fn)]"
        )
    properties = (schema or {}).get("properties", ())
    _refuse_taken(properties, arguments.reserved, "input_schema", owner)
