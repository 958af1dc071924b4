"""JSON Schema (2020-12) for annotations, rendered from the same tree that decoding uses."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from . import nodes
from .annotation_reader import is_object_node, read_type
from .arguments import Parameter
from .describe import without_metadata
from .nodes import Node
from .scalars import join_descriptions
from .schema_renderer import Renderer, clean_name, default_keyword

Schema = dict[str, Any]


def arguments_schema(parameters: Sequence[Parameter]) -> Schema:
    """Return the schema of a function's argument object."""
    trees = [read_type(each.annotation, each.name) for each in parameters]
    renderer = Renderer(_definition_names(trees), mode="validation")
    schema: Schema = {"type": "object"}
    properties = {
        each.name: _property(each, renderer.render(node))
        for each, node in zip(parameters, trees, strict=True)
    }
    # Even if it is empty: many clients read it without checking whether it exists.
    schema["properties"] = properties
    required = [each.name for each in parameters if each.required]
    if required:
        schema["required"] = required
    schema["additionalProperties"] = False
    return _with_definitions(schema, renderer)


def argument_object_schema(annotation: Any) -> Schema:
    """Return the schema of an argument object that is one value of this type.

    A class takes no other members, unless it is a model that allows them.
    """
    node = read_type(annotation)
    renderer = Renderer(_definition_names([node]), mode="validation")
    schema = {"type": "object", "properties": {}, **renderer.render_root(node)}
    if isinstance(nodes.without_notes(node), nodes.Record | nodes.Model):
        schema.setdefault("additionalProperties", False)
    # The name and the description of the class, which are not the tool's.
    own = {name: each for name, each in schema.items() if name not in ("title", "description")}
    return _with_definitions(own, renderer)


def _property(parameter: Parameter, schema: Schema) -> Schema:
    add_description(schema, parameter.description)
    if not parameter.required:
        schema.update(default_keyword(parameter.default))
    return schema


def add_description(schema: Schema, text: str | None) -> None:
    """Add the docstring's description; one in the annotation takes precedence."""
    if text is not None:
        of_type = schema.get("description")
        joined = join_descriptions(text, of_type)
        schema["description"] = of_type if of_type is not None and joined == text else joined


def output_schema(annotation: Any) -> Schema:
    """Return a return type's schema; an object type's is not a reference."""
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
    has its own name, or its name with its module if two classes share one. The names do not
    depend on the trees' order.
    """
    uses: Counter[Any] = Counter()
    for tree in trees:
        uses.update(_count_records(tree))
    defined = [annotation for annotation in uses if name_all or uses[annotation] > 1]
    short_names = Counter(map(_short_name, defined))
    names: dict[Any, str] = {}
    for annotation in defined:
        name = _short_name(annotation)
        if short_names[name] > 1:
            name = _long_name(annotation)
        names[annotation] = _unused_name(name, names)
    return names


def _unused_name(name: str, names: dict[Any, str]) -> str:
    number, unused = 1, name
    while unused in names.values():
        number += 1
        unused = f"{name}_{number}"
    return unused


def _count_records(tree: Node) -> Counter[Any]:
    """Return how often each record occurs; a record that contains itself counts twice."""
    uses: Counter[Any] = Counter()
    seen: set[int] = set()
    pending = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, nodes.Record):
            uses[node.annotation] += 1
            if id(node) in seen:
                continue
            seen.add(id(node))
        pending.extend(nodes.children(node))
    return uses


def _short_name(annotation: Any) -> str:
    # A record with a mark has the name of its class.
    annotation = without_metadata(annotation)
    if isinstance(annotation, type):
        return clean_name(annotation.__name__)
    # A generic with its types: Box[int] becomes Box_int.
    return clean_name(re.sub(r"[\w.<>]+\.", "", str(annotation)))


def _long_name(annotation: Any) -> str:
    if isinstance(annotation, type):
        return clean_name(f"{annotation.__module__}.{annotation.__qualname__}")
    return clean_name(str(annotation))
