"""Types that pydantic reads and writes. It is imported here alone, and only once it is in use."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import msgspec
from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import to_jsonable_python

from answerback.types.nodes import Model
from answerback.types.problems import Problem, item, member
from answerback.types.settling import Walk


@lru_cache(maxsize=None)
def _cached_adapter(annotation: Any) -> TypeAdapter[Any]:
    return TypeAdapter(annotation)


def adapter(node: Model) -> TypeAdapter[Any]:
    """What pydantic worked out about the type."""
    try:
        return _cached_adapter(node.annotation)
    except TypeError:
        # Metadata that cannot be hashed.
        return TypeAdapter(node.annotation)


def build_model(node: Model, value: Any) -> Any:
    """The typed value of decoded JSON; raises ValueError."""
    # As JSON and strict: a date may be a string, but an int may not.
    return adapter(node).validate_json(msgspec.json.encode(value), strict=True)


def settle_model(node: Model, value: Any, path: str, walk: Walk) -> Any:
    """The JSON that the model takes for *value*; what is wrong is noted in *walk*."""
    try:
        build_model(node, value)
        return value
    except ValidationError as error:
        problems = error.errors(include_url=False, include_context=False)
    mended = _mended(value, problems, walk)
    if mended is not value:
        walk.repairs += 1
        return settle_model(node, mended, path, walk)
    if walk.lenient:
        return _settle_kindly(node, value, path, walk)
    _note(problems, path, walk)
    return value


def _mended(value: Any, problems: list[Any], walk: Walk) -> Any:
    """The value with `1.0` written as `1` where pydantic wanted an int."""
    spots = [p for p in problems if p["type"] == "int_type" and _is_whole(p["input"])]
    if not walk.repair or not spots:
        return value
    mended = msgspec.json.decode(msgspec.json.encode(value))
    changed = [_replace(mended, spot["loc"], spot["input"]) for spot in spots]
    return mended if any(changed) else value


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
        typed = adapter(node).validate_json(msgspec.json.encode(value), strict=False)
    except ValidationError as error:
        _note(error.errors(include_url=False, include_context=False), path, walk)
        return value
    walk.repairs += 1
    return to_jsonable_python(typed, by_alias=True)


def _note(problems: list[Any], path: str, walk: Walk) -> None:
    for problem in problems:
        spot = path
        for key in problem["loc"]:
            spot = item(spot, key) if isinstance(key, int) else member(spot, key)
        text = problem["msg"]
        walk.report(spot, text[:1].lower() + text[1:])


def dump(value: Any) -> Any:
    """The JSON of a pydantic object of whatever class."""
    return type(value).__pydantic_serializer__.to_python(value, mode="json", by_alias=True)


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
    return adapter(node).json_schema(mode=mode, ref_template="#/$defs/{model}")
