"""Validates large values of pydantic's types so that other threads can run in between.

pydantic keeps the interpreter to itself until a whole value is validated, and reads JSON text as a
whole before that. Here it is given decoded JSON, by a schema that calls a Python function for each
item of a list or dict: whenever Python code runs, another thread may go on. Results and errors are
those of pydantic for strict JSON.

To pydantic, what a `before` or `wrap` function returned is no JSON, and strict validation refuses a
string for a date there. The schemas made here accept JSON values below such a function as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextvars import ContextVar
from functools import cache, partial
from itertools import islice
from math import isfinite
from typing import Any

import msgspec
from pydantic import TypeAdapter
from pydantic_core import SchemaValidator
from pydantic_core.core_schema import (
    any_schema,
    chain_schema,
    json_schema,
    no_info_after_validator_function,
    no_info_before_validator_function,
    no_info_wrap_validator_function,
)

from .decoded_json import STEP

# The value that is validated now, and the items and copies that were made of it.
_value: ContextVar[Any] = ContextVar("_value")
_made: ContextVar[list[Any]] = ContextVar("_made")


def complete_adapter(annotation: Any) -> TypeAdapter[Any]:
    """Return pydantic's adapter of the type, with the schema of models that defer it."""
    made = TypeAdapter(annotation)
    # Versions of pydantic before 2.10 have neither of the two.
    if not getattr(made, "pydantic_complete", True):
        made.rebuild(raise_errors=False)
    return made


@cache
def large_validator(annotation: Any) -> SchemaValidator:
    """Return the validator for `build_large`.

    Raises TypeError or SchemaError for types of which there is none.
    """
    return _DecodedSchema(complete_adapter(annotation).core_schema).validator()


def json_validator(
    core_schema: Any, *, fail_fast: bool = False, any_float: bool = False
) -> SchemaValidator | None:
    """Return a validator of strict JSON, or None if the type has no function that needs it.

    Raises SchemaError if this version of pydantic lacks one of the options.
    """
    if not _has_function(core_schema):
        return None
    changes: list[Callable[[Any], Any]] = [_accepting_json]
    changes += [_fail_fast] if fail_fast else []
    changes += [_any_float] if any_float else []
    return _DecodedSchema(core_schema).json_validator(changes)


def build_large(validator: SchemaValidator, value: Any) -> Any:
    """Return the typed value of decoded JSON; raises ValidationError as pydantic does."""
    made: list[Any] = []
    tokens = _value.set(value), _made.set(made)
    try:
        # From JSON, because strict validation then accepts an object for a model. The schema
        # begins with a function that replaces the null by the value.
        return validator.validate_json(b"null")
    finally:
        _value.reset(tokens[0])
        _made.reset(tokens[1])
        # What is not in the result would otherwise be freed at once.
        while made:
            del made[-STEP:]


def _get_value(_: Any) -> Any:
    return _value.get()


def _keep(item: Any, get: Callable[[], list[Any]] = _made.get) -> Any:
    get().append(item)
    return item


def _pause(item: Any) -> Any:
    return item


def _copy(value: Any) -> Any:
    """Return a copy of decoded JSON, because an author's function may change it."""
    if type(value) is dict:
        return _keep({key: _copy(each) for key, each in value.items()})
    return _keep(list(map(_copy, value))) if type(value) is list else value


def _to_tuple(value: Any) -> Any:
    return tuple(value) if type(value) is list else value


def _to_json(value: Any) -> bytes:
    return msgspec.json.encode(value)


def _scalar_to_json(value: Any) -> bytes:
    # The error is the same for each array and for each object.
    return msgspec.json.encode(type(value)() if type(value) in (dict, list) else value)


class _DecodedSchema:
    """Changes a core schema for JSON into one for decoded JSON."""

    def __init__(self, schema: Any) -> None:
        self._definitions: list[Any] = []
        if schema["type"] == "definitions":
            self._definitions, schema = schema["definitions"], schema["schema"]
        self._schema = schema

    def validator(self) -> SchemaValidator:
        """Return the validator of the changed schema; it takes the value from `_value`."""
        schema = self._decoded(self._prepared(self._schema))
        schema = no_info_before_validator_function(_get_value, schema)
        definitions = []
        for each in self._definitions:
            part, ref = self._prepared(each), each["ref"]
            definitions.append(_mapped(part, _returned) | {"ref": ref})
            definitions.append(self._decoded(part) | {"ref": ref + _DECODED})
        # By default pydantic would use the validators of the classes.
        return SchemaValidator(_with_definitions(schema, definitions), _use_prebuilt=False)

    def json_validator(self, changes: list[Callable[[Any], Any]]) -> SchemaValidator:
        """Return the validator of strict JSON, with each change applied to each part."""
        schema, definitions = self._prepared(self._schema), []
        for each in self._definitions:
            definitions.append(self._prepared(each) | {"ref": each["ref"]})
        schema = _with_definitions(schema, definitions)
        for change in changes:
            schema = _mapped(schema, change)
        return SchemaValidator(schema, _use_prebuilt=False)

    def _prepared(self, part: Any, config: Any = None) -> Any:
        """Return a copy of the schema in which nothing depends on what is around a part."""
        if isinstance(part, list | tuple):
            return type(part)(self._prepared(each, config) for each in part)
        if not isinstance(part, dict):
            return part
        if not _is_schema(part):
            return {key: self._prepared(each, config) for key, each in part.items()}
        config = part.get("config", config)
        copy = {
            key: each if key in _NOT_SCHEMAS else self._prepared(each, config)
            for key, each in part.items()
            # The same schema cannot be defined twice.
            if key != "ref"
        }
        if part["type"] == "union":
            labels = [self._label(each, config) for each in part["choices"]]
            schemas = (each[0] if isinstance(each, tuple) else each for each in copy["choices"])
            copy["choices"] = list(zip(schemas, labels, strict=True))
        if part["type"] in _WITH_EXTRAS and (behavior := _extra_behavior(part, config)):
            copy["extra_behavior"] = behavior
        return copy

    def _label(self, choice: Any, config: Any) -> str:
        """Return the name of a union member in errors, which would tell how it is validated."""
        if isinstance(choice, tuple):
            label: str = choice[1]
            return label
        config = {key: each for key, each in (config or {}).items() if key != "title"}
        schema = _with_definitions(choice, self._definitions)
        return SchemaValidator(schema, config, _use_prebuilt=False).title

    def _decoded(self, schema: Any) -> Any:
        """Return the schema that accepts decoded JSON as *schema* accepts strict JSON."""
        kind = schema["type"]
        if kind in _NATIVE:
            return schema | _IS_STRICT
        if kind == "str":
            return chain_schema([_IN_JSON, schema | _IS_STRICT])
        if kind == "definition-ref":
            return schema | {"schema_ref": schema["schema_ref"] + _DECODED}
        if schema.get("custom_init"):
            return no_info_before_validator_function(_copy, self._with_init(schema))
        if kind in _KEEPING:
            return no_info_before_validator_function(_copy, _mapped(schema, _returned))
        if kind in _INSIDE and _can_be_decoded(schema):
            return self._container(schema)
        if kind in _SCALARS:
            inner = json_schema(schema | _IS_STRICT)
            return no_info_before_validator_function(_scalar_to_json, inner)
        return no_info_before_validator_function(_to_json, json_schema(_mapped(schema, _returned)))

    def _with_init(self, schema: Any) -> Any:
        """Return the schema of a model with its own `__init__`, which calls pydantic itself.

        For the instance pydantic uses the validator that it finds there, else that of the class.
        """
        cls = schema["cls"]
        if schema.get("root_model") or cls.__new__ is not object.__new__:
            return _mapped(schema, _returned)
        definitions = [
            _mapped(self._prepared(each), _with_bounds) | {"ref": each["ref"]}
            for each in self._definitions
        ]
        inner = _with_definitions(_mapped(schema, _with_bounds), definitions)
        validator = SchemaValidator(inner, _use_prebuilt=False)

        def make(value: Any, validate: Callable[[Any], Any]) -> Any:
            if type(value) is not dict:
                return validate(value)
            made = cls.__new__(cls)
            made.__dict__[_VALIDATOR] = validator
            made.__init__(**value)
            # An `__init__` that does not call pydantic leaves it there.
            made.__dict__.pop(_VALIDATOR, None)
            return made

        return no_info_wrap_validator_function(make, _mapped(schema, _returned))

    def _container(self, schema: Any) -> Any:
        kind = schema["type"]
        inside = {key: self._all_decoded(schema[key]) for key in _INSIDE[kind] if key in schema}
        if kind == "dict" and schema.get("keys_schema", {}).get("type") == "int":
            inside["keys_schema"] = schema["keys_schema"] | _IS_LAX
        changed = schema | inside | _IS_STRICT
        key, has_extras = _IMPLICIT.get(kind), schema.get("extra_behavior") == "allow"
        if key and key not in schema and (kind in _CONTAINERS or has_extras):
            changed[key] = no_info_before_validator_function(_copy, any_schema())
        if kind == "tagged-union":
            # Otherwise an error would be about attributes.
            changed["from_attributes"] = False
        changed = _with_pauses(changed)
        if kind in ("set", "frozenset"):
            return changed | _IS_LAX
        if kind == "tuple":
            return _from_list(changed)
        return _with_few_undeclared(changed)

    def _all_decoded(self, part: Any) -> Any:
        if isinstance(part, list | tuple):
            return type(part)(map(self._all_decoded, part))
        if not isinstance(part, dict):
            return part
        if _is_schema(part):
            return self._decoded(part)
        return {key: self._all_decoded(each) for key, each in part.items()}


def _with_definitions(schema: Any, definitions: list[Any]) -> Any:
    if not definitions:
        return schema
    return {"type": "definitions", "schema": schema, "definitions": definitions}


def _is_schema(part: dict[str, Any]) -> bool:
    """Return whether it is a core schema; one with fields by name may have a field `type`."""
    return isinstance(part.get("type"), str)


def _returned(part: Any) -> Any:
    """Return the part of a schema for values that a function of the author returned."""
    return _with_few_undeclared(_accepting_json(_with_pauses(part)))


def _with_bounds(part: Any) -> Any:
    """Return the part of a schema as it is, but one that lets other threads run."""
    return _with_few_undeclared(_with_pauses(part))


def _accepting_json(part: Any) -> Any:
    """Return the part of a strict schema that accepts decoded JSON as it accepts JSON."""
    kind = part["type"]
    if kind in _REFUSING_TEXT:
        validate = partial(_validate_returned, SchemaValidator(part))
        return no_info_wrap_validator_function(validate, json_schema(part | _IS_STRICT))
    if kind in _REFUSING_LISTS:
        return part | _IS_LAX
    if kind == "str":
        return chain_schema([_IN_JSON, part | _IS_STRICT])
    if kind == "tuple":
        return _from_list(part | _IS_STRICT)
    if kind == "dict" and "keys_schema" in part:
        part = part | {"keys_schema": _mapped(part["keys_schema"], _lax_number)}
    return part | _IS_STRICT


def _from_list(tuple_schema: Any) -> Any:
    return chain_schema([_IN_JSON, no_info_before_validator_function(_to_tuple, tuple_schema)])


def _validate_returned(
    validator: SchemaValidator, value: Any, validate_json: Callable[[Any], Any]
) -> Any:
    """Validate JSON as JSON, and an object of the author as pydantic does without us."""
    if value is None or type(value) in _JSON_TYPES:
        return validate_json(_scalar_to_json(value))
    return validator.validate_python(value)


def _lax_number(part: Any) -> Any:
    # In JSON each key is a string.
    return part | _IS_LAX if part["type"] in ("bool", "float", "int") else part


def _has_function(part: Any) -> bool:
    """Return whether a core schema has a function whose result is validated."""
    found: list[Any] = []

    def look(each: Any) -> Any:
        found.extend([each] if each["type"] in ("function-before", "function-wrap") else [])
        return each

    _mapped(part, look)
    return bool(found)


def _with_pauses(schema: Any) -> Any:
    """Return the schema with a function for each item, which stops at the first error."""
    kind = schema["type"]
    if kind == "tuple" and "variadic_item_index" in schema:
        items, index = list(schema["items_schema"]), schema["variadic_item_index"]
        items[index] = _with_pause(items[index])
        schema = schema | {"items_schema": items}
    key = _IMPLICIT.get(kind)
    if key in schema:
        schema = schema | {key: _with_pause(schema[key])}
    return schema | _FAIL_FAST if kind in _CONTAINERS else schema


def _with_pause(item: Any) -> Any:
    function = _pause if item["type"] in _NATIVE else _keep
    return no_info_after_validator_function(function, item)


def _extra_behavior(schema: Any, config: Any) -> Any:
    return schema.get("extra_behavior") or (config or {}).get("extra_fields_behavior")


def _with_few_undeclared(schema: Any) -> Any:
    """Return the schema of fields so that a refusal does not have an error for each other key."""
    if schema.get("extra_behavior") != "forbid" or schema["type"] not in _WITH_EXTRAS:
        return schema
    fields = schema["fields"]
    named = fields if isinstance(fields, dict) else {each["name"]: each for each in fields}
    aliases = (each.get("validation_alias") for each in named.values())
    declared = frozenset([*named, *_strings_in(list(aliases))])

    def without_most_undeclared(value: Any) -> Any:
        if type(value) is not dict or len(value) <= len(declared) + STEP:
            return value
        few = islice((key for key in value if key not in declared), STEP)
        known = (key for key in value if key in declared)
        return {key: value[key] for key in (*known, *few)}

    return no_info_before_validator_function(without_most_undeclared, schema)


def _strings_in(aliases: Any) -> Iterator[str]:
    if isinstance(aliases, str):
        yield aliases
    elif isinstance(aliases, list):
        for each in aliases:
            yield from _strings_in(each)


def _can_be_decoded(schema: Any) -> bool:
    """Return whether the schema accepts the same keys in decoded JSON as in JSON."""
    if schema["type"] == "dict":
        return schema.get("keys_schema", _IN_JSON)["type"] in ("any", "int", "str")
    behavior = _extra_behavior(schema, schema.get("config"))
    return not (schema["type"] == "dataclass" and behavior == "allow")


def with_fail_fast(schema: Any) -> Any:
    """Return a core schema whose containers stop at their first error."""
    return _mapped(schema, _fail_fast)


def _fail_fast(part: Any) -> Any:
    return part | _FAIL_FAST if part["type"] in _CONTAINERS else part


def with_any_float(schema: Any) -> Any:
    """Return a core schema whose floats accept NaN and infinity, whatever their limits."""
    return _mapped(schema, _any_float)


def _any_float(part: Any) -> Any:
    if part["type"] != "float":
        return part
    return no_info_wrap_validator_function(_accept_not_finite, part)


def _mapped(schema: Any, change: Callable[[Any], Any]) -> Any:
    """Return a copy of a core schema, with *change* applied to each part, the inner ones first."""
    if isinstance(schema, list | tuple):
        return type(schema)(_mapped(each, change) for each in schema)
    if not isinstance(schema, dict):
        return schema
    if not _is_schema(schema):
        return {key: _mapped(part, change) for key, part in schema.items()}
    return change(
        {
            key: part if key in _NOT_SCHEMAS else _mapped(part, change)
            for key, part in schema.items()
        }
    )


def _accept_not_finite(value: Any, validate: Callable[[Any], Any]) -> Any:
    return value if isinstance(value, float) and not isfinite(value) else validate(value)


# Keys of a core schema whose values are not schemas and may contain an author's objects.
_NOT_SCHEMAS = frozenset({"config", "default", "expected", "function", "metadata", "serialization"})
_CONTAINERS = frozenset({"list", "tuple", "set", "frozenset", "dict"})
_FAIL_FAST = {"fail_fast": True}
_WITH_EXTRAS = frozenset({"dataclass-args", "model-fields", "typed-dict"})
_IS_STRICT, _IS_LAX = {"strict": True}, {"strict": False}
_VALIDATOR = "__pydantic_validator__"
# The end of the name of a definition for decoded JSON.
_DECODED = ":decoded"
# In JSON a string or an array is no exact match, because it may be a date or a set. An exact one
# would change which member of a union is chosen.
_IN_JSON: Any = any_schema()
# These accept the same values in decoded JSON as in JSON.
_NATIVE = frozenset({"none", "bool", "int", "float", "literal"})
# These accept other strings or numbers in JSON, and refuse each array and object.
_SCALARS = frozenset({"bytes", "complex", "date", "datetime", "decimal", "enum", "multi-host-url"})
_SCALARS |= {"fraction", "time", "timedelta", "url", "uuid"}
# These refuse a string or an array that is no JSON, unless they are lax.
_REFUSING_TEXT = frozenset({"bytes", "date", "datetime", "decimal", "fraction", "time"})
_REFUSING_TEXT |= {"timedelta"}
_REFUSING_LISTS = frozenset({"deque", "frozenset", "set"})
_JSON_TYPES = frozenset({bool, int, float, str, list, dict})
# These may keep or change the value itself.
_KEEPING = frozenset({"any", "function-before", "function-plain", "function-wrap"})
# Where the other schemas have those of the values inside.
_INSIDE: dict[str, tuple[str, ...]] = {
    "arguments": ("arguments_schema",),
    "call": ("arguments_schema",),
    "custom-error": ("schema",),
    "dataclass": ("schema",),
    "dataclass-args": ("fields",),
    "dataclass-field": ("schema",),
    "default": ("schema",),
    "dict": ("keys_schema", "values_schema"),
    "frozenset": ("items_schema",),
    "function-after": ("schema",),
    "json-or-python": ("json_schema",),
    "lax-or-strict": ("strict_schema",),
    "list": ("items_schema",),
    "model": ("schema",),
    "model-field": ("schema",),
    "model-fields": ("fields", "extras_schema"),
    "nullable": ("schema",),
    "set": ("items_schema",),
    "tagged-union": ("choices",),
    "tuple": ("items_schema",),
    "typed-dict": ("fields", "extras_schema"),
    "typed-dict-field": ("schema",),
    "union": ("choices",),
}
# The schemas of a number of values that the caller decides; any value if they are missing.
_IMPLICIT = {
    "dict": "values_schema",
    "frozenset": "items_schema",
    "list": "items_schema",
    "model-fields": "extras_schema",
    "set": "items_schema",
    "typed-dict": "extras_schema",
}
