"""The schemas of all tools' types, each class once and under one name."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ....types.json_schema import schemas
from ....types.schema_renderer import default_keyword, rename_refs
from .blocks import ROOT
from .references import free_name, used

if TYPE_CHECKING:
    from ....tools.tool import Tool

Schema = dict[str, Any]
Components = dict[str, Schema]

_DEFS = "#/$defs/"


def tool_schemas(
    tools: Sequence[Tool], reserved: Collection[str]
) -> tuple[list[tuple[Schema, Schema | None]], Components]:
    """Each tool's arguments and wrapped data (where it is known), and the classes in them."""
    taken = [each.annotation for tool in tools for each in tool.parameters]
    given = [tool.returns.data_type for tool in tools if tool.returns.declared]
    # Each direction goes over all types, so that a class is called the same in both.
    read, inputs = schemas(taken + given, _DEFS + "{name}", mode="validation")
    sent, outputs = schemas(taken + given, _DEFS + "{name}", mode="serialization")
    read, sent = read[: len(taken)], sent[len(taken) :]
    inputs, outputs = used(read, inputs, _DEFS), used(sent, outputs, _DEFS)

    names, output_names = _names(inputs, outputs, reserved)
    arguments, data = iter(_renamed(read, names)), iter(_renamed(sent, output_names))
    of_tools = [(_arguments(tool, arguments), _data(tool, data)) for tool in tools]
    return of_tools, _components(inputs, names) | _components(outputs, output_names)


def _names(
    inputs: Components, outputs: Components, reserved: Collection[str]
) -> tuple[dict[str, str], dict[str, str]]:
    """What each class is called, as it is read and as it is sent.

    That is one name, unless it is read and sent in two forms, as pydantic does with defaults.
    """
    names: dict[str, str] = {}
    for name in sorted(inputs.keys() | outputs.keys()):
        names[name] = free_name(name, {*reserved, *names.values()})
    apart: dict[str, str] = {}
    for name in sorted(inputs.keys() & outputs.keys()):
        if _whole(name, inputs) != _whole(name, outputs):
            taken = {*reserved, *names.values(), *apart.values()}
            apart[name] = free_name(f"{names[name]}Output", taken)
    return names, names | apart


def _whole(name: str, components: Components) -> Components:
    return used({"$ref": _DEFS + name}, components, _DEFS)


def _renamed(found: Any, names: dict[str, str]) -> Any:
    return rename_refs(found, {_DEFS + old: ROOT + new for old, new in names.items()})


def _components(found: Components, names: dict[str, str]) -> Components:
    return {names[name]: _renamed(schema, names) for name, schema in found.items()}


def _arguments(tool: Tool, types: Iterator[Schema]) -> Schema:
    properties = {}
    for parameter in tool.parameters:
        schema = dict(next(types))
        if parameter.description is not None:
            schema.setdefault("description", parameter.description)
        if not parameter.required:
            schema |= default_keyword(parameter.default)
        properties[parameter.name] = schema
    arguments = {
        "properties": properties,
        "required": [parameter.name for parameter in tool.parameters if parameter.required],
    }
    given = {name: value for name, value in arguments.items() if value}
    return {"type": "object", **given, "additionalProperties": False}


def _data(tool: Tool, types: Iterator[Schema]) -> Schema | None:
    if not tool.returns.declared:
        return None
    wrapped: Schema = tool.returns.shape.wrap_schema(next(types))
    return wrapped
