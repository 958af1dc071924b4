"""The components of the document: the schemas of the tools' classes, each under one name."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from ....core.json_value import Json
from ....tools.tool import Tool
from ....types.json_schema import add_description, default_keyword, rename_refs, schemas

Schema = dict[str, Any]
Components = dict[str, Schema]

SCHEMAS = "#/components/schemas/"
_DEFS = "#/$defs/"
_INVALID_IN_NAMES = re.compile(r"[^A-Za-z0-9._-]")


def ref(name: str) -> Schema:
    """Return a reference to the shared schema *name*."""
    return {"$ref": SCHEMAS + name}


def object_schema(properties: Schema, required: Sequence[str] | None = None) -> Schema:
    """Return the schema of an object; all members are required unless *required* lists some."""
    names = list(properties if required is None else required)
    return {"type": "object", "properties": properties, "required": names}


def used_components(start: Json, components: Components, prefix: str) -> Components:
    """Return the components that *start* refers to, directly or through others, sorted by name.

    *prefix* is the part of a reference before the name.
    """
    pending = list(_references(start, prefix))
    used: set[str] = set()
    while pending:
        name = pending.pop()
        # An author's example may have a member "$ref" that is not a reference.
        if name in components and name not in used:
            used.add(name)
            pending.extend(_references(components[name], prefix))
    return {name: components[name] for name in sorted(used)}


def tool_schemas(
    tools: Sequence[Tool], reserved: Collection[str]
) -> tuple[list[tuple[Schema, Schema | None]], Components]:
    """Return the schemas of each tool's arguments and wrapped data, and of the classes they use.

    The schema of the data is None for a tool that declares no return type. No class gets a name
    in *reserved*.
    """
    argument_types = [parameter.annotation for tool in tools for parameter in tool.parameters]
    return_types = [tool.returns.data_type for tool in tools if _has_return_type(tool)]
    # Both directions get all types, so that a class has the same name in both.
    all_types = argument_types + return_types
    inputs, input_classes = schemas(all_types, _DEFS + "{name}", mode="validation")
    outputs, output_classes = schemas(all_types, _DEFS + "{name}", mode="serialization")
    inputs, outputs = inputs[: len(argument_types)], outputs[len(argument_types) :]
    input_classes = used_components(inputs, input_classes, _DEFS)
    output_classes = used_components(outputs, output_classes, _DEFS)

    input_names, output_names = _names(input_classes, output_classes, reserved)
    arguments, data = iter(_renamed(inputs, input_names)), iter(_renamed(outputs, output_names))
    classes = _components(input_classes, input_names) | _components(output_classes, output_names)
    whole = _WholeSchemas(classes, reserved)
    of_tools = [(_arguments(tool, arguments, whole), _data(tool, data, whole)) for tool in tools]
    return of_tools, classes


def has_required_arguments(tool: Tool) -> bool:
    """Return whether a call needs any argument."""
    if tool.signature.whole is not None:
        return bool(tool.input_schema.get("required"))
    return any(parameter.required for parameter in tool.parameters)


def _has_return_type(tool: Tool) -> bool:
    return tool.returns.declared and tool.settings.output_schema is None


class _WholeSchemas:
    """Schemas that are not made of parameters; one with references to itself is a component."""

    def __init__(self, components: Components, reserved: Collection[str]) -> None:
        self._components = components
        self._reserved = reserved

    def place(self, schema: Schema, name: str) -> Schema:
        """Return *schema*, or a reference to a component with it, which is called *name*."""
        # With an `$id`, references would not start at the document.
        own = {key: each for key, each in schema.items() if key not in ("$id", "$schema")}
        references = list(_references(own, "#"))
        if not references:
            return _with_arrays(own)
        name = _free_name(name, {*self._reserved, *self._components})
        here = {f"#{each}": f"{SCHEMAS}{name}{each}" for each in references}
        self._components[name] = _with_arrays(rename_refs(own, here))
        return ref(name)


def _names(
    inputs: Components, outputs: Components, reserved: Collection[str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the name of each class as an input, and as an output.

    A class has two names if its input differs from its output, as in pydantic with defaults.
    """
    names: dict[str, str] = {}
    for name in sorted(inputs.keys() | outputs.keys()):
        names[name] = _free_name(name, {*reserved, *names.values()})
    only_output: dict[str, str] = {}
    for name in sorted(inputs.keys() & outputs.keys()):
        if _with_dependencies(name, inputs) != _with_dependencies(name, outputs):
            taken = {*reserved, *names.values(), *only_output.values()}
            only_output[name] = _free_name(f"{names[name]}Output", taken)
    return names, names | only_output


def _free_name(name: str, taken: Collection[str]) -> str:
    """Return a valid component name made from *name*; it ends with a number if *name* is taken."""
    valid = _INVALID_IN_NAMES.sub("_", name) or "Type"
    numbered = (f"{valid}_{number}" for number in range(2, len(taken) + 3))
    return next(each for each in (valid, *numbered) if each not in taken)


def _with_dependencies(name: str, components: Components) -> Components:
    return used_components({"$ref": _DEFS + name}, components, _DEFS)


def _references(node: Json, prefix: str) -> Iterator[str]:
    """Yield the names that the references in *node* have after *prefix*."""
    if isinstance(node, list):
        for item in node:
            yield from _references(item, prefix)
    elif isinstance(node, dict):
        target = node.get("$ref")
        if isinstance(target, str) and target.startswith(prefix):
            yield target.removeprefix(prefix)
        for value in node.values():
            yield from _references(value, prefix)


def _renamed(node: Json, names: dict[str, str]) -> Any:
    renamed = rename_refs(node, {_DEFS + old: SCHEMAS + new for old, new in names.items()})
    return _with_items(renamed)


def _with_items(node: Json) -> Json:
    """Return *node* with `items` in every array: linters and generators require it."""
    if isinstance(node, list):
        return [_with_items(each) for each in node]
    if not isinstance(node, dict):
        return node
    schema = {name: _with_items(value) for name, value in node.items()}
    if schema.get("type") == "array" and "items" not in schema:
        schema["items"] = _items(schema)
    return schema


def _with_arrays(schema: Schema) -> Schema:
    return {name: _with_items(each) for name, each in schema.items()}


def _items(array: Schema) -> Schema:
    """Return a schema that allows every item of *array*, which has positional schemas or none."""
    by_position: list[Schema] = array.get("prefixItems", [])
    if not by_position or array.get("maxItems") != len(by_position):
        return {}
    different = [each for i, each in enumerate(by_position) if each not in by_position[:i]]
    return different[0] if len(different) == 1 else {"anyOf": different}


def _components(classes: Components, names: dict[str, str]) -> Components:
    return {names[name]: _renamed(schema, names) for name, schema in classes.items()}


def _arguments(tool: Tool, types: Iterator[Schema], whole: _WholeSchemas) -> Schema:
    """Return the schema of the arguments; takes the schema of each parameter from *types*."""
    if tool.signature.whole is not None:
        return whole.place(tool.input_schema, f"{tool.name}_arguments")
    properties = {}
    for parameter in tool.parameters:
        schema = dict(next(types))
        add_description(schema, parameter.description)
        if not parameter.required:
            schema |= default_keyword(parameter.default)
        properties[parameter.name] = schema
    arguments = {
        "properties": properties,
        "required": [parameter.name for parameter in tool.parameters if parameter.required],
    }
    not_empty = {name: value for name, value in arguments.items() if value}
    return {"type": "object", **not_empty, "additionalProperties": False}


def _data(tool: Tool, types: Iterator[Schema], whole: _WholeSchemas) -> Schema | None:
    """Return the schema of the wrapped data; takes the schema of the return type from *types*."""
    if not tool.returns.declared:
        return None
    if (schema := tool.settings.output_schema) is not None:
        return whole.place(tool.returns.shape.wrap_schema(schema), f"{tool.name}_result")
    wrapped: Schema = tool.returns.shape.wrap_schema(next(types))
    return wrapped
