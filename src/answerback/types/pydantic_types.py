"""Types that pydantic reads and writes. It is imported here alone, and only once it is in use."""

from functools import cache
from typing import Any, get_args

import msgspec
from pydantic import BaseModel, RootModel, TypeAdapter, ValidationError
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import SchemaError, SchemaValidator, to_jsonable_python
from pydantic_core.core_schema import ErrorType

from .describe import describe
from .encoding import ENCODER
from .nodes import Model
from .problems import InvalidOutput, item, member
from .walk import Walk


@cache
def _cached_adapter(annotation: Any) -> TypeAdapter[Any]:
    return TypeAdapter(annotation)


def adapter(node: Model) -> TypeAdapter[Any]:
    """What pydantic worked out about the type."""
    try:
        return _cached_adapter(node.annotation)
    except TypeError:
        # Metadata that cannot be hashed.
        return TypeAdapter(node.annotation)


# pydantic collects every error of a value. For JSON longer than this, a list or
# dict ends at its first.
_LONG = 32_768
# Beyond this many errors their texts take too long to make.
_MOST_ERRORS = 10_000


@cache
def _cached_hasty_validator(annotation: Any) -> SchemaValidator:
    schema = _failing_fast(_cached_adapter(annotation).core_schema)
    # Without it, pydantic would take the validators that the classes hold already.
    return SchemaValidator(schema, _use_prebuilt=False)


def _hasty_validator(node: Model) -> SchemaValidator | TypeAdapter[Any]:
    """A validator whose lists, dicts and the like end at their first error."""
    try:
        return _cached_hasty_validator(node.annotation)
    except (TypeError, SchemaError):
        # Metadata that cannot be hashed, or a pydantic that does not know of this.
        return adapter(node)


def _failing_fast(schema: Any) -> Any:
    if isinstance(schema, list | tuple):
        return type(schema)(map(_failing_fast, schema))
    if not isinstance(schema, dict):
        return schema
    copied = {
        key: part if key in _NOT_SCHEMAS else _failing_fast(part) for key, part in schema.items()
    }
    if copied.get("type") in _CONTAINERS:
        copied["fail_fast"] = True
    return copied


# What may hold an author's own values.
_NOT_SCHEMAS = frozenset({"default", "expected", "metadata", "serialization"})
_CONTAINERS = frozenset({"list", "tuple", "set", "frozenset", "dict"})


def build_model(node: Model, value: Any) -> Any:
    """The typed value of decoded JSON; raises ValueError."""
    return _validate(node, msgspec.json.encode(value), strict=True)


def _validate(node: Model, encoded: bytes, *, strict: bool) -> Any:
    # As JSON and strict: a date may be a string, but an int may not.
    validator = adapter(node) if len(encoded) <= _LONG else _hasty_validator(node)
    return validator.validate_json(encoded, strict=strict)


def settle_model(node: Model, value: Any, path: str, walk: Walk) -> Any:
    """The JSON that the model takes for *value*; what is wrong is noted in *walk*."""
    try:
        build_model(node, value)
        return value
    except ValidationError as error:
        problems = _errors(error)
    mended = _mended(value, problems, walk)
    if mended is not value:
        walk.repairs += 1
        return settle_model(node, mended, path, walk)
    if walk.lenient:
        return _settle_kindly(node, value, path, walk)
    _note(problems, path, walk)
    return value


def _errors(error: ValidationError) -> list[Any]:
    """The errors, or one that counts them if they are too many."""
    count = error.error_count()
    if count > _MOST_ERRORS:
        return [{"type": "", "loc": (), "msg": f"{count} values in it do not fit", "input": None}]
    return error.errors(include_url=False, include_context=False)


def _mended(value: Any, problems: list[Any], walk: Walk) -> Any:
    """The value with `1.0` written as `1` where pydantic wanted an int."""
    spots = [p for p in problems if p["type"] == "int_type" and _is_whole(p["input"])]
    if not walk.repair or not spots:
        return value
    encoded = msgspec.json.encode(value)
    if len(encoded) > _LONG:
        # Only the first of a list was told. To JSON Schema both are one number.
        return _with_ints(value)
    mended = msgspec.json.decode(encoded)
    changed = [_replace(mended, spot["loc"], spot["input"]) for spot in spots]
    return mended if any(changed) else value


def _with_ints(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _with_ints(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_with_ints(each) for each in value]
    return int(value) if _is_whole(value) else value


def _is_whole(value: Any) -> bool:
    return isinstance(value, float) and value.is_integer()


def _replace(holder: Any, loc: tuple[int | str, ...], value: float) -> bool:
    # A location also names the union member it was tried for; those are no keys.
    for n, key in enumerate(loc):
        inside = _get(holder, key)
        if inside == value and isinstance(inside, float) and n >= len(loc) - 2:
            holder[key] = int(value)
            return True
        holder = holder if inside is None else inside
    return False


def _get(holder: Any, key: int | str) -> Any:
    try:
        return holder[key]
    except (KeyError, IndexError, TypeError):
        return None


def _settle_kindly(node: Model, value: Any, path: str, walk: Walk) -> Any:
    try:
        typed = _validate(node, msgspec.json.encode(value), strict=False)
    except ValidationError as error:
        _note(_errors(error), path, walk)
        return value
    walk.repairs += 1
    return to_jsonable_python(typed, by_alias=True)


def _note(problems: list[Any], path: str, walk: Walk) -> None:
    for problem in problems:
        text = problem["msg"]
        walk.report(_spot(path, problem["loc"]), text[:1].lower() + text[1:])


def _spot(path: str, loc: tuple[int | str, ...]) -> str:
    for key in loc:
        path = item(path, key) if isinstance(key, int) else member(path, key)
    return path


def dump(value: Any) -> Any:
    """The JSON of a pydantic object where no type says what it should be."""
    serializer = type(value).__pydantic_serializer__
    return serializer.to_python(value, mode="json", by_alias=True, warnings=False)


def write_model(node: Model, value: Any, path: str) -> tuple[Any, Any]:
    """What is sent for *value*, and the checked value; raises InvalidOutput."""
    checked = _checked(node, value, path)
    try:
        data = adapter(node).dump_python(checked, mode="json", by_alias=True, warnings="error")
    except Exception as error:
        problem = f"{type(value).__name__} cannot be written as JSON"
        raise InvalidOutput(path, problem) from error
    return data, checked


def _checked(node: Model, value: Any, path: str) -> Any:
    try:
        if not _is_instance(node, value):
            return _validate(node, ENCODER.encode(value), strict=True)
        _recheck(node, value)
        return value
    except ValidationError as error:
        first = _errors(error)[0]
        spot = _spot(path, first["loc"])
        raise InvalidOutput(spot, _without_value(first, node)) from None
    except InvalidOutput:
        raise
    except Exception as error:
        problem = f"expected {describe(node)}, got {type(value).__name__}"
        raise InvalidOutput(path, problem) from error


def _without_value(problem: Any, node: Model) -> str:
    """What is wrong, in pydantic's words where these cannot hold the value."""
    kind, words = problem["type"], problem["msg"]
    if kind == "missing":
        return "missing"
    if kind not in _PLAIN_PROBLEMS:
        return f"does not fit {describe(node)} ({kind})"
    start = "Input should be "
    words = words.partition(", unable")[0]
    words = f"expected {words.removeprefix(start)}" if words.startswith(start) else words
    return f"{words[:1].lower()}{words[1:]}, got {type(problem['input']).__name__}"


_PLAIN_PROBLEMS = frozenset(
    {kind for kind in get_args(ErrorType) if kind.endswith("_type")}
    | {"int_parsing", "float_parsing", "bool_parsing", "int_from_float", "finite_number"}
    | {"greater_than", "greater_than_equal", "less_than", "less_than_equal", "multiple_of"}
    | {"string_too_short", "string_too_long", "too_short", "too_long"}
    | {"literal_error", "enum", "is_instance_of", "none_required"}
)


def _is_instance(node: Model, value: Any) -> bool:
    return isinstance(node.annotation, type) and isinstance(value, node.annotation)


def _recheck(node: Model, value: Any) -> None:
    """Validate an instance again: assignment and model_construct check nothing."""
    if not isinstance(value, BaseModel):
        return
    held = taken_apart(value)
    try:
        adapter(node).validate_python(held, by_alias=False, by_name=True)
    except ValidationError as error:
        if any(problem["type"] not in _NOT_OURS for problem in error.errors()):
            raise
    except Exception:  # noqa: BLE001 - see _NOT_OURS
        pass


# An author's validator was made for input, not for what it made of it; and an instance of
# a subclass may hold more than its declared class, which is then not written.
_NOT_OURS = frozenset({"value_error", "assertion_error", "extra_forbidden"})


def taken_apart(value: Any) -> Any:
    """What an instance holds, by the names of its fields, models inside it likewise."""
    if isinstance(value, RootModel):
        return taken_apart(value.root)
    if isinstance(value, BaseModel):
        held = {**value.__dict__, **(value.model_extra or {})}
        return {name: taken_apart(each) for name, each in held.items()}
    if isinstance(value, dict):
        return {key: taken_apart(each) for key, each in value.items()}
    if type(value) in (list, tuple, set, frozenset):
        # A model in a set may not be hashable once it is a dict.
        return [taken_apart(each) for each in value]
    return value


def is_object_model(node: Model) -> bool:
    """Whether the type is always a JSON object."""
    schema = model_schema(node, mode="serialization")
    return _is_object(schema, schema.get("$defs", {}))


def _is_object(schema: dict[str, Any], defs: dict[str, Any]) -> bool:
    if "$ref" in schema:
        return _is_object(defs[schema["$ref"].rpartition("/")[2]], defs)
    arms = schema.get("anyOf") or schema.get("oneOf")
    if arms:
        return all(_is_object(arm, defs) for arm in arms)
    return schema.get("type") == "object"


def model_schema(node: Model, *, mode: Any) -> dict[str, Any]:
    """pydantic's JSON Schema of the type, its definitions under `$defs`."""
    return adapter(node).json_schema(
        mode=mode, ref_template="#/$defs/{model}", schema_generator=_Untitled
    )


class _Untitled(GenerateJsonSchema):
    """Leaves out the titles that only repeat the names."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def model_schema(self, schema: Any) -> dict[str, Any]:
        return _without_title(super().model_schema(schema), schema["cls"])

    def dataclass_schema(self, schema: Any) -> dict[str, Any]:
        return _without_title(super().dataclass_schema(schema), schema["cls"])


def _without_title(rendered: dict[str, Any], cls: type) -> dict[str, Any]:
    if rendered.get("title") == cls.__name__:
        del rendered["title"]
    return rendered
