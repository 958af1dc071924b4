"""Arguments and results defined by an author's JSON Schema; `schema_check` checks them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, Literal, Union

from ..core.secrets import is_secret_path
from . import json_text
from .arguments import Arguments, Parameter, report_unknown
from .coerce import container_in, is_null, read_text
from .output import Output
from .problems import (
    MAX_PROBLEMS,
    Coercion,
    InvalidArguments,
    InvalidOutput,
    describe_value,
    dict_item,
    item,
    kind_name,
    member,
)
from .schema_check import BrokenSchema, CompiledSchema, TooCostly, compile_schema, shown_message
from .schema_references import follow, inner_schemas

_TYPES: dict[str, Any] = {
    "boolean": bool,
    "integer": int,
    "null": None,
    "number": float,
    "object": dict[str, Any],
    "string": str,
}
_MAX_DEPTH = 9


def parameters_of(schema: dict[str, Any], names: Iterable[str] = ()) -> list[Parameter]:
    """Return a parameter for each property, and for each of *names* that the schema allows."""
    properties = schema.get("properties", {})
    found = [
        Parameter(name=name, annotation=_annotation(each, schema, 0))
        for name, each in properties.items()
    ]
    if schema.get("additionalProperties") is not False:
        others = [name for name in dict.fromkeys(names) if name not in properties]
        found += [Parameter(name=name, annotation=Any) for name in others]
    return found


def _annotation(schema: Any, root: dict[str, Any], depth: int) -> Any:
    schema = follow(schema, root) or {}
    if depth > _MAX_DEPTH:
        return Any
    options = schema.get("anyOf") or schema.get("oneOf")
    kind = schema.get("type")
    if isinstance(kind, list):
        options = [{**schema, "type": each} for each in kind]
    if isinstance(options, list) and options:
        members = [_annotation(each, root, depth + 1) for each in options]
        return Any if Any in members else Union[tuple(members)]  # noqa: UP007 -- made at run time
    values = schema.get("enum", [schema["const"]] if "const" in schema else None)
    if isinstance(values, list) and values:
        plain = all(each is None or isinstance(each, str | bool | int) for each in values)
        return Literal[tuple(values)] if plain else Any
    if kind == "array":
        item = _annotation(schema.get("items"), root, depth + 1)
        return list.__class_getitem__(item)
    if kind == "string" and schema.get("contentEncoding") == "base64":
        return bytes
    return _TYPES.get(kind, Any) if isinstance(kind, str) else Any


_TOO_LARGE = "it does not match the schema, but is too large to say where"
_MAX_REPAIRS = 20
"""How many times a value is checked again after strings in it have been read."""
_NUMBERS = {"integer": int, "number": float, "boolean": bool}
_MAX_SHOWN_PROBLEMS = 5


def check_schema(schema: dict[str, Any], where: str) -> None:
    """Raise ValueError, which names *where*, for a schema that cannot be used."""
    try:
        compile_schema(schema)
    except (BrokenSchema, TooCostly) as exc:
        raise ValueError(f"{where} cannot be used: {exc}") from None


class SchemaArguments(Arguments):
    """A decoder for arguments defined by a schema.

    They are passed as one dict to the parameter *keyword*, or as keywords if that is None. No
    argument may have a name in *reserved*, because the function has a parameter with that name.
    """

    aliases: frozenset[str] = frozenset()

    def __init__(
        self,
        keyword: str | None,
        schema: dict[str, Any],
        *,
        reserved: Collection[str] = (),
        lenient: bool = False,
    ) -> None:
        super().__init__((), lenient=lenient)
        self._keyword = keyword
        self._reserved = reserved
        self._compiled = compile_schema(schema)
        self._known = list(schema.get("properties", ()))

    def decode(self, raw: bytes) -> dict[str, Any]:
        json_text.refuse_bad_text(raw)
        return self._coerce(self, raw)

    def coerce(self, sent: dict[str, Any], coercion: Coercion) -> dict[str, Any]:
        """Return the arguments, with strings read as numbers; *coercion* collects problems."""
        # A number in the JSON was out of range.
        if coercion.problems:
            raise InvalidArguments(tuple(coercion.problems))
        for name in sorted(sent.keys() & self._reserved):
            report_unknown(name, self._known, coercion)
            del sent[name]
        errors = self._errors(sent, coercion)
        for _ in range(_MAX_REPAIRS):
            texts_read = [_read_text(sent, each, coercion) for each in errors]
            if not any(texts_read):
                break
            errors = self._errors(sent, coercion)
        for error in errors:
            report_error(error, coercion, self._known)
        return sent

    def _errors(self, sent: dict[str, Any], coercion: Coercion) -> list[Any]:
        try:
            errors = self._compiled.errors(sent, MAX_PROBLEMS + 1)
        except TooCostly as exc:
            coercion.report("", str(exc))
            return []
        if errors is None:
            coercion.report("", _TOO_LARGE)
        return errors or []

    def convert(self, coerced: dict[str, Any]) -> dict[str, Any]:
        """Return the function's keyword arguments."""
        return coerced if self._keyword is None else {self._keyword: coerced}


class SchemaOutput(Output):
    """An encoder for return values defined by a schema."""

    def __init__(self, annotation: Any, schema: dict[str, Any]) -> None:
        super().__init__(annotation)
        self._compiled: CompiledSchema = compile_schema(schema)
        # The names of all properties; these are not data.
        found = [each.get("properties") for each in inner_schemas(schema)]
        self._known = {name for each in found if isinstance(each, dict) for name in each}

    def encode(self, value: Any) -> tuple[bytes, Any]:
        """Return compact JSON for *value*, and the value; raises InvalidOutput."""
        encoded, data = super().encode(value)
        try:
            errors = self._compiled.errors(data, _MAX_SHOWN_PROBLEMS)
        except TooCostly as exc:
            raise InvalidOutput("", str(exc)) from None
        if errors is None:
            raise InvalidOutput("", _TOO_LARGE)
        if errors:
            coercion = Coercion(show_values=False)
            for error in errors:
                report_error(error, coercion, self._known)
            first, *more = coercion.problems[:_MAX_SHOWN_PROBLEMS]
            raise InvalidOutput(first.path, "; ".join([first.message, *map(str, more)]))
        return encoded, data


def report_error(error: Any, coercion: Coercion, known: Collection[str]) -> None:
    """Report an error from jsonschema-rs; *known* holds property names.

    For arguments, these are the names that a message may suggest; for results, the names that
    are not data.
    """
    path = _path(error.instance_path, coercion, known)
    keyword = str(error.schema_path[-1]) if error.schema_path else ""
    if keyword == "required":
        coercion.report(member(path, error.kind.property), "missing")
    elif hasattr(error.kind, "unexpected"):
        for name in error.kind.unexpected:
            if path or not coercion.show_values:
                coercion.report(_path([name], coercion, known, path), "unknown")
            else:
                report_unknown(str(name), known, coercion)
    else:
        is_shown = coercion.show_values and not is_secret_path(path, coercion.aliases)
        if types := _expected_types(error):
            got = describe_value(error.instance) if is_shown else kind_name(error.instance)
            message = f"expected {' or '.join(types)}, got {got}"
        else:
            hidden = f"it violates the schema's {keyword!r}"
            message = shown_message(error) if is_shown else hidden
        coercion.report(path, message)


def _path(steps: list[Any], coercion: Coercion, known: Collection[str], path: str = "") -> str:
    for step in steps:
        if isinstance(step, int):
            path = item(path, step)
        elif coercion.show_values or step in known:
            path = member(path, step)
        else:
            path = dict_item(path, step)
    return path


def _expected_types(error: Any) -> list[str]:
    """Return the expected JSON types if the type is wrong."""
    if hasattr(error.kind, "types"):
        return [str(each) for each in error.kind.types]
    # The errors from each schema in an `anyOf` or `oneOf`.
    branches = getattr(error.kind, "context", ())
    found: dict[str, None] = {}
    for branch in branches:
        if len(branch) != 1 or not hasattr(branch[0].kind, "types"):
            return []
        if len(branch[0].instance_path) != len(error.instance_path):
            return []
        found |= dict.fromkeys(map(str, branch[0].kind.types))
    return list(found)


def _read_text(data: Any, error: Any, coercion: Coercion) -> bool:
    """Replace a string in *data* with the number, boolean, array or object in it.

    Returns False if the error is about something else.
    """
    steps = error.instance_path
    types = _expected_types(error)
    if not types or not steps or not coercion.may_read(error.instance):
        return False
    read = _as_type(error.instance, types)
    if read is error.instance:
        return False
    for step in steps[:-1]:
        data = data[step]
    data[steps[-1]] = read
    return True


def _as_type(text: str, types: list[str]) -> Any:
    for name in types:
        if name in _NUMBERS and (number := read_text(_NUMBERS[name], text)) is not None:
            return number
        if name == "null" and is_null(text):
            return None
    inside = container_in(text) if {"array", "object"} & set(types) else None
    wanted = "array" if isinstance(inside, list) else "object"
    return inside if inside is not None and wanted in types else text
