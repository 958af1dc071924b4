"""The typed tree to JSON Schema: one small function for each kind of node."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from . import nodes
from .definitions import Names, describe_class, rename_refs
from .encoding import ENCODER
from .nodes import Node
from .rendering_scalars import render_key, render_scalar, sizes
from .unencodable import find_fault

Schema = dict[str, Any]


class Renderer:
    """Renders trees that share one set of definitions.

    A class is written where it is used, unless it is used twice or holds itself, or
    *name_all* asks for every class to be a definition.
    """

    def __init__(
        self,
        trees: Sequence[Node],
        *,
        mode: str,
        ref_template: str = "#/$defs/{name}",
        name_all: bool = False,
    ) -> None:
        self.mode = mode
        self.definitions: dict[str, Schema] = {}
        self._ref_template = ref_template
        self._names = Names(trees, name_all=name_all)
        # pydantic's definitions as it wrote them, by the names that they have here.
        self._theirs: dict[str, Schema] = {}

    def render(self, node: Node) -> Schema:
        """The schema of *node*."""
        return _RENDER[type(node)](self, node)

    def render_root(self, node: Node) -> Schema:
        """The schema of *node*, written out even if it is also a definition."""
        match node:
            case nodes.Noted(inner=inner, notes=notes):
                return {**self.render_root(inner), **_told(notes)}
            case nodes.Record():
                return _record(self, node)
            case nodes.Model():
                return self._without_ref(self.model(node))
        return self.render(node)

    def _without_ref(self, schema: Schema) -> Schema:
        for name in self.definitions:
            if schema.get("$ref") == self.ref(name)["$ref"]:
                rest = {key: value for key, value in schema.items() if key != "$ref"}
                return self.definitions[name] | rest
        return schema

    def ref(self, name: str) -> Schema:
        """A reference to the definition called *name*."""
        return {"$ref": self._ref_template.format(name=name)}

    def record(self, node: nodes.Record) -> Schema:
        """A record: in place, or by reference if it is a definition."""
        name = self._names.of(node)
        if name is None:
            return _record(self, node)
        if name not in self.definitions:
            # Held open while it is rendered, because it may refer to itself.
            self.definitions[name] = {}
            self.definitions[name].update(_record(self, node))
        return self.ref(name)

    def model(self, node: nodes.Model) -> Schema:
        """A pydantic model, its definitions among ours."""
        from .pydantic_types import model_schema

        schema = model_schema(node, mode=self.mode)
        theirs = schema.pop("$defs", {})
        names = {name: self._name_for(name, theirs[name]) for name in theirs}
        refs = {f"#/$defs/{old}": self.ref(new)["$ref"] for old, new in names.items()}
        for old, new in names.items():
            self.definitions[new] = rename_refs(theirs[old], refs)
        renamed: Schema = rename_refs(schema, refs)
        return renamed

    def _name_for(self, name: str, schema: Schema) -> str:
        number, free = 1, name
        while free in self._names.all() or self._theirs.get(free, schema) != schema:
            number += 1
            free = f"{name}_{number}"
        self._theirs[free] = schema
        return free


def default_of(value: Any) -> Schema:
    """The `default` of a schema, if JSON can say it."""
    try:
        encoded = ENCODER.encode(value)
    except Exception:  # noqa: BLE001 - an author's object; a schema can do without
        return {}
    # NaN would be written as null.
    if b"null" in encoded and find_fault(value) is not None:
        return {}
    return {"default": msgspec.json.decode(encoded)}


def _told(notes: nodes.Notes) -> Schema:
    told = {name: getattr(notes, name) for name in ("title", "description", "examples")}
    return {name: text for name, text in told.items() if text is not None} | (notes.extra or {})


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
    return {"type": "array", **_items(renderer, node.item), **sizes(node.limits, "Items")}


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
    names = render_key(nodes.plain(node.key))
    if names:
        schema["propertyNames"] = names
    return schema | sizes(node.limits, "Properties")


def _record(renderer: Renderer, node: nodes.Record) -> Schema:
    schema = _array_record(renderer, node) if node.array else _object(renderer, node)
    description = describe_class(node.cls)
    return schema if description is None else {"description": description, **schema}


def _object(renderer: Renderer, node: nodes.Record) -> Schema:
    schema: Schema = {"type": "object"}
    properties = {field.wire: _field(renderer, field) for field in node.fields}
    required = [field.wire for field in node.fields if field.required]
    if node.tag is not None:
        properties = {node.tag[0]: {"enum": [node.tag[1]]}, **properties}
    if properties:
        schema["properties"] = properties
    if required:
        schema["required"] = required
    if node.closed:
        schema["additionalProperties"] = False
    return schema


def _field(renderer: Renderer, field: nodes.Field) -> Schema:
    schema = renderer.render(field.node)
    if field.default is not msgspec.NODEFAULT:
        schema.update(default_of(field.default))
    return schema


def _array_record(renderer: Renderer, node: nodes.Record) -> Schema:
    items = [renderer.render(field.node) for field in node.fields]
    if node.tag is not None:
        items = [{"enum": [node.tag[1]]}, *items]
    schema: Schema = {"type": "array"}
    if items:
        schema["prefixItems"] = items
    if node.least:
        schema["minItems"] = node.least
    if node.closed:
        schema["maxItems"] = len(items)
    return schema


def _union(renderer: Renderer, node: nodes.Union) -> Schema:
    arms: list[Schema] = []
    for member in node.members:
        arm = renderer.render(member)
        if tag := nodes.tag_of(member):
            arm = {**arm, "required": [tag, *arm.get("required", [])]}
        arms.extend(arm["anyOf"] if arm.keys() == {"anyOf"} else [arm])
    return {"anyOf": arms}


def _noted(renderer: Renderer, node: nodes.Noted) -> Schema:
    return {**renderer.render(node.inner), **_told(node.notes)}


_RENDER: dict[type[Node], Callable[[Renderer, Any], Schema]] = {
    nodes.Anything: lambda renderer, node: {},
    nodes.Null: lambda renderer, node: {"type": "null"},
    nodes.Scalar: lambda renderer, node: render_scalar(node),
    nodes.Choice: _choice,
    nodes.Array: _array,
    nodes.Fixed: _fixed,
    nodes.Mapping: _mapping,
    nodes.Record: Renderer.record,
    nodes.Union: _union,
    nodes.Model: Renderer.model,
    nodes.Noted: _noted,
}
