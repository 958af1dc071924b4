"""Renders the tree of nodes as JSON Schema: one small function for each kind of node."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date
from decimal import Decimal
from typing import Any
from uuid import UUID

import msgspec

from . import nodes
from .json_text import ENCODER
from .nodes import Node, ValueLimits
from .scalars import format_keyword, join_descriptions, pattern_of
from .unencodable import find_fault

Schema = dict[str, Any]


class Renderer:
    """A renderer for trees that share one set of definitions.

    *definition_names* has the names of the classes that become definitions, by annotation;
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
        # Every pydantic model becomes a definition, not only those inside others.
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
                return self._resolve(self.model(node))
        return self.render(node)

    def _resolve(self, schema: Schema) -> Schema:
        for name in self.definitions:
            if schema.get("$ref") == self.ref(name)["$ref"]:
                rest = {key: value for key, value in schema.items() if key != "$ref"}
                return self.definitions[name] | rest
        return schema

    def ref(self, name: str) -> Schema:
        """Return a reference to the definition *name*."""
        return {"$ref": self._ref_template.format(name=name)}

    def record(self, node: nodes.Record) -> Schema:
        """Return the schema of a record, or a reference to it if it is a definition."""
        name = self._names.get(node.annotation)
        if name is None:
            return _record(self, node)
        if name not in self.definitions:
            # Its entry is made first, because it may contain a reference to itself.
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
    """Return the name with underscores for characters that no reference may have."""
    return re.sub(r"[^A-Za-z0-9.]+", "_", name).strip("_")


def rename_refs(schema: Any, refs: dict[str, str]) -> Any:
    """Return the schema with its references replaced by those in *refs*."""
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
    """Return the length limits in the keywords for *noun*: Items, Length or Properties."""
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


def _key(node: Node) -> Schema:
    """Return the schema for an object's keys, which are strings for every key type."""
    if isinstance(node, nodes.Choice):
        return {"enum": [str(value) for value, _ in node.values]}
    if isinstance(node, nodes.Scalar) and node.kind is int:
        return {"pattern": _INT_KEY}
    if isinstance(node, nodes.Scalar):
        schema = _scalar(node)
        del schema["type"]
        return schema
    return {}


def _choice(renderer: Renderer, node: nodes.Choice) -> Schema:
    values = [value for value, _ in node.values]
    kinds = {nodes.kind_of(value) for value in values}
    schema: Schema = {"enum": values}
    if kinds in ({"string"}, {"boolean"}, {"null"}):
        schema["type"] = kinds.pop()
    elif kinds == {"number"} and all(isinstance(value, int) for value in values):
        schema["type"] = "integer"
    return schema


def _items(renderer: Renderer, item: Node) -> Schema:
    rendered = renderer.render(item)
    return {"items": rendered} if rendered else {}


def _array(renderer: Renderer, node: nodes.Array) -> Schema:
    lengths = _length_keywords(node.limits, "Items")
    return {"type": "array", **_items(renderer, node.item), **lengths}


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
    names = _key(nodes.without_notes(node.key))
    if names:
        schema["propertyNames"] = names
    return schema | _length_keywords(node.limits, "Properties")


def _record(renderer: Renderer, node: nodes.Record) -> Schema:
    schema = _array_record(renderer, node) if node.array else _object(renderer, node)
    description = _class_description(node.cls)
    notes = {} if description is None else {"description": description}
    # Clients name generated classes by it; a component already has a name.
    title = {} if renderer.name_models else {"title": node.cls.__name__}
    return {**title, **notes, **schema}


def _class_description(cls: Any) -> str | None:
    """Return the first paragraph of the class's own docstring, if its author wrote one."""
    text = cls.__dict__.get("__doc__")
    # dataclass and NamedTuple generate a docstring that is the signature.
    if not isinstance(text, str) or text.startswith(f"{cls.__name__}("):
        return None
    paragraph = text.strip().split("\n\n")[0]
    return " ".join(paragraph.split()) or None


def _object(renderer: Renderer, node: nodes.Record) -> Schema:
    schema: Schema = {"type": "object"}
    properties = {field.json_name: _field(renderer, field) for field in node.fields}
    required = [field.json_name for field in node.fields if field.required]
    if node.tag is not None:
        properties = {node.tag[0]: {"enum": [node.tag[1]]}, **properties}
    schema["properties"] = properties
    if required:
        schema["required"] = required
    if node.closed:
        schema["additionalProperties"] = False
    return schema


def _field(renderer: Renderer, field: nodes.Field) -> Schema:
    schema = renderer.render(field.node)
    if field.default is not msgspec.NODEFAULT:
        schema.update(default_keyword(field.default))
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
        own = str(keywords["description"])
        keywords["description"] = join_descriptions(own, schema.get("description"))
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
