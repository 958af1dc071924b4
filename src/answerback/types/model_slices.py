"""Validates large values of pydantic's types some items at a time.

pydantic keeps the interpreter to itself until a whole value is validated. Between two slices of a
list or dict other threads can run. A value is cut where no function of the author sees it: a model
with a validator, a `model_post_init` or an `__init__` of its own is validated as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice
from math import isfinite
from typing import Any, get_args

import msgspec
from pydantic import TypeAdapter, ValidationError
from pydantic_core import PydanticCustomError, SchemaValidator
from pydantic_core.core_schema import ErrorType, any_schema, no_info_wrap_validator_function

from .decoded_json import STEP, discard, is_heavy

Location = tuple[int | str, ...]


def build_in_slices(annotation: Any, value: Any) -> Any:
    """Return the typed value of decoded JSON; raises ValidationError as pydantic does.

    Raises TypeError or SchemaError if pydantic cannot validate the parts of this type.
    """
    run = _SliceRun(_parts(annotation))
    made = run.build(run.parts.root, value, ())
    if run.errors:
        del made
        discard(run.containers)
        title = getattr(annotation, "__name__", "value")
        raise ValidationError.from_exception_data(title, run.errors, input_type="json")
    return made


@cache
def _parts(annotation: Any) -> _SchemaParts:
    return _SchemaParts(TypeAdapter(annotation).core_schema)


@dataclass(frozen=True)
class _Part:
    """A part of a core schema, with the configuration of the model around it."""

    schema: Any
    config: Any = None


@dataclass(frozen=True)
class _ModelPlan:
    """How a model is validated: *fields* one by one, the others by the validator *rest*."""

    rest: SchemaValidator
    fields: dict[str, _Part]
    # By the name of each field, those in JSON; the first that is sent counts.
    keys: dict[str, tuple[str, ...]]
    # The keys of other fields; None if a value may be looked up by a path or is kept undeclared.
    others: frozenset[str] | None


class _SchemaParts:
    """The parts of one core schema, and their validators, which are built at first use."""

    def __init__(self, schema: Any) -> None:
        self._definitions: dict[str, Any] = {}
        if schema["type"] == "definitions":
            self._definitions = {each["ref"]: each for each in schema["definitions"]}
            schema = schema["schema"]
        # Other definitions depend on the configuration of the outermost model.
        can_be_cut = all(map(_has_own_config, self._definitions.values()))
        self.root = _Part(schema)
        self.can_be_cut = can_be_cut
        # The schemas live as long as this object, so no other gets the id of one.
        self._validators: dict[tuple[str, int, int], SchemaValidator] = {}
        self._plans: dict[int, _ModelPlan | None] = {}

    def resolve(self, part: _Part) -> _Part:
        """Return the schema that applies to a value that is not null."""
        schema = part.schema
        while schema["type"] in ("definition-ref", "nullable"):
            if schema["type"] == "nullable":
                schema = schema["schema"]
            elif schema["schema_ref"] in self._definitions:
                schema = self._definitions[schema["schema_ref"]]
            else:
                break
        return _Part(schema, part.config)

    def whole(self, part: _Part) -> SchemaValidator:
        """Return the validator of the part."""
        return self._validator("whole", part, lambda schema: schema)

    def of_slice(self, part: _Part) -> SchemaValidator:
        """Return the validator of some items or entries of a container."""
        return self._validator("slice", part, _slice_schema)

    def of_keys(self, part: _Part) -> SchemaValidator:
        """Return the validator of the keys of a dict, whatever its values."""
        return self._validator(
            "keys", part, lambda schema: _slice_schema(schema) | {"values_schema": any_schema()}
        )

    def plan(self, model: Any) -> _ModelPlan | None:
        """Return how to validate the fields of a model apart, or None if it is to be whole."""
        if id(model) not in self._plans:
            self._plans[id(model)] = self._make_plan(model) if _is_plain_model(model) else None
        return self._plans[id(model)]

    def _make_plan(self, model: Any) -> _ModelPlan | None:
        inner, config = model["schema"], model.get("config") or {}
        apart, keys, rest = {}, {}, {}
        for name, field in inner["fields"].items():
            keys[name] = _keys(name, field, config)
            schema, has_default = field["schema"], field["schema"]["type"] == "default"
            part = _Part(schema["schema"] if has_default else schema, model.get("config"))
            if keys[name] and self._can_be_apart(part) and not _checks_default(schema, config):
                apart[name] = part
                schema = schema | {"schema": any_schema()} if has_default else any_schema()
            rest[name] = field | {"schema": schema}
        if not apart:
            return None
        allows_extra = "allow" in (inner.get("extra_behavior"), config.get("extra_fields_behavior"))
        others = None
        if all(keys.values()) and not allows_extra:
            others = frozenset(key for name in keys.keys() - apart for key in keys[name])
        return _ModelPlan(
            self._compile(model | {"schema": inner | {"fields": rest}}, None), apart, keys, others
        )

    def _can_be_apart(self, part: _Part) -> bool:
        kind = self.resolve(part).schema["type"]
        return kind in _CONTAINERS or kind in _QUICKLY_REFUSED or kind == "model"

    def _validator(self, use: str, part: _Part, change: Callable[[Any], Any]) -> SchemaValidator:
        key = (use, id(part.schema), id(part.config))
        if key not in self._validators:
            self._validators[key] = self._compile(change(part.schema), part.config)
        return self._validators[key]

    def _compile(self, schema: Any, config: Any) -> SchemaValidator:
        if self._definitions:
            # The same schema cannot be defined twice.
            if schema.get("ref") in self._definitions:
                schema = {key: each for key, each in schema.items() if key != "ref"}
            definitions = list(self._definitions.values())
            schema = {"type": "definitions", "schema": schema, "definitions": definitions}
        # By default pydantic would use the validators of the classes.
        return SchemaValidator(with_fail_fast(schema), config, _use_prebuilt=False)


class _SliceRun:
    """Validates one value, and collects the errors and the containers that it fills."""

    def __init__(self, parts: _SchemaParts) -> None:
        self.parts = parts
        self.errors: list[Any] = []
        self.containers: list[Any] = []

    def build(self, part: _Part, value: Any, loc: Location) -> Any:
        """Return the typed value; None or a part of it if there are errors."""
        if not self.parts.can_be_cut or not is_heavy(value):
            return self._validate(self.parts.whole(part), value, loc)
        inner = self.parts.resolve(part)
        kind = inner.schema["type"]
        wanted = _JSON_TYPES.get(kind)
        if kind in _QUICKLY_REFUSED or wanted not in (None, type(value)):
            # The error is the same for each value of this JSON type.
            return self._validate(self.parts.whole(part), type(value)(), loc)
        if kind == "dict":
            return self._mapping(inner, value, loc)
        if wanted is list and _item_schema(inner.schema) is not None:
            return self._array(inner, value, loc)
        plan = self.parts.plan(inner.schema) if kind == "model" else None
        if plan is not None:
            return self._model(plan, value, loc)
        return self._validate(self.parts.whole(part), value, loc)

    def _validate(
        self, validator: SchemaValidator, value: Any, loc: Location, start: int = 0
    ) -> Any:
        """Validate a value; with *start*, the items of a list from this one on."""
        try:
            # From JSON, because strict validation then accepts a string for a date.
            return validator.validate_json(msgspec.json.encode(value), strict=True)
        except ValidationError as error:
            for each in error.errors(include_url=False):
                inside = each["loc"]
                if start and inside and isinstance(inside[0], int):
                    inside = (inside[0] + start, *inside[1:])
                self.errors.append(_line(each, (*loc, *inside)))
            return None

    def _array(self, part: _Part, sent: list[Any], loc: Location) -> Any:
        schema, maximum = part.schema, part.schema.get("max_length")
        is_set, known = schema["type"] in _SETS, len(self.errors)
        made: Any = set() if is_set else []
        if not is_set:
            self.containers.append(made)
        # pydantic looks at no item behind the limit. A set is limited by its different items.
        end = len(sent) if is_set or maximum is None else min(len(sent), maximum)
        for start in range(0, end, STEP):
            for piece in self._items(part, sent[start : min(start + STEP, end)], loc, start):
                made.update(piece) if is_set else made.extend(piece)
            if len(self.errors) > known or (is_set and maximum is not None and len(made) > maximum):
                break
        if len(self.errors) == known:
            self._check_length(schema, len(made if is_set else sent), sent, loc)
        # A list can be freed in steps.
        is_finished = schema["type"] in ("list", "set") or self.errors
        return made if is_finished else _MAKE[schema["type"]](made)

    def _items(self, part: _Part, step: list[Any], loc: Location, start: int) -> Iterator[Any]:
        """Yield the validated items in one or more containers; stops at the first error."""
        known = len(self.errors)
        if not is_heavy(step):
            made = self._validate(self.parts.of_slice(part), step, loc, start)
            if made is not None:
                yield made
        elif len(step) == 1:
            item = _Part(_item_schema(part.schema), part.config)
            yield [self.build(item, step[0], (*loc, start))]
        else:
            middle = len(step) // 2
            yield from self._items(part, step[:middle], loc, start)
            if len(self.errors) == known:
                yield from self._items(part, step[middle:], loc, start + middle)

    def _mapping(self, part: _Part, sent: dict[str, Any], loc: Location) -> Any:
        made, known = dict[Any, Any](), len(self.errors)
        self.containers.append(made)
        maximum = part.schema.get("max_length")
        # The first entry behind the limit is validated, too.
        entries = islice(sent.items(), None if maximum is None else maximum + 1)
        while len(self.errors) == known and (step := list(islice(entries, STEP))):
            for piece in self._entries(part, step, loc):
                made.update(piece)
        if len(self.errors) == known:
            self._check_length(part.schema, len(made), sent, loc)
        return made

    def _entries(
        self, part: _Part, step: list[tuple[str, Any]], loc: Location
    ) -> Iterator[dict[Any, Any]]:
        known = len(self.errors)
        if not is_heavy([each for _, each in step]):
            made = self._validate(self.parts.of_slice(part), dict(step), loc)
            if made is not None:
                yield made
        elif len(step) == 1:
            key, value = step[0]
            keys = self._validate(self.parts.of_keys(part), {key: None}, loc) or {None: None}
            inner = _Part(part.schema.get("values_schema") or _ANY, part.config)
            yield dict.fromkeys(keys, self.build(inner, value, (*loc, key)))
        else:
            middle = len(step) // 2
            yield from self._entries(part, step[:middle], loc)
            if len(self.errors) == known:
                yield from self._entries(part, step[middle:], loc)

    def _check_length(self, schema: Any, length: int, sent: Any, loc: Location) -> None:
        minimum, maximum = schema.get("min_length") or 0, schema.get("max_length")
        name = _NAMES[schema["type"]]
        context: dict[str, Any] = {"field_type": name, "actual_length": length}
        if maximum is not None and length > maximum:
            if schema["type"] not in ("list", "tuple"):
                context["actual_length"] = None
            error = {"type": "too_long", "ctx": context | {"max_length": maximum}}
        elif length < minimum:
            error = {"type": "too_short", "ctx": context | {"min_length": minimum}}
        else:
            return
        self.errors.append(error | {"loc": loc, "input": sent})

    def _model(self, plan: _ModelPlan, sent: dict[str, Any], loc: Location) -> Any:
        known, built, rest = len(self.errors), dict[str, Any](), dict(sent)
        for name in plan.fields:
            key = next((key for key in plan.keys[name] if key in sent), None)
            if key is not None:
                built[name], rest[key] = (key, sent[key]), None
        if plan.others is not None:
            # Nobody looks at the values of undeclared keys.
            rest = {key: each if key in plan.others else None for key, each in rest.items()}
        made = self._validate(plan.rest, rest, loc)
        for name, (key, value) in built.items():
            built[name] = self.build(plan.fields[name], value, (*loc, key))
        self.errors[known:] = _in_order_of_fields(self.errors[known:], plan, len(loc))
        if made is not None:
            made.__dict__.update(built)
        return made


def _in_order_of_fields(errors: list[Any], plan: _ModelPlan, depth: int) -> list[Any]:
    """Return the errors of a model's fields as pydantic sorts them, undeclared keys last."""
    order = {key: n for n, keys in enumerate(plan.keys.values()) for key in keys}

    def position(error: Any) -> int:
        key, *inside = error["loc"][depth:]
        is_undeclared = error["type"] == "extra_forbidden" and not inside
        return len(order) if is_undeclared else order.get(key, len(order))

    return sorted(errors, key=position)


def _line(error: Any, loc: Location) -> dict[str, Any]:
    line = {key: error[key] for key in ("type", "input", "ctx") if key in error}
    if error["type"] not in _KNOWN_ERRORS:
        # The author's own kind of error; its text is complete.
        line["type"] = PydanticCustomError(error["type"], error["msg"], line.pop("ctx", None))
    return line | {"loc": loc}


def _slice_schema(schema: Any) -> Any:
    """Return the schema of some items or entries of a container."""
    kept = {key: each for key, each in schema.items() if key not in _NOT_OF_SLICES}
    if schema["type"] == "tuple":
        return {"type": "list", "items_schema": _item_schema(schema)}
    return kept


def _item_schema(schema: Any) -> Any:
    """Return the schema of each item of an array; None if they have different schemas."""
    items = schema.get("items_schema") or _ANY
    if schema["type"] != "tuple":
        return items
    return items[0] if len(items) == 1 and schema.get("variadic_item_index") == 0 else None


def _keys(name: str, field: Any, config: Any) -> tuple[str, ...]:
    """Return the keys of a field in JSON, the first choice first; none if there are paths."""
    alias = field.get("validation_alias", name)
    if not isinstance(alias, str):
        return ()
    by_name = config.get("validate_by_name") or config.get("populate_by_name")
    keys = [alias] if config.get("validate_by_alias", True) else []
    return tuple(dict.fromkeys([*keys, name] if by_name else [alias]))


def _checks_default(schema: Any, config: Any) -> bool:
    if schema["type"] != "default":
        return False
    validates = schema.get("validate_default", config.get("validate_default"))
    return bool(validates) or schema.get("on_error", "raise") != "raise"


def _is_plain_model(schema: Any) -> bool:
    """Return whether no function sees the values of several fields."""
    special = ("post_init", "custom_init", "root_model")
    fields = schema["schema"]
    if any(map(schema.get, special)) or fields["type"] != "model-fields":
        return False
    return not _uses_other_fields(fields)


def _uses_other_fields(schema: Any) -> bool:
    """Return whether a function in the schema is given the fields before its own."""
    if isinstance(schema, list | tuple):
        return any(map(_uses_other_fields, schema))
    if not isinstance(schema, dict):
        return False
    if schema.get("type") == "with-info" or schema.get("default_factory_takes_data"):
        return True
    return any(_uses_other_fields(part) for key, part in schema.items() if key not in _NOT_SCHEMAS)


def _has_own_config(schema: Any) -> bool:
    while schema["type"].startswith("function-") and "schema" in schema:
        schema = schema["schema"]
    return schema["type"] in ("model", "dataclass", "typed-dict", "enum")


def with_fail_fast(schema: Any) -> Any:
    """Return a core schema whose containers stop at their first error."""
    return _mapped(
        schema, lambda part: part | _FAIL_FAST if part.get("type") in _CONTAINERS else part
    )


def with_any_float(schema: Any) -> Any:
    """Return a core schema whose floats accept NaN and infinity, whatever their limits."""

    def accept(part: Any) -> Any:
        if part.get("type") != "float":
            return part
        return no_info_wrap_validator_function(_accept_not_finite, part)

    return _mapped(schema, accept)


def _mapped(schema: Any, change: Callable[[Any], Any]) -> Any:
    """Return a copy of a core schema, with *change* applied to each part, the inner ones first."""
    if isinstance(schema, list | tuple):
        return type(schema)(_mapped(each, change) for each in schema)
    if not isinstance(schema, dict):
        return schema
    return change(
        {
            key: part if key in _NOT_SCHEMAS else _mapped(part, change)
            for key, part in schema.items()
        }
    )


def _accept_not_finite(value: Any, validate: Callable[[Any], Any]) -> Any:
    return value if isinstance(value, float) and not isfinite(value) else validate(value)


# Keys of a core schema whose values are not schemas and may contain an author's objects.
_NOT_SCHEMAS = frozenset({"default", "expected", "metadata", "serialization"})
_CONTAINERS = frozenset({"list", "tuple", "set", "frozenset", "dict"})
_NOT_OF_SLICES = frozenset({"min_length", "max_length", "ref", "metadata", "serialization"})
_SETS = frozenset({"set", "frozenset"})
_MAKE: dict[str, Callable[[Any], Any]] = {"tuple": tuple, "frozenset": frozenset}
_NAMES = {
    "list": "List",
    "tuple": "Tuple",
    "set": "Set",
    "frozenset": "Frozenset",
    "dict": "Dictionary",
}
# The JSON that these schemas accept.
_JSON_TYPES: dict[str, type] = {
    "list": list,
    "tuple": list,
    "set": list,
    "frozenset": list,
    "dict": dict,
    "model": dict,
}
# Schemas that refuse each array and object, whatever is in it.
_QUICKLY_REFUSED = frozenset({"int", "float", "bool", "str", "bytes", "decimal"})
_QUICKLY_REFUSED |= {"date", "time", "datetime", "timedelta", "uuid", "url"}
_ANY: Any = any_schema()
_KNOWN_ERRORS = frozenset(get_args(ErrorType))
_FAIL_FAST = {"fail_fast": True}
