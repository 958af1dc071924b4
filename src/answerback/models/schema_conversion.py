"""Converts a tool's argument schema into the part of JSON Schema that a provider accepts.

Each conversion produces a new schema, a list of what had to change, and a decoder that converts
the model's arguments back.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

import msgspec

from ..core.json_value import is_integer
from ..types.schema_references import target
from .argument_plans import (
    KEY,
    VALUE,
    ArrayPlan,
    Decoder,
    MapPlan,
    MemberPlan,
    ObjectPlan,
    Plan,
    RefPlan,
    TuplePlan,
    UnionPlan,
    item_name,
)
from .provider_rules import SchemaRules, fitting_names
from .schema_facts import (
    CONTAINERS,
    Schema,
    allows_null,
    alternatives_merged,
    are_disjoint,
    merged,
    recursive_pointers,
    type_of_value,
    types_of,
    well_formed,
)

# Without one of these, a schema accepts more values, so the description states what was left out.
_CONSTRAINTS = frozenset(
    {"minLength", "maxLength", "pattern", "format", "multipleOf", "minimum", "maximum"}
    | {"exclusiveMinimum", "exclusiveMaximum", "minItems", "maxItems", "uniqueItems"}
    | {"minProperties", "maxProperties", "contentEncoding", "contentMediaType"}
)
_NO_FORM = frozenset(
    {"not", "if", "then", "else", "dependentRequired", "dependentSchemas", "dependencies"}
    | {"contains", "minContains", "maxContains", "unevaluatedItems"}
)
"""Constraints that no provider accepts and that a few words cannot explain."""
_DRAFT = frozenset({"$schema", "$id", "$comment", "$anchor"})
_LOOK_AROUND = re.compile(r"\(\?[=!<]|\\[1-9bB]")
MAX_NODES = 10_000
MAX_REFERRED = 300_000
"""The maximum number of schemas in all definitions, each counted once per distinct reference."""
_TOO_LARGE = "the schema is too large once its definitions are expanded"
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
        """Refuse the schema in strict mode; otherwise report what is left out."""
        if self.rules.strict:
            raise SchemaRefused(f"{path}: {why}")
        self.changed(path, why + ", which is left out")

    def count(self, path: str) -> None:
        """Count a schema; nested definitions can make a small document very large."""
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
        found = target(pointer, self.document)
        if found is None:
            self.cannot(path, f"refers to {pointer[:200]!r}, which is not in the schema")
        return found if isinstance(found, Mapping) else {}

    def _root_object(self, schema: Schema) -> dict[str, Any]:
        """Return the root as one object, without `$ref` or alternatives."""
        if isinstance(pointer := schema.get("$ref"), str):
            rest = {key: each for key, each in schema.items() if key != "$ref"}
            schema = {**self.resolve(pointer, ROOT), **rest}
        result = self.without_all_of(schema, ROOT)
        for keyword in ("anyOf", "oneOf"):
            if branches := result.get(keyword):
                base = {key: each for key, each in result.items() if key != keyword}
                found = []
                for each in branches:
                    pointer = each.get("$ref")
                    branch = self.resolve(pointer, ROOT) if isinstance(pointer, str) else each
                    found.append(self.without_all_of(branch, ROOT))
                result = alternatives_merged(base, found)
                self.changed(ROOT, f"{keyword} became one object; the tool checks the rest")
        result = {**result, "type": "object"}
        if not isinstance(result.get("properties"), Mapping):
            result["properties"] = {}
        return result

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
            self.cannot(path, "uses allOf, whose parts cannot be merged")
            return rest
        return result

    def needed(self, plan: Plan) -> Plan:
        """Return the plan; None if it leads to a definition that stays unchanged."""
        if isinstance(plan, RefPlan):
            # A definition that is being converted has no schema yet.
            is_plain = self.defs[plan.name] and self.plans[plan.name] is None
            return None if is_plain else plan
        return plan


class Converted(msgspec.Struct, frozen=True):
    """A schema to send, the decoder for arguments that follow it, and what had to change."""

    schema: dict[str, Any]
    decoder: Decoder
    changes: tuple[str, ...] = ()


def convert_schema(schema: Schema, rules: SchemaRules) -> Converted:
    """Convert an argument schema; in strict mode, this may raise SchemaRefused."""
    try:
        state = Conversion(schema, rules)
        if rules.keywords is None:
            return _with_all_keywords(state)
        converted, plan = _object(state, state.root, ROOT)
        if state.defs:
            converted["$defs"] = state.defs
        return Converted(converted, Decoder(plan, state.plans, converted), tuple(state.changes))
    except SchemaRefused as exc:
        why = str(exc)
    except RecursionError:
        why = f"{ROOT}: the schema is nested too deeply"
    except (TypeError, AttributeError, ValueError, LookupError) as exc:
        # A reference may point to a part of the document that is not a schema.
        why = f"{ROOT}: the schema is malformed ({type(exc).__name__})"
    if rules.strict:
        raise SchemaRefused(why)
    return Converted({"type": "object", "properties": {}}, Decoder(), (why,))


def _with_all_keywords(state: Conversion) -> Converted:
    """Keep the schema, but make its root a plain object, as every provider requires."""
    schema = {key: deepcopy(each) for key, each in state.root.items() if key != "$schema"}
    names = fitting_names(schema["properties"], state.rules.properties)
    members = {}
    for name, new in names.items():
        if new != name:
            state.changed(ROOT, f"{name!r} was renamed to {new!r}")
            members[new] = MemberPlan(name)
    schema["properties"] = {names[name]: each for name, each in schema["properties"].items()}
    if "required" in schema:
        schema["required"] = [names.get(name, name) for name in schema["required"]]
    plan = ObjectPlan(members) if members else None
    return Converted(schema, Decoder(plan), tuple(state.changes))


def _node(state: Conversion, schema: Any, path: str) -> tuple[dict[str, Any], Plan]:
    """Return a value's converted schema, and its plan."""
    state.count(path)
    if schema is True or not isinstance(schema, Mapping):
        schema = {}
    if isinstance(schema.get("$ref"), str):
        return _reference(state, schema, path)
    schema = state.without_all_of(schema, path)
    types = types_of(schema)
    if schema.get("nullable") is True and types and "null" not in types:
        schema["type"] = types = (*types, "null")
    if branches := schema.get("anyOf") or schema.get("oneOf"):
        return _union(state, schema, branches, path)
    if len(types) > 1:
        mixes_null = not state.rules.const and None in schema.get("enum", ())
        if CONTAINERS & set(types) or mixes_null:
            return _union(state, schema, _by_type(schema, types), path)
    if types == ("object",):
        return _object(state, schema, path)
    if types == ("array",):
        return _array(state, schema, path)
    if not types and state.rules.strict:
        state.cannot(path, "accepts a value of any type")
    out = annotated(state, schema, path, types)
    return (out | {"type": types[0] if len(types) == 1 else [*types]} if types else out), None


def _reference(state: Conversion, schema: Schema, path: str) -> tuple[dict[str, Any], Plan]:
    pointer = schema["$ref"]
    referred = state.resolve(pointer, path)
    rest = {key: each for key, each in schema.items() if key != "$ref" and key not in _DRAFT}
    recursive = bool(referred) and state.is_recursive(pointer)
    if recursive and not state.rules.recursion:
        state.cannot(path, f"refers to {pointer!r}, which contains itself")
    if not recursive and (rest or not referred):
        return _node(state, {**referred, **rest}, path)
    if pointer not in state.def_names:
        wanted = re.sub(r"[^a-zA-Z0-9_.-]", "_", pointer.rpartition("/")[2]) or "root"
        taken = set(state.def_names.values())
        name = next(
            each
            for each in (wanted, *(f"{wanted}_{at}" for at in range(2, len(taken) + 3)))
            if each not in taken
        )
        # The name is reserved before the conversion, which may reach this reference again.
        state.def_names[pointer] = name
        state.defs[name], state.plans[name] = {}, None
        converted, plan = _node(state, referred, name)
        state.defs[name].update(converted)
        state.plans[name] = plan
    name = state.def_names[pointer]
    ref: dict[str, Any] = {"$ref": f"#/$defs/{name}"}
    if rest:
        # No provider accepts keywords next to a reference.
        ref = {**annotated(state, rest, path), "anyOf": [ref]}
    return ref, RefPlan(name)


def _union(
    state: Conversion, schema: Schema, branches: Sequence[Any], path: str
) -> tuple[dict[str, Any], Plan]:
    notes = {key: schema[key] for key in ("title", "description", "default") if key in schema}
    base = {
        key: each
        for key, each in schema.items()
        if key not in notes and key not in ("anyOf", "oneOf", "discriminator", "nullable")
    }
    found: list[tuple[dict[str, Any], Plan]] = []
    for each in branches:
        branch = each
        if base and isinstance(each, Mapping):
            # Keywords next to the alternatives are copied into each of them.
            if isinstance(pointer := each.get("$ref"), str):
                branch = state.resolve(pointer, path)
            both = merged([branch, base])
            if both is None:
                why = "has keywords next to anyOf that cannot be merged into each alternative"
                state.cannot(path, why)
            else:
                branch = both
        converted = _node(state, branch, path)
        if converted not in found:
            found.append(converted)
    if "oneOf" in schema and not state.rules.one_of:
        state.changed(path, "oneOf became anyOf")
    out = annotated(state, notes, path)
    if len(found) == 1 and "$ref" not in found[0][0]:
        return {**found[0][0], **out}, found[0][1]
    out["anyOf"] = [each for each, _ in found]
    if not any(state.needed(plan) for _, plan in found):
        return out, None
    # The decoder chooses the plan of the alternative that fits.
    for at, (one, plan) in enumerate(found):
        for other, other_plan in found[:at]:
            if plan != other_plan and not are_disjoint(one, other, {"$defs": state.defs}):
                state.cannot(path, "has alternatives that cannot be told apart")
    return out, UnionPlan(tuple(found))


def _object(state: Conversion, schema: Schema, path: str) -> tuple[dict[str, Any], Plan]:
    properties: Mapping[str, Any] = schema.get("properties") or {}
    more = _further_properties(state, schema, path)
    if not properties and more is not False:
        return _map(state, schema, more, path)
    if more is not False and state.rules.closed:
        state.cannot(path, "allows properties other than those it names")
    out = annotated(state, schema, path) | {"type": "object"}
    names = fitting_names(properties, state.rules.properties)
    members: dict[str, MemberPlan] = {}
    out["properties"] = {}
    required = schema.get("required", ())
    for name, each in properties.items():
        where = f"{path}.{name}"
        converted, plan = _node(state, each, where)
        absent = False
        if name not in required and state.rules.all_required:
            absent = _null_is_absent(state, each, where)
            converted = converted if allows_null(each, state.document) else or_null(converted)
        members[names[name]] = MemberPlan(name, state.needed(plan), absent)
        out["properties"][names[name]] = converted
    for name in required:
        if name not in names:
            state.cannot(path, f"requires {name!r}, which has no schema")
    if state.rules.all_required:
        out["required"] = list(names.values())
    else:
        out["required"] = [names[name] for name in required if name in names]
    if more is False or state.rules.closed:
        out["additionalProperties"] = False
    elif more is not None:
        out["additionalProperties"] = _node(state, more, path)[0] or True
    changed = {key: each for key, each in members.items() if each != MemberPlan(key)}
    return out, ObjectPlan(changed) if changed else None


def _further_properties(state: Conversion, schema: Schema, path: str) -> Any:
    """Return False for a closed object, the schema for additional members, or None for any."""
    more = schema.get("additionalProperties", schema.get("unevaluatedProperties"))
    if schema.get("patternProperties") and not (more is False and not schema.get("properties")):
        state.cannot(path, "uses patternProperties alongside other members")
    if more is False:
        return False if schema.get("patternProperties") is None else None
    if more is None and (schema.get("properties") or path == ROOT) and state.rules.closed:
        state.changed(path, "additional properties cannot be sent")
        return False
    return None if more is True or more == {} else more


def _null_is_absent(state: Conversion, schema: Any, path: str) -> bool:
    """Return whether null represents an omitted property."""
    if not allows_null(schema, state.document):
        return True
    if not isinstance(schema, Mapping) or "default" not in schema:
        state.cannot(path, "may be null or left out, and strict mode uses null for both")
        return False
    return schema["default"] is None


def _map(state: Conversion, schema: Schema, more: Any, path: str) -> tuple[dict[str, Any], Plan]:
    keys: Any = schema.get("propertyNames") or {"type": "string"}
    patterns: Mapping[str, Any] = schema.get("patternProperties") or {}
    if len(patterns) == 1:
        [(pattern, more)] = patterns.items()
        keys = {"type": "string", "pattern": pattern}
    if more is None and state.rules.closed:
        state.cannot(path, "accepts an object with any members")
    value, plan = _node(state, {} if more is None else more, f"{path}.*")
    plan = state.needed(plan)
    if not state.rules.closed:
        out = annotated(state, schema, path) | {"type": "object"}
        if value:
            out["additionalProperties"] = value
        return out, None if plan is None else MapPlan(plan, pairs=False)
    sizes = {"minProperties": "minItems", "maxProperties": "maxItems"}
    listed = {sizes.get(key, key): each for key, each in schema.items()}
    out = annotated(state, listed, path) | {"type": "array"}
    out["items"] = {
        "type": "object",
        "properties": {KEY: _node(state, {"type": "string", **keys}, path)[0], VALUE: value},
        "required": [KEY, VALUE],
        "additionalProperties": False,
    }
    state.changed(path, "a map is sent as a list of key-value pairs")
    return out, MapPlan(plan)


def _array(state: Conversion, schema: Schema, path: str) -> tuple[dict[str, Any], Plan]:
    items = schema.get("items")
    prefix = schema.get("prefixItems") or (items if isinstance(items, list) else None)
    if prefix:
        more = schema.get("additionalItems") if isinstance(items, list) else items
        return _tuple(state, schema, prefix, more, path)
    if state.rules.strict and (items is None or items is True or items == {}):
        state.cannot(path, "accepts items of any type")
    out = annotated(state, schema, path) | {"type": "array"}
    out["items"], plan = _node(state, items, f"{path}[]")
    return out, ArrayPlan(plan) if state.needed(plan) else None


def _tuple(
    state: Conversion, schema: Schema, prefix: Sequence[Any], more: Any, path: str
) -> tuple[dict[str, Any], Plan]:
    found = [_node(state, each, f"{path}[{at}]") for at, each in enumerate(prefix)]
    plans = tuple(state.needed(plan) for _, plan in found)
    if state.rules.tuples:
        out = annotated(state, schema, path) | {"type": "array"}
        out["prefixItems"] = [each for each, _ in found]
        return out, ArrayPlan(None, plans) if any(plans) else None
    count = len(prefix)
    if more is not False and schema.get("maxItems", count + 1) > count:
        state.cannot(path, "allows more items than the tuple lists")
    required = min(schema.get("minItems", 0), count)
    names = [item_name(at) for at in range(count)]
    rest = {key: each for key, each in schema.items() if key not in ("minItems", "maxItems")}
    out = annotated(state, rest, path) | {"type": "object"}
    out["properties"] = {name: each for name, (each, _) in zip(names, found, strict=True)}
    for at in range(required, count):
        if allows_null(prefix[at], state.document):
            state.cannot(f"{path}[{at}]", "may be null or left out")
        out["properties"][names[at]] = or_null(found[at][0])
    out["required"] = names
    out["additionalProperties"] = False
    state.changed(path, f"a tuple is sent as an object with the members {', '.join(names)}")
    return out, TuplePlan(plans, required)


def _by_type(schema: Schema, types: Sequence[str]) -> list[dict[str, Any]]:
    """Return one alternative for each of a schema's types."""
    left_out = ("type", "enum", "description", "title")
    rest = {key: each for key, each in schema.items() if key not in left_out}
    branches = []
    for each in types:
        branch: dict[str, Any] = {"type": each} if each == "null" else {**rest, "type": each}
        if each != "null" and "enum" in schema:
            branch["enum"] = [value for value in schema["enum"] if type_of_value(value) == each]
        branches.append(branch)
    return branches


def annotated(
    state: Conversion, schema: Schema, path: str, types: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the keywords to keep; the description states the others."""
    out: dict[str, Any] = {}
    stated = []
    for keyword, value in _tightened(schema, types, state.rules).items():
        if _is_kept(state, keyword, value):
            out[keyword] = deepcopy(value)
        elif keyword in _NO_FORM:
            state.cannot(path, f"uses {keyword}")
        elif keyword in _CONSTRAINTS or (keyword == "default" and value is not None):
            stated.append(f"{keyword}: {_json(value)}")
    if "const" in schema or "enum" in schema:
        values = [schema["const"]] if "const" in schema else list(schema["enum"])
        kinds = {type_of_value(each) for each in values}
        if kinds & CONTAINERS:
            state.cannot(path, "has objects or arrays as enum or const values")
        elif state.rules.const or kinds <= {"string", "integer", "number"}:
            keyword = "const" if "const" in schema and state.rules.const else "enum"
            out[keyword] = values[0] if keyword == "const" else values
        elif kinds != {"null"}:
            stated.append(f"one of: {_json(values)}")
    if stated:
        text = f"({', '.join(stated)})"
        out["description"] = f"{out['description']} {text}" if out.get("description") else text
        state.changed(path, f"the description says {text}")
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


def _tightened(schema: Schema, types: Sequence[str], rules: SchemaRules) -> Schema:
    """Rewrite exclusive integer bounds as inclusive ones if the provider accepts only those."""
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
