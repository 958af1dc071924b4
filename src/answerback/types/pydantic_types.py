"""Types that pydantic validates and serialises.

Only this module imports pydantic; it is loaded when a tool uses such a type. Arguments are read in
pydantic's lax mode if the tool is lenient, and in its strict mode if not.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, time
from functools import cache
from typing import Any, get_args

import msgspec
from pydantic import BaseModel, RootModel, TypeAdapter, ValidationError
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core.core_schema import ErrorType

from ..core.secrets import quotes_secret
from .annotated import read_metadata
from .describe import describe, without_metadata
from .json_text import ENCODER, encode_with_nan
from .nodes import Model, Scalar, ValueLimits
from .problems import Coercion, InvalidOutput, dict_item, item, member
from .pydantic_lenient import with_texts_read
from .scalars import format_keyword, join_descriptions
from .validator_text import refusal


@cache
def _cached_adapter(annotation: Any) -> TypeAdapter[Any]:
    return _complete_adapter(annotation)


def adapter(node: Model) -> TypeAdapter[Any]:
    """Return pydantic's adapter for the type, from the cache if possible."""
    try:
        return _cached_adapter(node.annotation)
    except TypeError:
        # The metadata is not hashable, so it cannot be cached.
        return _complete_adapter(node.annotation)


def _complete_adapter(annotation: Any) -> TypeAdapter[Any]:
    made = TypeAdapter(annotation)
    # A model may defer its schema. Pydantic versions before 2.10 have neither of the two.
    if not getattr(made, "pydantic_complete", True):
        made.rebuild(raise_errors=False)
    return made


def build_model(node: Model, value: Any, *, lenient: bool) -> Any:
    """Return the typed value for decoded JSON; raise ValidationError."""
    return _validate(node, msgspec.json.encode(value), lenient=lenient)


def _validate(node: Model, encoded: bytes, *, lenient: bool) -> Any:
    # From JSON, because strict validation then accepts a string for a date, but not for an int.
    return adapter(node).validate_json(encoded, strict=None if lenient else True)


def coerce_model(node: Model, value: Any, path: str, coercion: Coercion) -> Any:
    """Return *value* as JSON that the model accepts; *coercion* collects the problems."""
    try:
        build_model(node, value, lenient=coercion.lenient)
        return value
    except ValidationError as error:
        if many := _counted(error):
            coercion.report(path, many)
            return value
        problems: list[Any] = error.errors(include_url=False)
    changed = value
    if coercion.lenient and coercion.texts.take():
        changed = with_texts_read(value, problems)
    if changed is value and coercion.repair and any(map(_is_about_whole_float, problems)):
        changed = _with_ints(value)
    if changed is not value:
        coercion.repairs += 1
        return coerce_model(node, changed, path, coercion)
    _report(problems, value, path, coercion)
    return value


# The texts of more errors than this take too long to make.
_MAX_ERRORS = 10_000


def _counted(error: ValidationError) -> str | None:
    """Return a message with the number of errors if there are too many to name them."""
    count = error.error_count()
    return f"{count} values in it do not fit" if count > _MAX_ERRORS else None


def _is_about_whole_float(problem: Any) -> bool:
    return problem["type"] == "int_type" and _is_whole(problem["input"])


def _with_ints(value: Any) -> Any:
    """Return a copy with `1` for each `1.0`: in JSON Schema they are equal."""
    if isinstance(value, dict):
        return {key: _with_ints(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_with_ints(each) for each in value]
    return int(value) if _is_whole(value) else value


def _is_whole(value: Any) -> bool:
    # msgspec does not encode larger numbers.
    return isinstance(value, float) and value.is_integer() and abs(value) < 2**63


def _report(problems: list[Any], sent: Any, path: str, coercion: Coercion) -> None:
    for problem in problems:
        coercion.report(
            _path_of(path, problem["loc"]), _text_of(problem, sent, path, coercion.aliases)
        )


def _text_of(problem: Any, sent: Any, path: str, aliases: frozenset[str]) -> str:
    """Return pydantic's message, without texts that are not for the caller."""
    text: str = problem["msg"]
    error = problem.get("ctx", {}).get("error")
    if isinstance(error, BaseException):
        text = refusal(error, sent, path, aliases)
    elif problem["type"] not in _SAFE_ERRORS and quotes_secret(text, sent, path, aliases):
        text = f"refused ({problem['type']})"
    if problem["type"] in ("string_too_short", "string_too_long"):
        text += f", got str of length {len(problem['input'])}"
    return text[:1].lower() + text[1:]


def _path_of(path: str, loc: tuple[int | str, ...]) -> str:
    for key in loc:
        path = item(path, key) if isinstance(key, int) else member(path, key)
    return path


def _output_path(path: str, loc: tuple[int | str, ...]) -> str:
    """Return the path of a problem in a return value.

    pydantic does not distinguish inner models' fields from dict keys, so both count as keys.
    """
    for index, key in enumerate(loc):
        if isinstance(key, int):
            path = item(path, key)
        else:
            path = dict_item(path, key) if index else member(path, key)
    return path


def write_model(node: Model, value: Any, path: str) -> tuple[Any, Any]:
    """Return the data to encode for *value*, and the checked value; raise InvalidOutput."""
    checked = _check(node, value, path)
    try:
        data = adapter(node).dump_python(checked, mode="json", by_alias=True, warnings="error")
    except Exception as error:
        problem = f"{type(value).__name__} cannot be written as JSON"
        raise InvalidOutput(path, problem) from error
    return data, checked


def _check(node: Model, value: Any, path: str) -> Any:
    try:
        if not _is_instance(node, value):
            encode = encode_with_nan if node.nan_is_null else ENCODER.encode
            return _validate(node, encode(value), lenient=True)
        _recheck(node, value)
        return value
    except ValidationError as error:
        if many := _counted(error):
            raise InvalidOutput(path, many) from None
        first = error.errors(include_url=False)[0]
        error_path = _output_path(path, first["loc"])
        raise InvalidOutput(error_path, _message_without_value(first, node)) from None
    except InvalidOutput:
        raise
    except Exception as error:
        problem = f"expected {describe(node)}, got {type(value).__name__}"
        raise InvalidOutput(path, problem) from error


def _message_without_value(problem: Any, node: Model) -> str:
    """Return pydantic's message if it cannot contain the value, else our own."""
    kind, text = problem["type"], problem["msg"]
    if kind == "missing":
        return "missing"
    if kind not in _SAFE_ERRORS:
        return f"does not fit {describe(node)} ({kind})"
    start = "Input should be "
    text = text.partition(", unable")[0]
    text = f"expected {text.removeprefix(start)}" if text.startswith(start) else text
    return f"{text[:1].lower()}{text[1:]}, got {type(problem['input']).__name__}"


# The error kinds whose messages name the expected type or limit, and never the value.
_SAFE_ERRORS = frozenset(
    {kind for kind in get_args(ErrorType) if kind.endswith("_type")}
    | {"int_parsing", "float_parsing", "bool_parsing", "int_from_float", "finite_number"}
    | {"greater_than", "greater_than_equal", "less_than", "less_than_equal", "multiple_of"}
    | {"string_too_short", "string_too_long", "too_short", "too_long"}
    | {"literal_error", "enum", "is_instance_of", "none_required"}
)


def _is_instance(node: Model, value: Any) -> bool:
    cls = node.annotation
    items = getattr(cls, "__metadata__", None)
    # A description does not change the class; a validator must see the value.
    if items is not None and not read_metadata(items).needs_pydantic:
        cls = cls.__origin__
    return isinstance(cls, type) and isinstance(value, cls)


def _recheck(node: Model, value: Any) -> None:
    """Validate an instance again, because assignment and model_construct validate nothing."""
    if not isinstance(value, BaseModel):
        return
    try:
        adapter(node).validate_python(to_plain(value), by_alias=False, by_name=True)
    except ValidationError as error:
        if any(problem["type"] not in _IGNORED_ERRORS for problem in error.errors()):
            raise
    except Exception:  # noqa: BLE001 -- see _IGNORED_ERRORS
        pass


# An author's validators expect the input, and may refuse their own result. A subclass
# instance may have more fields than the declared class; these are not written.
_IGNORED_ERRORS = frozenset({"value_error", "assertion_error", "extra_forbidden"})


def to_plain(value: Any) -> Any:
    """Return an instance as a dict by field name, and the models inside it too."""
    if isinstance(value, RootModel):
        return to_plain(value.root)
    if isinstance(value, BaseModel):
        fields = {**value.__dict__, **(value.model_extra or {})}
        return {name: to_plain(each) for name, each in fields.items()}
    if isinstance(value, dict):
        return {key: to_plain(each) for key, each in value.items()}
    if type(value) in (list, tuple, set, frozenset):
        # A list also for a set, because a model's dict is not hashable.
        return [to_plain(each) for each in value]
    return value


def model_names(node: Model) -> Iterator[tuple[str, ...]]:
    """Yield the names of each field of the type's models: its own and its aliases."""
    pending, seen = [node.annotation], set[int]()
    while pending:
        each = pending.pop()
        pending += get_args(each)
        if not isinstance(each, type) or not issubclass(each, BaseModel) or id(each) in seen:
            continue
        seen.add(id(each))
        for name, field in each.model_fields.items():
            yield name, *_aliases(field)
            pending.append(field.annotation)


def _aliases(field: Any) -> list[str]:
    aliases = (field.alias, field.validation_alias)
    choices = [*aliases, *getattr(field.validation_alias, "choices", ())]
    return [alias for alias in choices if isinstance(alias, str)]


def accepted_names(node: Model) -> set[str]:
    """Return the names under which a model's fields may be sent; none for other types."""
    model = without_metadata(node.annotation)
    if not isinstance(model, type) or not issubclass(model, BaseModel):
        return set()
    config = model.model_config
    by_name = config.get("populate_by_name") or config.get("validate_by_name")
    found: set[str] = set()
    for name, field in model.model_fields.items():
        aliases = _aliases(field)
        found.update(aliases)
        if by_name or not aliases:
            found.add(name)
    return found


def is_object_model(node: Model) -> bool:
    """Return whether all of the type's values are JSON objects."""
    schema = model_schema(node, mode="serialization")
    return _is_object(schema, schema.get("$defs", {}))


def _is_object(schema: dict[str, Any], defs: dict[str, Any]) -> bool:
    if "$ref" in schema:
        return _is_object(defs[schema["$ref"].rpartition("/")[2]], defs)
    members = schema.get("anyOf") or schema.get("oneOf")
    if members:
        return all(_is_object(member, defs) for member in members)
    return schema.get("type") == "object"


def model_schema(node: Model, *, mode: Any) -> dict[str, Any]:
    """Return pydantic's JSON Schema for the type, with its definitions under `$defs`."""
    return adapter(node).json_schema(
        mode=mode,
        ref_template="#/$defs/{model}",
        schema_generator=_SchemaWithNull if node.nan_is_null else _SchemaWithoutFieldTitles,
    )


# Keeps a type's words until the author's description of the field is known.
_WORDS = "x-answerback-words"


class _SchemaWithoutFieldTitles(GenerateJsonSchema):
    """A schema without titles that only repeat a field's name; times without an offset say so."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def datetime_schema(self, schema: Any) -> dict[str, Any]:
        return _naive_schema(datetime, schema) or super().datetime_schema(schema)

    def time_schema(self, schema: Any) -> dict[str, Any]:
        return _naive_schema(time, schema) or super().time_schema(schema)

    def generate(self, schema: Any, mode: Any = "validation") -> dict[str, Any]:
        generated: dict[str, Any] = _with_words(super().generate(schema, mode))
        return generated


def _naive_schema(kind: type, schema: Any) -> dict[str, Any] | None:
    if schema.get("tz_constraint") != "naive":
        return None
    words = format_keyword(Scalar(kind, ValueLimits(tz=False)), "validation")["description"]
    return {"type": "string", "description": words, _WORDS: words}


def _with_words(schema: Any) -> Any:
    """Return the schema with each type's words behind the author's description."""
    if isinstance(schema, list):
        return [_with_words(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    shown = {name: _with_words(each) for name, each in schema.items() if name != _WORDS}
    words = schema.get(_WORDS)
    if isinstance(words, str) and shown["description"] != words:
        shown["description"] = join_descriptions(shown["description"], words)
    return shown


class _SchemaWithNull(_SchemaWithoutFieldTitles):
    """A schema in which each float may be null."""

    def float_schema(self, schema: Any) -> dict[str, Any]:
        return {"anyOf": [super().float_schema(schema), {"type": "null"}]}
