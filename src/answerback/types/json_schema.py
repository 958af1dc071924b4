"""JSON Schema (2020-12) for annotations, rendered from the same tree that decoding uses.

The patterns for dates, times and other strings, and the check against them, are also here.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import cache
from typing import Annotated, Any
from uuid import UUID

import msgspec

from . import nodes
from .annotation_reader import is_object_node, read_type
from .arguments import Parameter
from .json_text import ENCODER
from .nodes import BYTES_TYPES, NO_LIMITS, Node, Scalar, ValueLimits, is_loose_in_msgspec
from .problems import without_metadata
from .unencodable import find_fault

_CLOCK = r"([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]+)?"
# The date pattern is exact: no year 0, no April 31, and February 29 only in leap years.
_YEAR = r"(000[1-9]|00[1-9][0-9]|0[1-9][0-9]{2}|[1-9][0-9]{3})"
_MULTIPLE_OF_FOUR = r"(0[48]|[2468][048]|[13579][26])"
_LEAP_YEAR = rf"([0-9]{{2}}{_MULTIPLE_OF_FOUR}|{_MULTIPLE_OF_FOUR}00)"
_MONTH_AND_DAY = (
    r"((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])"
    r"|(0[469]|11)-(0[1-9]|[12][0-9]|30)"
    r"|02-(0[1-9]|1[0-9]|2[0-8]))"
)
_DAY = rf"({_YEAR}-{_MONTH_AND_DAY}|{_LEAP_YEAR}-02-29)"
# msgspec accepts an offset without its colon; RFC 3339 does not.
_LOOSE_OFFSET = r"([Zz]|[+-]([01][0-9]|2[0-3]):?[0-5][0-9])"
_OFFSET = r"([Zz]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
# A timedelta can hold any eight-digit number of each unit.
_SECONDS = r"[0-9]{1,8}(\.[0-9]{1,9})?S"
_TIME_PART = rf"([0-9]{{1,8}}H([0-9]{{1,8}}M)?({_SECONDS})?|[0-9]{{1,8}}M({_SECONDS})?|{_SECONDS})"

_PATTERNS: dict[type, str] = {
    date: rf"^{_DAY}$",
    UUID: r"^[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$",
    timedelta: rf"^-?P([0-9]{{1,8}}D(T{_TIME_PART})?|T{_TIME_PART})$",
    Decimal: r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,9})?$",
    bytes: r"^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$",
}
# Keyed by the type and its `tz` limit.
_TIME_PATTERNS: dict[tuple[type, bool | None], str] = {
    (datetime, None): rf"^{_DAY}[Tt ]{_CLOCK}{_LOOSE_OFFSET}?$",
    (datetime, True): rf"^{_DAY}[Tt]{_CLOCK}{_OFFSET}$",
    (datetime, False): rf"^{_DAY}[Tt ]{_CLOCK}$",
    (time, None): rf"^{_CLOCK}{_LOOSE_OFFSET}?$",
    (time, True): rf"^{_CLOCK}{_OFFSET}$",
    (time, False): rf"^{_CLOCK}$",
}
_FORMAT_HINTS: dict[tuple[type, bool | None], str] = {
    (datetime, None): "write it like 2026-01-31T12:00:00Z",
    (datetime, False): "write it like 2026-01-31T12:00:00",
    (date, None): "write it like 2026-01-31",
    (time, None): "write it like 12:00:00",
    (time, True): "write it like 12:00:00Z",
    (timedelta, None): "write it like PT1H30M",
    (UUID, None): "write it like 00000000-0000-4000-8000-000000000000",
    **{(kind, None): "write it in base64" for kind in BYTES_TYPES},
}
_FORMAT_CHECKS = {datetime: "date-time", time: "time", timedelta: "duration"}
# JSON Schema's formats are RFC 3339's: times have an offset, and durations have no fractions.
# Types that allow other values are described in words.
_TIME_TEXTS: dict[tuple[type, bool | None], str] = {
    (datetime, None): "ISO 8601 date and time, with or without an offset",
    (datetime, False): "ISO 8601 date and time without an offset",
    (time, None): "ISO 8601 time, with or without an offset",
    (time, False): "ISO 8601 time without an offset",
    (timedelta, None): "ISO 8601 duration",
}


def format_keyword(node: Scalar, mode: str) -> dict[str, str]:
    """Return the `format` for a date, time or duration, or a `description` if no format fits."""
    kind = node.kind
    # An argument in the format's narrower form is always accepted; a result may have other forms.
    if node.limits.tz or (kind is timedelta and mode == "validation"):
        return {"format": _FORMAT_CHECKS[kind]}
    return {"description": _TIME_TEXTS[kind, node.limits.tz]}


def join_descriptions(text: str, of_type: str | None) -> str:
    """Return the author's description, followed by this module's description of a type."""
    return f"{text} ({of_type})" if of_type in _TIME_TEXTS.values() else text


def format_in_words(description: str | None) -> str | None:
    """Return the format for a description that contains this module's description of a type."""
    for (kind, _), text in _TIME_TEXTS.items():
        if text in (description or ""):
            return _FORMAT_CHECKS[kind]
    return None


def pattern_of(kind: type, limits: ValueLimits) -> str | None:
    """Return the pattern for strings that stand for *kind*; None for free text."""
    if kind in BYTES_TYPES:
        kind = bytes
    return _TIME_PATTERNS.get((kind, limits.tz)) or _PATTERNS.get(kind)


def format_hint(node: Scalar, value: Any) -> str | None:
    """Return a hint on how to write values of *node*, if *value* does not match its pattern."""
    hint = _FORMAT_HINTS.get((node.kind, node.limits.tz)) or _FORMAT_HINTS.get((node.kind, None))
    return None if hint is None or _matches_pattern(node, value) else hint


def read_scalar(node: Scalar, value: Any) -> Any:
    """Return the typed value for decoded JSON; raises ValueError if it does not fit."""
    if is_loose_in_msgspec(node) and not _matches_pattern(node, value):
        raise ValueError("does not match its pattern")
    base: Any = (
        Annotated[node.kind, msgspec.Meta(tz=node.limits.tz)] if node.limits.tz else node.kind
    )
    typed = msgspec.convert(value, base)
    limits = node.limits
    if limits is NO_LIMITS:
        return typed
    try:
        is_within = all(_COMPARE[name](typed, limit) for name, limit in limits.as_dict().items())
        is_within = is_within and all(check(typed) for check in limits.checks)
    except (TypeError, ValueError, ArithmeticError):
        # A naive time was compared with an aware one, or a predicate raised.
        is_within = False
    if not is_within:
        raise ValueError("exceeds its limits")
    return typed


def _matches_pattern(node: Scalar, value: Any) -> bool:
    if node.kind is Decimal and type(value) in (int, float):
        return True
    pattern = pattern_of(node.kind, node.limits)
    # fullmatch, because `$` in Python's re also matches before a trailing newline.
    return isinstance(value, str) and bool(_compiled(pattern).fullmatch(value))


@cache
def _compiled(pattern: str | None) -> re.Pattern[str]:
    return re.compile(pattern or "")


def _has_match(value: str, pattern: str) -> bool:
    from .patterns import searcher

    return searcher(pattern)(value) is not None


_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "ge": lambda value, limit: value >= limit,
    "gt": lambda value, limit: value > limit,
    "le": lambda value, limit: value <= limit,
    "lt": lambda value, limit: value < limit,
    "multiple_of": lambda value, limit: value % type(value)(limit) == 0,
    "min_length": lambda value, limit: len(value) >= limit,
    "max_length": lambda value, limit: len(value) <= limit,
    "pattern": _has_match,
    "tz": lambda value, limit: (value.tzinfo is not None) == limit,
}


Schema = dict[str, Any]


class Renderer:
    """A renderer for trees that share one set of definitions.

    *definition_names* maps the annotations of classes that become definitions to their names;
    every other class is rendered where it is used.
    """

    def __init__(
        self,
        definition_names: Mapping[Any, str],
        *,
        mode: str,
        ref_template: str = "#/$defs/{name}",
        name_models: bool = False,
    ) -> None:
        self.mode = mode
        # Every pydantic model becomes a definition, not only nested ones.
        self.name_models = name_models
        self.definitions: dict[str, Schema] = {}
        self._ref_template = ref_template
        self._names = definition_names
        # The definitions as pydantic wrote them, by their names here.
        self._pydantic_definitions: dict[str, Schema] = {}

    def render(self, node: Node) -> Schema:
        """Return the schema of *node*."""
        return _RENDER[type(node)](self, node)

    def render_root(self, node: Node) -> Schema:
        """Return the schema of *node*; never a reference, even if it is also a definition."""
        match node:
            case nodes.Noted(inner=inner, notes=notes):
                return {**self.render_root(inner), **_note_keywords(notes)}
            case nodes.Record():
                return _record(self, node)
            case nodes.Model():
                schema = self.model(node)
                for name in self.definitions:
                    if schema.get("$ref") == self.ref(name)["$ref"]:
                        rest = {key: value for key, value in schema.items() if key != "$ref"}
                        return self.definitions[name] | rest
                return schema
        return self.render(node)

    def ref(self, name: str) -> Schema:
        """Return a reference to the definition *name*."""
        return {"$ref": self._ref_template.format(name=name)}

    def record(self, node: nodes.Record) -> Schema:
        """Return the schema of a record, or a reference to it if it is a definition."""
        name = self._names.get(node.annotation)
        if name is None:
            return _record(self, node)
        if name not in self.definitions:
            # The entry is created first, because the record may contain a reference to itself.
            self.definitions[name] = {}
            self.definitions[name].update(_record(self, node))
        return self.ref(name)

    def model(self, node: nodes.Model) -> Schema:
        """Return the schema of a pydantic model, and add its definitions to ours."""
        from .pydantic_types import model_schema

        schema = model_schema(node, mode=self.mode)
        definitions = schema.pop("$defs", {})
        names = {name: self._name_for(name, definitions[name]) for name in definitions}
        refs = {f"#/$defs/{old}": self.ref(new)["$ref"] for old, new in names.items()}
        for old, new in names.items():
            self.definitions[new] = self._untitled(rename_refs(definitions[old], refs), old)
        renamed: Schema = rename_refs(schema, refs)
        if self.name_models and isinstance(node.annotation, type) and "title" in schema:
            name = self._name_for(clean_name(node.annotation.__name__), schema)
            self.definitions[name] = self._untitled(renamed, node.annotation.__name__)
            return self.ref(name)
        return renamed

    def _untitled(self, schema: Schema, name: str) -> Schema:
        """Return the schema without a title that only repeats its class's name."""
        if self.name_models and name.endswith(schema.get("title", " ")):
            return {key: value for key, value in schema.items() if key != "title"}
        return schema

    def _name_for(self, name: str, schema: Schema) -> str:
        number, unused = 1, name
        while (
            unused in self._names.values()
            or self._pydantic_definitions.get(unused, schema) != schema
        ):
            number += 1
            unused = f"{name}_{number}"
        self._pydantic_definitions[unused] = schema
        return unused


def clean_name(name: str) -> str:
    """Return the name with underscores in place of characters not allowed in references."""
    return re.sub(r"[^A-Za-z0-9.]+", "_", name).strip("_")


def rename_refs(schema: Any, refs: dict[str, str]) -> Any:
    """Return the schema with its references replaced according to *refs*."""
    if isinstance(schema, list):
        return [rename_refs(each, refs) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: refs.get(value, value)
        if key == "$ref" and isinstance(value, str)
        else rename_refs(value, refs)
        for key, value in schema.items()
    }


def default_keyword(value: Any) -> Schema:
    """Return a schema's `default` keyword, or nothing if JSON cannot represent *value*."""
    try:
        encoded = ENCODER.encode(value)
    except Exception:  # noqa: BLE001 -- an author's object may raise any exception
        return {}
    # NaN would be written as null.
    if b"null" in encoded and find_fault(value) is not None:
        return {}
    return {"default": msgspec.json.decode(encoded)}


def _note_keywords(notes: nodes.Notes) -> Schema:
    keywords = {name: getattr(notes, name) for name in ("title", "description", "examples")}
    given = {name: value for name, value in keywords.items() if value is not None}
    return given | (notes.extra or {})


_NUMBER_KEYWORDS = {
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "lt": "exclusiveMaximum",
    "multiple_of": "multipleOf",
}
_JSON_TYPES = {bool: "boolean", int: "integer", float: "number", str: "string"}
_FORMATS: dict[type, str] = {date: "date", UUID: "uuid"}
_INT_KEY = "^-?(0|[1-9][0-9]*)$"


def _length_keywords(limits: ValueLimits, noun: str) -> Schema:
    """Return the length limits as keywords for *noun*: Items, Length or Properties."""
    schema: Schema = {}
    if limits.min_length is not None:
        schema[f"min{noun}"] = limits.min_length
    if limits.max_length is not None:
        schema[f"max{noun}"] = limits.max_length
    return schema


def _scalar(node: nodes.Scalar, mode: str = "serialization") -> Schema:
    if node.kind in _JSON_TYPES:
        return {"type": _JSON_TYPES[node.kind], **_limit_keywords(node.limits)}
    if node.kind in nodes.BYTES_TYPES:
        return {
            "type": "string",
            "contentEncoding": "base64",
            "pattern": _base64_pattern(node.limits),
        }
    if node.kind is Decimal:
        number = {"type": "number", **_limit_keywords(node.limits)}
        return {"anyOf": [number, {"type": "string", "pattern": pattern_of(Decimal, node.limits)}]}
    if node.kind in _FORMATS:
        return {"type": "string", "format": _FORMATS[node.kind]}
    return {"type": "string", **format_keyword(node, mode)}


def _limit_keywords(limits: ValueLimits) -> Schema:
    schema = {
        _NUMBER_KEYWORDS[name]: limit
        for name, limit in limits.as_dict().items()
        if name in _NUMBER_KEYWORDS
    }
    if limits.pattern is not None:
        schema["pattern"] = limits.pattern
    return schema | _length_keywords(limits, "Length")


def _base64_pattern(limits: ValueLimits) -> str:
    """Return a pattern for the base64 of as many bytes as *limits* allow."""
    minimum, maximum = limits.min_length or 0, limits.max_length
    if not minimum and maximum is None:
        return str(pattern_of(bytes, limits))
    forms = []
    for rest, tail in enumerate(("", "[A-Za-z0-9+/]{2}==", "[A-Za-z0-9+/]{3}=")):
        first = max(0, -(-(minimum - rest) // 3))
        last = "" if maximum is None else (maximum - rest) // 3
        if last == "" or first <= int(last):
            forms.append(f"([A-Za-z0-9+/]{{4}}){{{first},{last}}}{tail}")
    return f"^({'|'.join(forms)})$"


def _choice(renderer: Renderer, node: nodes.Choice) -> Schema:
    values = [value for value, _ in node.values]
    kinds = {nodes.kind_of(value) for value in values}
    schema: Schema = {"enum": values}
    if kinds in ({"string"}, {"boolean"}, {"null"}):
        schema["type"] = kinds.pop()
    elif kinds == {"number"} and all(isinstance(value, int) for value in values):
        schema["type"] = "integer"
    return schema


def _array(renderer: Renderer, node: nodes.Array) -> Schema:
    schema: Schema = {"type": "array"}
    if item := renderer.render(node.item):
        schema["items"] = item
    return schema | _length_keywords(node.limits, "Items")


def _fixed(renderer: Renderer, node: nodes.Fixed) -> Schema:
    if not node.items:
        return {"type": "array", "maxItems": 0}
    items = [renderer.render(item) for item in node.items]
    return {"type": "array", "prefixItems": items, "minItems": len(items), "maxItems": len(items)}


def _mapping(renderer: Renderer, node: nodes.Mapping) -> Schema:
    schema: Schema = {"type": "object"}
    value = renderer.render(node.value)
    if value:
        schema["additionalProperties"] = value
    key = nodes.without_notes(node.key)
    names: Schema = {}
    if isinstance(key, nodes.Choice):
        names = {"enum": [str(value) for value, _ in key.values]}
    elif isinstance(key, nodes.Scalar) and key.kind is int:
        names = {"pattern": _INT_KEY}
    elif isinstance(key, nodes.Scalar):
        names = _scalar(key)
        # All keys are strings in JSON.
        del names["type"]
    if names:
        schema["propertyNames"] = names
    return schema | _length_keywords(node.limits, "Properties")


def _record(renderer: Renderer, node: nodes.Record) -> Schema:
    schema = _array_record(renderer, node) if node.array else _object(renderer, node)
    notes: Schema = {}
    text = node.cls.__dict__.get("__doc__")
    # dataclass and NamedTuple generate a docstring that is just the signature.
    if isinstance(text, str) and not text.startswith(f"{node.cls.__name__}("):
        paragraph = text.strip().split("\n\n")[0]
        if description := " ".join(paragraph.split()):
            notes["description"] = description
    # Clients name generated classes after the title; a component already has a name.
    title = {} if renderer.name_models else {"title": node.cls.__name__}
    return {**title, **notes, **schema}


def _object(renderer: Renderer, node: nodes.Record) -> Schema:
    properties: dict[str, Schema] = {}
    if node.tag is not None:
        properties[node.tag[0]] = {"enum": [node.tag[1]]}
    for field in node.fields:
        properties[field.json_name] = renderer.render(field.node)
        if field.default is not msgspec.NODEFAULT:
            properties[field.json_name].update(default_keyword(field.default))
    schema: Schema = {"type": "object", "properties": properties}
    required = [field.json_name for field in node.fields if field.required]
    if required:
        schema["required"] = required
    if node.closed:
        schema["additionalProperties"] = False
    return schema


def _array_record(renderer: Renderer, node: nodes.Record) -> Schema:
    items = [renderer.render(field.node) for field in node.fields]
    if node.tag is not None:
        items = [{"enum": [node.tag[1]]}, *items]
    schema: Schema = {"type": "array"}
    if items:
        schema["prefixItems"] = items
    if node.min_items:
        schema["minItems"] = node.min_items
    if node.closed:
        schema["maxItems"] = len(items)
    return schema


def _union(renderer: Renderer, node: nodes.Union) -> Schema:
    members: list[Schema] = []
    for member in node.members:
        schema = renderer.render(member)
        if tag := nodes.tag_of(member):
            schema = {**schema, "required": [tag, *schema.get("required", [])]}
        alternatives = schema["anyOf"] if schema.keys() == {"anyOf"} else [schema]
        members.extend(each for each in alternatives if each not in members)
    return {"anyOf": members} if len(members) > 1 else members[0]


def _noted(renderer: Renderer, node: nodes.Noted) -> Schema:
    schema, keywords = renderer.render(node.inner), _note_keywords(node.notes)
    if "description" in keywords:
        text = str(keywords["description"])
        keywords["description"] = join_descriptions(text, schema.get("description"))
    return {**schema, **keywords}


_RENDER: dict[type[Node], Callable[[Renderer, Any], Schema]] = {
    nodes.Anything: lambda renderer, node: {},
    nodes.Null: lambda renderer, node: {"type": "null"},
    nodes.Scalar: lambda renderer, node: _scalar(node, renderer.mode),
    nodes.Choice: _choice,
    nodes.Array: _array,
    nodes.Fixed: _fixed,
    nodes.Mapping: _mapping,
    nodes.Record: Renderer.record,
    nodes.Union: _union,
    nodes.Model: Renderer.model,
    nodes.Custom: lambda renderer, node: dict(node.codec.schema),
    nodes.Noted: _noted,
}


def arguments_schema(parameters: Sequence[Parameter]) -> Schema:
    """Return the schema of a function's argument object."""
    trees = [read_type(each.annotation, each.name) for each in parameters]
    renderer = Renderer(_definition_names(trees), mode="validation")
    properties: dict[str, Schema] = {}
    for each, node in zip(parameters, trees, strict=True):
        properties[each.name] = renderer.render(node)
        add_description(properties[each.name], each.description)
        if not each.required:
            properties[each.name].update(default_keyword(each.default))
    # Include an empty `properties`: many clients read it without checking whether it exists.
    schema: Schema = {"type": "object", "properties": properties}
    required = [each.name for each in parameters if each.required]
    if required:
        schema["required"] = required
    schema["additionalProperties"] = False
    return _with_definitions(schema, renderer)


def argument_object_schema(annotation: Any) -> Schema:
    """Return the schema of an argument object that is one value of this type.

    A class allows no other members, unless it is a model that allows them.
    """
    node = read_type(annotation)
    renderer = Renderer(_definition_names([node]), mode="validation")
    schema = {"type": "object", "properties": {}, **renderer.render_root(node)}
    if isinstance(nodes.without_notes(node), nodes.Record | nodes.Model):
        schema.setdefault("additionalProperties", False)
    # These describe the class, not the tool.
    schema.pop("title", None)
    schema.pop("description", None)
    return _with_definitions(schema, renderer)


def add_description(schema: Schema, text: str | None) -> None:
    """Add the docstring's description; one in the annotation takes precedence."""
    if text is not None:
        of_type = schema.get("description")
        joined = join_descriptions(text, of_type)
        schema["description"] = of_type if of_type is not None and joined == text else joined


def output_schema(annotation: Any) -> Schema:
    """Return the schema for a return type; for an object type, it is never a reference."""
    node = read_type(annotation, "return")
    renderer = Renderer(_definition_names([node]), mode="serialization")
    schema = renderer.render_root(node)
    if is_object_node(node):
        schema = {"type": "object", **schema}
    return _with_definitions(schema, renderer)


def has_named_members(annotation: Any) -> bool:
    """Return whether the type is a class with fields, or contains one."""
    below = nodes.reachable(read_type(annotation))
    return any(isinstance(each, nodes.Record | nodes.Model) for each in below)


def schemas(
    annotations: Sequence[Any],
    ref_template: str = "#/components/schemas/{name}",
    *,
    mode: str = "serialization",
) -> tuple[list[Schema], dict[str, Schema]]:
    """Return the schemas of several types and, by name, those of the classes in them."""
    trees = [read_type(annotation) for annotation in annotations]
    names = _definition_names(trees, name_all=True)
    renderer = Renderer(names, mode=mode, ref_template=ref_template, name_models=True)
    return [renderer.render(node) for node in trees], renderer.definitions


def _with_definitions(schema: Schema, renderer: Renderer) -> Schema:
    if renderer.definitions:
        schema["$defs"] = renderer.definitions
    return schema


def _definition_names(trees: Sequence[Node], *, name_all: bool = False) -> dict[Any, str]:
    """Return the names of the classes that become definitions, by annotation.

    A class becomes a definition if it is used twice or contains itself, or with *name_all*. It
    keeps its own name, prefixed with its module if two classes share the name. The names do not
    depend on the order of the trees.
    """
    uses: Counter[Any] = Counter()
    for tree in trees:
        pending, seen = [tree], set[int]()
        while pending:
            node = pending.pop()
            if isinstance(node, nodes.Record):
                # Counted before `seen` is checked, so that a recursive record counts twice.
                uses[node.annotation] += 1
                if id(node) in seen:
                    continue
                seen.add(id(node))
            pending.extend(nodes.children(node))
    defined = [annotation for annotation in uses if name_all or uses[annotation] > 1]
    short_names = Counter(map(_short_name, defined))
    names: dict[Any, str] = {}
    for annotation in defined:
        name = _short_name(annotation)
        if short_names[name] > 1:
            name = clean_name(
                f"{annotation.__module__}.{annotation.__qualname__}"
                if isinstance(annotation, type)
                else str(annotation)
            )
        number, unused = 1, name
        while unused in names.values():
            number += 1
            unused = f"{name}_{number}"
        names[annotation] = unused
    return names


def _short_name(annotation: Any) -> str:
    # A marked record has the name of its class.
    annotation = without_metadata(annotation)
    if isinstance(annotation, type):
        return clean_name(annotation.__name__)
    # A generic with type arguments: Box[int] becomes Box_int.
    return clean_name(re.sub(r"[\w.<>]+\.", "", str(annotation)))
