"""FastMCP 4: for the results of its servers' tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from ..errors import needs_extra
from .checker import TEXTS, Checked, Checker, Clock, mcp_refusal
from .sdk import plain

with needs_extra("fastmcp"):
    from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
    from fastmcp.tools.base import InputRequiredToolResult, ToolResult

if TYPE_CHECKING:
    from ..records import Records


class ValidReplies(Middleware):
    """Lets no invalid result out: `server.add_middleware(ValidReplies())`."""

    def __init__(self, *, records: Records | None = None) -> None:
        self._checker = Checker("mcp", records)

    async def on_call_tool(
        self, context: MiddlewareContext[Any], call_next: CallNext[Any, ToolResult]
    ) -> ToolResult:
        clock = Clock()
        try:
            result = await call_next(context)
        except Exception as exc:
            self._record(context, clock, Checked(code=type(exc).__name__))
            raise
        if isinstance(result, InputRequiredToolResult):
            return result
        schema = await _output_schema(context)
        checked = self._checker.check(_as_sent(result), schema=schema)
        self._record(context, clock, checked)
        return _refusal(checked) if checked.code else result

    def _record(self, context: MiddlewareContext[Any], clock: Clock, checked: Checked) -> None:
        asked = context.message
        arguments = msgspec.json.encode(asked.arguments or {}, enc_hook=repr)
        self._checker.record(clock.answered(asked.name, "mcp", checked, arguments))


def _as_sent(result: ToolResult) -> dict[str, Any]:
    sent: dict[str, Any] = {
        "content": [plain(block) for block in result.content],
        "isError": result.is_error,
    }
    if result.structured_content is not None:
        sent["structuredContent"] = result.structured_content
    if result.meta is not None:
        sent["_meta"] = result.meta
    return sent


async def _output_schema(context: MiddlewareContext[Any]) -> dict[str, Any] | None:
    if context.fastmcp_context is None:
        return None
    tool = await context.fastmcp_context.fastmcp.get_tool(context.message.name)
    return None if tool is None else tool.output_schema


def _refusal(checked: Checked) -> ToolResult:
    return ToolResult(TEXTS[checked.code], meta=mcp_refusal(checked)["_meta"], is_error=True)
