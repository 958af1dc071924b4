"""Validates the long lists of a pydantic model some items at a time.

pydantic keeps the interpreter to itself until a whole value is validated. Between two slices of a
list other threads can run. Only models whose lists can be validated apart from the rest qualify:
no validator function and no `model_post_init` sees the list.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import isfinite
from typing import Any

import msgspec
from pydantic import BaseModel, ValidationError
from pydantic_core import SchemaError, SchemaValidator
from pydantic_core.core_schema import no_info_wrap_validator_function

from .decoded_json import STEP, discard


def build_in_slices(annotation: Any, value: Any, validator: Any) -> Any:
    """Return the model for decoded JSON, or None if it has to be validated as a whole.

    *validator* validates the whole model. Raises ValidationError as pydantic does.
    """
    if type(value) is not dict or not _is_model(annotation):
        return None
    slicers = _slicers(annotation)
    long = {key for key in slicers if type(value.get(key)) is list and len(value[key]) > STEP}
    if not long:
        return None
    errors: list[Any] = []
    made: Any = None
    try:
        rest = value | {key: [] for key in long}
        made = validator.validate_json(msgspec.json.encode(rest), strict=True)
    except ValidationError as error:
        errors += map(_line, error.errors(include_url=False))
    built = {slicers[key][0]: _items(key, value[key], slicers[key][1], errors) for key in long}
    if errors:
        discard(list(built.values()))
        raise ValidationError.from_exception_data(annotation.__name__, errors, input_type="json")
    made.__dict__.update(built)
    return made


def _items(key: str, sent: list[Any], validator: SchemaValidator, errors: list[Any]) -> list[Any]:
    """Validate the items; stops at the first slice with errors."""
    items: list[Any] = []
    for start in range(0, len(sent), STEP):
        try:
            encoded = msgspec.json.encode(sent[start : start + STEP])
            items += validator.validate_json(encoded, strict=True)
        except ValidationError as error:
            for each in error.errors(include_url=False):
                index, *inside = each["loc"]
                errors.append(_line(each) | {"loc": (key, start + int(index), *inside)})
            break
    return items


def _line(error: Any) -> dict[str, Any]:
    return {key: error[key] for key in ("type", "loc", "input", "ctx") if key in error}


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


@cache
def _slicers(model: type[BaseModel]) -> dict[str, tuple[str, SchemaValidator]]:
    """By the name in JSON: the field, and the validator of a slice of its list."""
    schema: Any = model.__pydantic_core_schema__
    is_plain = schema["type"] == "model" and not (
        schema.get("post_init") or schema.get("custom_init") or schema.get("root_model")
    )
    if not is_plain or schema["schema"]["type"] != "model-fields":
        return {}
    found = {}
    for name, field in schema["schema"]["fields"].items():
        key = field.get("validation_alias", name)
        inner = field["schema"]
        if isinstance(key, str) and inner["type"] == "list" and not _has_limits(inner):
            try:
                # By default pydantic would use the validators of the classes.
                of_slice = SchemaValidator(
                    with_fail_fast(inner), schema.get("config"), _use_prebuilt=False
                )
            except (SchemaError, TypeError):
                continue
            found[key] = (name, of_slice)
    return found


def _has_limits(schema: Any) -> bool:
    return schema.get("min_length") is not None or schema.get("max_length") is not None


def with_fail_fast(schema: Any) -> Any:
    """Return a core schema whose containers stop at their first error."""
    if isinstance(schema, list | tuple):
        return type(schema)(map(with_fail_fast, schema))
    if not isinstance(schema, dict):
        return schema
    copied = {
        key: part if key in _NOT_SCHEMAS else with_fail_fast(part) for key, part in schema.items()
    }
    if copied.get("type") in _CONTAINERS:
        copied["fail_fast"] = True
    return copied


def with_any_float(schema: Any) -> Any:
    """Return a core schema whose floats accept NaN and infinity, whatever their limits."""
    if isinstance(schema, list | tuple):
        return type(schema)(map(with_any_float, schema))
    if not isinstance(schema, dict):
        return schema
    copied = {
        key: part if key in _NOT_SCHEMAS else with_any_float(part) for key, part in schema.items()
    }
    if copied.get("type") != "float":
        return copied
    return no_info_wrap_validator_function(_accept_not_finite, copied)


def _accept_not_finite(value: Any, validate: Callable[[Any], Any]) -> Any:
    return value if isinstance(value, float) and not isfinite(value) else validate(value)


# Keys of a core schema whose values are not schemas and may contain an author's objects.
_NOT_SCHEMAS = frozenset({"default", "expected", "metadata", "serialization"})
_CONTAINERS = frozenset({"list", "tuple", "set", "frozenset", "dict"})
