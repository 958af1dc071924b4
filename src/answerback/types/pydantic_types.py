"""Types that pydantic validates and serialises.

Only this module imports pydantic; it is loaded when a tool uses such a type. Arguments are read in
pydantic's lax mode if the tool is lenient, and in its strict mode otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, time
from functools import cache, partial
from typing import Any, get_args

import msgspec
from pydantic import BaseModel, RootModel, TypeAdapter, ValidationError
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core.core_schema import ErrorType

from ..core.secrets import quotes_secret
from . import nodes
from .annotation_reader import read_metadata
from .coerce import container_in, is_null, read_text
from .default_check import make_record
from .json_schema import format_keyword, join_descriptions
from .json_text import ENCODER, MAX_DEPTH, encode_with_nan, is_too_deep
from .nodes import Model, Node, Scalar, ValueLimits
from .output import OutputCheck, may_be_not_finite, refuse_unencodable
from .problems import (
    Coercion,
    InvalidOutput,
    describe,
    dict_item,
    item,
    member,
    refusal,
    without_metadata,
)
from .schema_references import alternatives

# Strings in longer JSON are not read, because pydantic would validate it again for each.
_LONG_JSON = 32_768


def with_texts_read(value: Any, problems: list[Any]) -> Any:
    """Return a copy with refused strings replaced by the values in them, or *value* itself."""
    found = [(each["loc"], each["input"], _read(each)) for each in problems]
    readable = [each for each in found if each[2] is not _UNREAD]
    if not readable:
        return value
    if isinstance(value, str):
        return readable[0][2]
    encoded = msgspec.json.encode(value)
    if len(encoded) > _LONG_JSON:
        return value
    copied = msgspec.json.decode(encoded)
    changed = [_replace_at(copied, loc, text, read) for loc, text, read in readable]
    return copied if any(changed) else value


_UNREAD = object()


def _read(problem: Any) -> Any:
    """Return the value in the refused string, or `_UNREAD`."""
    text, kind = problem["input"], problem["type"]
    if not isinstance(text, str) or kind not in _READERS:
        return _UNREAD
    read = _READERS[kind](text)
    if read is None and not (kind in _NULLS and is_null(text)):
        return _UNREAD
    return read


def _container(kind: type, text: str) -> Any:
    inside = container_in(text)
    return inside if isinstance(inside, kind) else None


def _choice(text: str) -> Any:
    found = (read_text(kind, text) for kind in (bool, int, float))
    return next((each for each in found if each is not None), None)


_ARRAYS = ("list_type", "tuple_type", "set_type", "frozen_set_type")
_OBJECTS = ("dict_type", "model_type", "model_attributes_type", "dataclass_type", "mapping_type")
_READERS: dict[str, Callable[[str], Any]] = {
    "literal_error": _choice,
    "enum": _choice,
    "none_required": lambda text: None,
    **dict.fromkeys(_ARRAYS, partial(_container, list)),
    **dict.fromkeys(_OBJECTS, partial(_container, dict)),
}
_NULLS = frozenset({"none_required", "literal_error"})


def _replace_at(container: Any, loc: tuple[int | str, ...], old: Any, new: Any) -> bool:
    """Replace *old* at *loc* with *new*; return whether it was there."""
    # A location also contains the names of union members, which are not keys of the value.
    for n, key in enumerate(loc):
        try:
            inside = container[key]
        except (KeyError, IndexError, TypeError):
            inside = None
        if inside == old and type(inside) is type(old) and n >= len(loc) - 2:
            container[key] = new
            return True
        container = container if inside is None else inside
    return False


@cache
def _cached_adapter(annotation: Any) -> TypeAdapter[Any]:
    made = TypeAdapter(annotation)
    # A model may defer its schema. Pydantic before 2.10 has neither this attribute nor `rebuild`.
    if not getattr(made, "pydantic_complete", True):
        made.rebuild(raise_errors=False)
    return made


def adapter(node: Model) -> TypeAdapter[Any]:
    """Return pydantic's adapter for the type, from the cache if possible."""
    try:
        return _cached_adapter(node.annotation)
    except TypeError:
        # The metadata is not hashable, so the adapter cannot be cached.
        return _cached_adapter.__wrapped__(node.annotation)


def build_model(node: Model, value: Any, *, lenient: bool) -> Any:
    """Return the typed value for decoded JSON; raises ValidationError."""
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
    if changed is value and coercion.repair:
        kinds_and_inputs = ((each["type"], each["input"]) for each in problems)
        if any(kind == "int_type" and _is_integral(sent) for kind, sent in kinds_and_inputs):
            changed = _with_ints(value)
    if changed is not value:
        coercion.repairs += 1
        return coerce_model(node, changed, path, coercion)
    for problem in problems:
        place = path
        for key in problem["loc"]:
            place = item(place, key) if isinstance(key, int) else member(place, key)
        coercion.report(place, _text_of(problem, value, path, coercion.aliases))
    return value


# Writing messages for more errors than this takes too long.
_MAX_ERRORS = 10_000


def _counted(error: ValidationError) -> str | None:
    """Return a message with the number of errors if there are too many to list."""
    count = error.error_count()
    return f"{count} values in it do not fit" if count > _MAX_ERRORS else None


def _with_ints(value: Any) -> Any:
    """Return a copy with `1` for each `1.0`, because they are equal in JSON Schema."""
    if isinstance(value, dict):
        return {key: _with_ints(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_with_ints(each) for each in value]
    return int(value) if _is_integral(value) else value


def _is_integral(value: Any) -> bool:
    # msgspec does not encode larger numbers.
    return isinstance(value, float) and value.is_integer() and abs(value) < 2**63


def _text_of(problem: Any, sent: Any, path: str, aliases: frozenset[str]) -> str:
    """Return pydantic's message, without text that is not for the caller."""
    text: str = problem["msg"]
    error = problem.get("ctx", {}).get("error")
    if isinstance(error, BaseException):
        text = refusal(error, sent, path, aliases)
    elif problem["type"] not in _SAFE_ERRORS and quotes_secret(text, sent, path, aliases):
        text = f"refused ({problem['type']})"
    if problem["type"] in ("string_too_short", "string_too_long"):
        text += f", got str of length {len(problem['input'])}"
    return text[:1].lower() + text[1:]


def to_plain(value: Any) -> Any:
    """Return an instance, and the models inside it, as dicts by field name."""
    if isinstance(value, RootModel):
        return to_plain(value.root)
    if isinstance(value, BaseModel):
        fields = {**value.__dict__, **(value.model_extra or {})}
        return {name: to_plain(each) for name, each in fields.items()}
    if isinstance(value, dict):
        return {key: to_plain(each) for key, each in value.items()}
    if type(value) in (list, tuple, set, frozenset):
        # Even a set becomes a list, because a model's dict is not hashable.
        return [to_plain(each) for each in value]
    return value


def model_names(node: Model) -> Iterator[tuple[str, ...]]:
    """Yield the names of each field in the type's models: its own name and its aliases."""
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
    return all(each.get("type") == "object" for each in alternatives(schema, schema))


def model_schema(node: Model, *, mode: Any) -> dict[str, Any]:
    """Return pydantic's JSON Schema for the type, with its definitions under `$defs`."""
    return adapter(node).json_schema(
        mode=mode,
        ref_template="#/$defs/{model}",
        schema_generator=_SchemaWithNull if node.nan_is_null else _SchemaWithoutFieldTitles,
    )


# Holds a type's description until the author's description of the field is known.
_WORDS = "x-answerback-words"


class _SchemaWithoutFieldTitles(GenerateJsonSchema):
    """Leaves out titles that only repeat a field's name, and describes times without an offset."""

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
    """Return the schema with each type's description after the author's."""
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
    """Also lets every float be null."""

    def float_schema(self, schema: Any) -> dict[str, Any]:
        return {"anyOf": [super().float_schema(schema), {"type": "null"}]}


# The data to encode, and the checked value.
Written = tuple[Any, Any]


class ModelOutputCheck:
    """Encodes and checks values of a type that contains pydantic models."""

    def __init__(self, node: Node, *, nan_is_null: bool = False) -> None:
        self._node = node
        self.nan_is_null = nan_is_null
        self._checks = {
            id(each): OutputCheck(each, nan_is_null=nan_is_null)
            for each in nodes.reachable(node)
            if not nodes.has_models(each)
        }

    def run(self, value: Any) -> tuple[bytes, Any]:
        """Return the JSON text of *value*, and the checked value."""
        try:
            data, checked = self.write(self._node, value, "")
            encoded = ENCODER.encode(data)
        except InvalidOutput:
            raise
        except RecursionError:
            raise InvalidOutput("", f"nested deeper than {MAX_DEPTH} levels") from None
        except Exception as error:
            problem = f"{type(value).__name__} cannot be written as JSON"
            raise InvalidOutput("", problem) from error
        if may_be_not_finite(value, encoded, nan_is_null=self.nan_is_null):
            refuse_unencodable(value, nan_is_null=self.nan_is_null)
        if is_too_deep(encoded):
            raise InvalidOutput("", f"nested deeper than {MAX_DEPTH} levels")
        return encoded, checked

    def write(self, node: Node, value: Any, path: str) -> Written:
        """Return the data to encode for *value*, and the checked value."""
        check = self._checks.get(id(node))
        if check is None:
            return _WRITE[type(node)](self, node, value, path)
        try:
            encoded, checked = check.run(value)
        except InvalidOutput as error:
            raise error.below(path) from error.__cause__
        return msgspec.Raw(encoded), checked


def _mismatch(node: Node, value: Any, path: str) -> InvalidOutput:
    return InvalidOutput(path, f"expected {describe(node)}, got {type(value).__name__}")


def _model(check: ModelOutputCheck, node: Model, value: Any, path: str) -> Written:
    cls = node.annotation
    try:
        items = getattr(cls, "__metadata__", None)
        # A description does not change the class; a validator must see the value.
        if items is not None and not read_metadata(items).needs_pydantic:
            cls = cls.__origin__
        if isinstance(cls, type) and isinstance(value, cls):
            _recheck(node, value)
            checked = value
        else:
            encode = encode_with_nan if node.nan_is_null else ENCODER.encode
            checked = _validate(node, encode(value), lenient=True)
    except ValidationError as error:
        if many := _counted(error):
            raise InvalidOutput(path, many) from None
        first = error.errors(include_url=False)[0]
        for index, key in enumerate(first["loc"]):
            if isinstance(key, int):
                path = item(path, key)
            else:
                # pydantic does not distinguish inner models' fields from dict keys.
                path = dict_item(path, key) if index else member(path, key)
        raise InvalidOutput(path, _message_without_value(first, node)) from None
    except Exception as error:
        problem = f"expected {describe(node)}, got {type(value).__name__}"
        raise InvalidOutput(path, problem) from error
    try:
        data = adapter(node).dump_python(checked, mode="json", by_alias=True, warnings="error")
    except Exception as error:
        problem = f"{type(value).__name__} cannot be written as JSON"
        raise InvalidOutput(path, problem) from error
    return data, checked


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


# The error kinds whose messages name the expected type or limit, but never the value.
_SAFE_ERRORS = frozenset(
    {kind for kind in get_args(ErrorType) if kind.endswith("_type")}
    | {"int_parsing", "float_parsing", "bool_parsing", "int_from_float", "finite_number"}
    | {"greater_than", "greater_than_equal", "less_than", "less_than_equal", "multiple_of"}
    | {"string_too_short", "string_too_long", "too_short", "too_long"}
    | {"literal_error", "enum", "is_instance_of", "none_required"}
)


def _recheck(node: Model, value: Any) -> None:
    """Validate an instance again, because assignment and model_construct do not validate."""
    if not isinstance(value, BaseModel):
        return
    try:
        adapter(node).validate_python(to_plain(value), by_alias=False, by_name=True)
    except ValidationError as error:
        if any(problem["type"] not in _IGNORED_ERRORS for problem in error.errors()):
            raise
    except Exception:  # noqa: BLE001 -- see _IGNORED_ERRORS
        pass


# An author's validators expect raw input, and may refuse their own result. A subclass
# instance may have more fields than the declared class; the extra ones are not written.
_IGNORED_ERRORS = frozenset({"value_error", "assertion_error", "extra_forbidden"})


def _array(check: ModelOutputCheck, node: nodes.Array, value: Any, path: str) -> Written:
    minimum, maximum = node.limits.min_length or 0, node.limits.max_length
    if not isinstance(value, list | tuple | set | frozenset) or len(value) < minimum:
        raise _mismatch(node, value, path)
    if maximum is not None and len(value) > maximum:
        raise _mismatch(node, value, path)
    pairs = [check.write(node.item, each, item(path, n)) for n, each in enumerate(value)]
    return [data for data, _ in pairs], node.container(checked for _, checked in pairs)


def _fixed(check: ModelOutputCheck, node: nodes.Fixed, value: Any, path: str) -> Written:
    if not isinstance(value, list | tuple) or len(value) != len(node.items):
        raise _mismatch(node, value, path)
    kinds = enumerate(zip(node.items, value, strict=True))
    pairs = [check.write(kind, each, item(path, n)) for n, (kind, each) in kinds]
    return [data for data, _ in pairs], tuple(checked for _, checked in pairs)


def _mapping(check: ModelOutputCheck, node: nodes.Mapping, value: Any, path: str) -> Written:
    if not isinstance(value, dict):
        raise _mismatch(node, value, path)
    # The keys are checked in a separate dict, with null for every value.
    keys = nodes.Mapping(node.key, nodes.Anything(), node.limits)
    encoded, checked_keys = OutputCheck(keys).run(dict.fromkeys(value))
    pairs = [check.write(node.value, each, dict_item(path, key)) for key, each in value.items()]
    names = msgspec.json.decode(encoded)
    data = dict(zip(names, (data for data, _ in pairs), strict=True))
    return data, dict(zip(checked_keys, (checked for _, checked in pairs), strict=True))


def _record(check: ModelOutputCheck, node: nodes.Record, value: Any, path: str) -> Written:
    present = _present_fields(node, value, path)
    data: dict[str, Any] = {}
    values: dict[str, Any] = {}
    for field in node.fields:
        field_path = member(path, field.json_name)
        if field.name not in present:
            if field.required:
                raise InvalidOutput(field_path, "missing")
            continue
        data[field.json_name], values[field.name] = check.write(
            field.node, present[field.name], field_path
        )
    if node.tag is not None:
        data = {node.tag[0]: node.tag[1], **data}
    return list(data.values()) if node.array else data, make_record(node, values)


def _present_fields(node: nodes.Record, value: Any, path: str) -> dict[str, Any]:
    """Return the values of the declared fields, by name."""
    if isinstance(value, dict):
        fields = [field for field in node.fields if field.json_name in value]
        return {field.name: value[field.json_name] for field in fields}
    is_array = node.array and node.tag is None and isinstance(value, list)
    if is_array and len(value) <= len(node.fields):
        return {field.name: each for field, each in zip(node.fields, value, strict=False)}
    if node.style == "typeddict" or not isinstance(value, node.cls):
        raise _mismatch(node, value, path)
    found = ((field.name, getattr(value, field.name, msgspec.UNSET)) for field in node.fields)
    return {name: each for name, each in found if each is not msgspec.UNSET}


def _union(check: ModelOutputCheck, node: nodes.Union, value: Any, path: str) -> Written:
    refusals = []
    for kind in sorted(node.members, key=lambda kind: not _is_instance_of_model(kind, value)):
        try:
            return check.write(kind, value, path)
        except InvalidOutput as error:
            if _is_instance_of_model(kind, value):
                raise
            refusals.append(error)
    if len(refusals) == 1:
        raise refusals[0]
    raise _mismatch(node, value, path)


def _is_instance_of_model(node: Node, value: Any) -> bool:
    node = nodes.without_notes(node)
    cls = getattr(node, "cls", None) or getattr(node, "annotation", None)
    return isinstance(cls, type) and not hasattr(cls, "__total__") and isinstance(value, cls)


_WRITE: dict[type[Node], Callable[[ModelOutputCheck, Any, Any, str], Written]] = {
    nodes.Model: _model,
    nodes.Array: _array,
    nodes.Fixed: _fixed,
    nodes.Mapping: _mapping,
    nodes.Record: _record,
    nodes.Union: _union,
    nodes.Noted: lambda check, node, value, path: check.write(node.inner, value, path),
}
