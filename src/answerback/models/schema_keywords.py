"""A schema's keywords during its conversion: which are kept, and which the description states."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

import msgspec

from ..core.json_value import is_integer
from .argument_plans import Plan, RefPlan
from .provider_rules import SchemaRules
from .schema_facts import (
    CONTAINERS,
    Schema,
    alternatives_merged,
    merged,
    recursive_pointers,
    resolve,
    type_of_value,
)
from .well_formed import well_formed

# They list the possible values; a schema without them takes others, so the model must be told.
_CONSTRAINTS = frozenset(
    {"minLength", "maxLength", "pattern", "format", "multipleOf", "minimum", "maximum"}
    | {"exclusiveMinimum", "exclusiveMaximum", "minItems", "maxItems", "uniqueItems"}
    | {"minProperties", "maxProperties", "contentEncoding", "contentMediaType"}
)
_NO_FORM = frozenset(
    {"not", "if", "then", "else", "dependentRequired", "dependentSchemas", "dependencies"}
    | {"contains", "minContains", "maxContains", "unevaluatedItems"}
)
"""Constraints that no provider takes and that a few words do not explain."""
_LOOK_AROUND = re.compile(r"\(\?[=!<]|\\[1-9bB]")
MAX_NODES = 10_000
MAX_REFERRED = 300_000
"""The number of schemas in all definitions, each counted once for each way to refer to it."""
_TOO_LARGE = "the schema is too large once its definitions are put in"
ROOT = "arguments"
"""The root's path in reports."""


class SchemaRefused(Exception):
    """A schema has no lossless form in a provider's strict mode; the message says why."""


class Conversion:
    """One conversion's state: the rules, the definitions so far, and what had to change."""

    def __init__(self, schema: Schema, rules: SchemaRules) -> None:
        self.rules = rules
        self.changes: dict[str, None] = {}
        self.defs: dict[str, Any] = {}
        self.plans: dict[str, Plan] = {}
        self.def_names: dict[str, str] = {}
        self.nodes = 0
        self._recursive: frozenset[str] | None = None
        self.document = well_formed(schema, self.changed, ROOT)
        self.root = self._root_object(self.document)

    def changed(self, path: str, what: str) -> None:
        self.changes[f"{path}: {what}"] = None

    def cannot(self, path: str, why: str) -> None:
        """Refuse the schema in a strict mode; otherwise report what is no longer said."""
        if self.rules.strict:
            raise SchemaRefused(f"{path}: {why}")
        self.changed(path, why + ", which is left out")

    def count(self, path: str) -> None:
        """Count a schema; definitions within definitions can make a small document very large."""
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise SchemaRefused(f"{path}: {_TOO_LARGE}")

    def is_recursive(self, pointer: str) -> bool:
        if self._recursive is None:
            self._recursive = recursive_pointers(self.document, MAX_REFERRED)
            if self._recursive is None:
                raise SchemaRefused(f"{ROOT}: {_TOO_LARGE}")
        return pointer in self._recursive

    def resolve(self, pointer: str, path: str) -> Schema:
        try:
            return resolve(self.document, pointer)
        except (LookupError, TypeError, ValueError):
            self.cannot(path, f"refers to {pointer!r}, which is not in the schema")
            return {}

    def _root_object(self, schema: Schema) -> dict[str, Any]:
        """Return the root as one object, without `$ref` and without alternatives."""
        if isinstance(pointer := schema.get("$ref"), str):
            rest = {key: each for key, each in schema.items() if key != "$ref"}
            schema = {**self.resolve(pointer, ROOT), **rest}
        result = self.without_all_of(schema, ROOT)
        for keyword in ("anyOf", "oneOf"):
            if branches := result.get(keyword):
                base = {key: each for key, each in result.items() if key != keyword}
                found = [self._branch(each) for each in branches]
                result = alternatives_merged(base, found)
                self.changed(ROOT, f"{keyword} became one object; the tool checks the rest")
        result = {**result, "type": "object"}
        if not isinstance(result.get("properties"), Mapping):
            result["properties"] = {}
        return result

    def _branch(self, schema: Schema) -> Schema:
        if isinstance(pointer := schema.get("$ref"), str):
            schema = self.resolve(pointer, ROOT)
        return self.without_all_of(schema, ROOT)

    def without_all_of(self, schema: Schema, path: str) -> dict[str, Any]:
        if not schema.get("allOf"):
            return dict(schema)
        rest = {key: each for key, each in schema.items() if key != "allOf"}
        for _ in schema["allOf"]:
            self.count(path)
        parts = [
            self.resolve(each["$ref"], path) if set(each) == {"$ref"} else each
            for each in schema["allOf"]
        ]
        if any("allOf" in each for each in parts):
            parts = [self.without_all_of(each, path) for each in parts]
        result = merged([rest, *parts])
        if result is None:
            self.cannot(path, "uses allOf, whose parts cannot be put together")
            return rest
        return result

    def is_plain(self, plan: Plan) -> bool:
        if isinstance(plan, RefPlan):
            # A definition that is being converted has no schema yet.
            return bool(self.defs[plan.name]) and self.plans[plan.name] is None
        return plan is None


def annotated(
    state: Conversion, schema: Schema, path: str, types: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the keywords that are kept; the description states the others."""
    out: dict[str, Any] = {}
    told = []
    for keyword, value in _tightened(schema, types, state.rules).items():
        if _is_kept(state, keyword, value):
            out[keyword] = deepcopy(value)
        elif keyword in _NO_FORM:
            state.cannot(path, f"uses {keyword}")
        elif keyword in _CONSTRAINTS or (keyword == "default" and value is not None):
            told.append(f"{keyword}: {_json(value)}")
    _literals(state, schema, out, told, path)
    _tell(state, out, told, path)
    return out


def _is_kept(state: Conversion, keyword: str, value: Any) -> bool:
    rules = state.rules
    if keyword == "format":
        return rules.formats is None or value in rules.formats
    if keyword == "pattern" and _LOOK_AROUND.search(str(value)):
        return False
    if keyword == "minItems" and rules.max_min_items is not None:
        return bool(value <= rules.max_min_items)
    return keyword in (rules.keywords or ())


def _literals(
    state: Conversion, schema: Schema, out: dict[str, Any], told: list[str], path: str
) -> None:
    """Convert `const` and `enum`."""
    if "const" not in schema and "enum" not in schema:
        return
    values = [schema["const"]] if "const" in schema else list(schema["enum"])
    types = {type_of_value(each) for each in values}
    if types & CONTAINERS:
        state.cannot(path, "has objects or arrays as the values of enum or const")
    elif state.rules.const or types <= {"string", "integer", "number"}:
        keyword = "const" if "const" in schema and state.rules.const else "enum"
        out[keyword] = values[0] if keyword == "const" else values
    elif types != {"null"}:
        told.append(f"one of: {_json(values)}")


def _tell(state: Conversion, out: dict[str, Any], told: Sequence[str], path: str) -> None:
    if not told:
        return
    text = f"({', '.join(told)})"
    out["description"] = f"{out['description']} {text}" if out.get("description") else text
    state.changed(path, f"the description says {text}")


def mixes_null(state: Conversion, schema: Schema) -> bool:
    return not state.rules.const and None in schema.get("enum", ())


def _tightened(schema: Schema, types: Sequence[str], rules: SchemaRules) -> Schema:
    """Write integers' exclusive bounds as inclusive ones where only these are taken."""
    if types != ("integer",) or "exclusiveMinimum" in (rules.keywords or ()):
        return schema
    result = dict(schema)
    for exclusive, inclusive, step in (
        ("exclusiveMinimum", "minimum", 1),
        ("exclusiveMaximum", "maximum", -1),
    ):
        bound = result.get(exclusive)
        if is_integer(bound) and inclusive not in result:
            del result[exclusive]
            result[inclusive] = bound + step
    return result


def or_null(schema: dict[str, Any]) -> dict[str, Any]:
    null = {"type": "null"}
    if "anyOf" in schema:
        return {**schema, "anyOf": [*schema["anyOf"], null]}
    is_scalar = isinstance(schema.get("type"), str) and schema["type"] not in CONTAINERS
    if is_scalar and "enum" not in schema and "const" not in schema:
        return {**schema, "type": [schema["type"], "null"]}
    notes: dict[str, Any] = {key: schema[key] for key in ("title", "description") if key in schema}
    rest = {key: each for key, each in schema.items() if key not in notes}
    return {**notes, "anyOf": [rest, null]}


def _json(value: Any) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except UnicodeEncodeError:
        # A lone surrogate, which some JSON decoders let through.
        return ascii(value)
