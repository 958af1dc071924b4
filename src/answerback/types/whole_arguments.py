"""Decodes the whole argument object for one parameter, by the parameter's type."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import msgspec

from ..core.secrets import aliases_of_secrets
from . import json_text, nodes
from .annotation_reader import is_object_node, read_fields, read_type, start_record, style_of
from .arguments import Arguments, Parameter, converted, names_in, report_unknown
from .coerce import coerce
from .field_info import read_parameter
from .json_schema import argument_object_schema
from .msgspec_types import MsgspecTypes
from .problems import Coercion, InvalidArguments, UnservableType


def check_whole(annotation: Any, where: str) -> None:
    """Raise UnservableType, which names *where*, for a type that is not a JSON object.

    A name that is not yet defined passes: the first call reads the annotation again.
    """
    try:
        node = read_type(annotation, where)
    except NameError:
        return
    if not is_object_node(node):
        advice = "write dict[str, Any], a TypedDict, a dataclass or a model"
        raise UnservableType(where, f"all arguments together are an object; {advice}")


def unpacked(typed_dict: Any, where: str) -> list[Parameter]:
    """Return a parameter for each key of the TypedDict in `**kwargs: Unpack[TypedDict]`.

    Raises UnservableType, which names *where*, for another type.
    """
    cls = getattr(typed_dict, "__origin__", None) or typed_dict
    if style_of(cls) != "typeddict":
        raise UnservableType(where, f"Unpack takes a TypedDict here, not {typed_dict!r}")
    hints: dict[str, Any] = {}

    def keep(hint: Any, name: str) -> nodes.Node:
        hints[name] = hint
        return nodes.Anything()

    fields = list(read_fields(start_record(typed_dict, cls, "typeddict"), keep))
    return [
        read_parameter(each.name, hints[each.name], msgspec.NODEFAULT, where)
        if each.required
        else read_parameter(each.name, hints[each.name], msgspec.UNSET, where)
        for each in fields
    ]


class WholeArguments(Arguments):
    """A decoder for an argument object that the parameter *keyword* receives as one value."""

    def __init__(self, keyword: str, annotation: Any, *, lenient: bool = False) -> None:
        super().__init__((), lenient=lenient)
        self._keyword = keyword
        self._annotation = annotation

    @cached_property
    def _whole(self) -> _WholeDecoder:
        return _WholeDecoder(self._keyword, self._annotation, lenient=self._lenient)

    def decode(self, raw: bytes) -> dict[str, Any]:
        json_text.refuse_bad_text(raw)
        return self._coerce(self._whole, raw)

    def has_too_many_values(self, raw: bytes, most: int) -> bool:
        return nodes.has_models(self._whole.node) and json_text.has_more_values(raw, most)

    @property
    def aliases(self) -> frozenset[str]:
        return self._whole.aliases


class _WholeDecoder:
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

            # A model may take a field under several names.
            self._names |= accepted_names(bare)
        self._is_closed = schema.get("additionalProperties") is False

    @cached_property
    def aliases(self) -> frozenset[str]:
        """All names of the fields that have a secret's name among theirs."""
        return aliases_of_secrets(names_in(self.node))

    def coerce(self, sent: dict[str, Any], coercion: Coercion) -> Any:
        """Return the object as JSON that fits the type; *coercion* collects problems."""
        # Reading found a number out of range.
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
