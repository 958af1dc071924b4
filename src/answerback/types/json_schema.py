"""JSON Schema (2020-12) of annotations, rendered from the typed tree that decoding uses."""

from collections.abc import Sequence
from typing import Any

from .annotation_reader import read_type
from .parameter import Parameter
from .schema_renderer import Renderer, default_of
from .unservable import is_object_node

Schema = dict[str, Any]


def arguments_schema(parameters: Sequence[Parameter]) -> Schema:
    """The schema of the object that holds a function's arguments."""
    trees = [read_type(each.annotation, each.name) for each in parameters]
    renderer = Renderer(trees, mode="validation")
    schema: Schema = {"type": "object"}
    properties = {
        each.name: _property(each, renderer.render(node))
        for each, node in zip(parameters, trees, strict=True)
    }
    if properties:
        schema["properties"] = properties
    required = [each.name for each in parameters if each.required]
    if required:
        schema["required"] = required
    schema["additionalProperties"] = False
    return _with_definitions(schema, renderer)


def _property(parameter: Parameter, schema: Schema) -> Schema:
    if parameter.description is not None:
        # What the annotation itself says is nearer to the type than a docstring.
        schema.setdefault("description", parameter.description)
    if not parameter.required:
        schema.update(default_of(parameter.default))
    return schema


def output_schema(annotation: Any) -> Schema:
    """The schema of a return type, an object's written out at the root."""
    node = read_type(annotation, "return")
    renderer = Renderer([node], mode="serialization")
    schema = renderer.render_root(node)
    if is_object_node(node):
        schema = {"type": "object", **schema}
    return _with_definitions(schema, renderer)


def schemas(
    annotations: Sequence[Any],
    ref_template: str = "#/components/schemas/{name}",
    *,
    mode: str = "serialization",
) -> tuple[list[Schema], dict[str, Schema]]:
    """The schemas of several types and, by name, the classes that they refer to."""
    trees = [read_type(annotation) for annotation in annotations]
    renderer = Renderer(trees, mode=mode, ref_template=ref_template, name_all=True)
    return [renderer.render(node) for node in trees], renderer.definitions


def _with_definitions(schema: Schema, renderer: Renderer) -> Schema:
    if renderer.definitions:
        schema["$defs"] = renderer.definitions
    return schema
