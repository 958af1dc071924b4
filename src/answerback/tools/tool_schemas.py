"""Makes the JSON Schemas for a tool's arguments and data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..types.json_schema import arguments_schema, output_schema
from .signature import explain_undefined_names

if TYPE_CHECKING:
    from .tool import Tool


def make_input_schema(tool: Tool) -> dict[str, Any]:
    """Return the author's schema, else the parameters' schema."""
    if tool.settings.input_schema is not None:
        return tool.settings.input_schema
    with explain_undefined_names(tool.owner, tool.source):
        schema = arguments_schema(tool.parameters)
    for (name,), header in tool.signature.header_params.items():
        schema["properties"][name]["x-mcp-header"] = header
    return schema


def make_output_schema(tool: Tool) -> dict[str, Any] | None:
    """Return the wrapped data's schema; None if the return annotation has no data type."""
    if not tool.returns.declared:
        return None
    with explain_undefined_names(tool.owner, tool.source):
        return tool.returns.shape.wrap_schema(output_schema(tool.returns.data_type))
