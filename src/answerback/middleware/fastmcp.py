"""Middleware for FastMCP 4 servers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
from fastmcp.tools.base import InputRequiredToolResult, ToolResult

from .checker import REFUSAL_TEXTS, CallTimer, Checker, CheckResult, as_dict, mcp_refusal

if TYPE_CHECKING:
    from ..records import Records


class ValidReplies(Middleware):
    """Middleware that refuses invalid tool results: `server.add_middleware(ValidReplies())`.

    *records* receives an event for each reply.
    """

    def __init__(self, *, records: Records | None = None) -> None:
        super().__init__()
        self._checker = Checker("mcp", records)

    async def on_call_tool(
        self, context: MiddlewareContext[Any], call_next: CallNext[Any, ToolResult]
    ) -> ToolResult:
        timer = CallTimer()
        try:
            reply = await call_next(context)
        except Exception as exc:
            self._record(context, timer, CheckResult(code=type(exc).__name__))
            raise
        if isinstance(reply, InputRequiredToolResult):
            return reply
        schema = None
        if context.fastmcp_context is not None:
            tool = await context.fastmcp_context.fastmcp.get_tool(context.message.name)
            schema = None if tool is None else tool.output_schema
        result = self._checker.check(_as_sent(reply), schema=schema)
        self._record(context, timer, result)
        if not result.code:
            return reply
        text, meta = REFUSAL_TEXTS[result.code], mcp_refusal(result)["_meta"]
        return ToolResult(text, meta=meta, is_error=True)

    def _record(
        self, context: MiddlewareContext[Any], timer: CallTimer, result: CheckResult
    ) -> None:
        params = context.message
        arguments = msgspec.json.encode(params.arguments or {}, enc_hook=repr)
        self._checker.record(timer.record_of(params.name, "mcp", result, arguments))


def _as_sent(reply: ToolResult) -> dict[str, Any]:
    sent: dict[str, Any] = {
        "content": [as_dict(block) for block in reply.content],
        "isError": reply.is_error,
    }
    if reply.structured_content is not None:
        sent["structuredContent"] = reply.structured_content
    if reply.meta is not None:
        sent["_meta"] = reply.meta
    return sent
