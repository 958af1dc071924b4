"""Turns content blocks and results of the SDK and of FastMCP into ours."""

from __future__ import annotations

from typing import Any

from ..core.content import BLOCKS, METHODS, Block
from ..errors import MalformedReply
from ..types.problems import InvalidOutput
from .mcp_blocks import read_block


def own_block(value: Any) -> Block:
    """Return our block for a block of any library; raise InvalidOutput if it is malformed."""
    if isinstance(value, BLOCKS):
        return value
    for name in METHODS:
        if (make := getattr(value, name, None)) is not None:
            value = make()
    found = value.model_dump(mode="json", by_alias=True, exclude_none=True)
    if "type" not in found:
        # The contents of a resource, without the block around them.
        found = {"type": "resource", "resource": found}
    try:
        return read_block(found)
    except MalformedReply as error:
        raise InvalidOutput("", str(error)) from None


def result_object(result: Any) -> dict[str, Any]:
    """Return the MCP result of an SDK's `CallToolResult` or FastMCP's `ToolResult`."""
    if not hasattr(result, "to_mcp_result"):
        found: dict[str, Any] = result.model_dump(by_alias=True, mode="json", exclude_none=True)
        # Version 2 says that the result is complete, which every tool's result is.
        found.pop("resultType", None)
        return found
    found = {
        "content": [own_block(block) for block in result.content],
        "isError": getattr(result, "is_error", False),
    }
    if result.structured_content is not None:
        found["structuredContent"] = result.structured_content
    return found | ({"_meta": result.meta} if result.meta else {})
