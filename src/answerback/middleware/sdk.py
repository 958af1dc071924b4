"""Middleware for servers built on the official SDK (`mcp` 2)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import msgspec

from ..core.versions import VERSIONS
from .checker import CallTimer, Checker, CheckResult, as_dict, mcp_refusal

if TYPE_CHECKING:
    from ..records import Records


class ValidReplies:
    """Middleware that refuses invalid tool results: `server.middleware.append(ValidReplies())`.

    *records* receives an event for each reply.
    """

    def __init__(self, *, records: Records | None = None) -> None:
        self._checker = Checker("mcp", records)

    async def __call__(self, ctx: Any, call_next: Callable[[Any], Awaitable[Any]]) -> Any:
        if ctx.method != "tools/call":
            return await call_next(ctx)
        timer = CallTimer()
        try:
            reply = as_dict(await call_next(ctx))
        except Exception as exc:
            code = str(getattr(getattr(exc, "error", None), "code", type(exc).__name__))
            self._record(ctx, timer, CheckResult(code=code))
            raise
        if "content" not in reply:  # A question to the client (elicitation) is not a reply.
            return reply
        result = self._checker.check(reply, version=VERSIONS.get(ctx.protocol_version))
        self._record(ctx, timer, result)
        if not result.code:
            return reply
        # The protocol requires `resultType` in every result; nothing else from the reply is sent.
        refusal = mcp_refusal(result)
        if "resultType" in reply:
            refusal["resultType"] = reply["resultType"]
        return refusal

    def _record(self, ctx: Any, timer: CallTimer, result: CheckResult) -> None:
        params = ctx.params or {}
        arguments = msgspec.json.encode(params.get("arguments") or {}, enc_hook=repr)
        item = timer.record_of(str(params.get("name", "")), "mcp", result, arguments)
        item.version = ctx.protocol_version or ""
        item.request = "" if ctx.request_id is None else str(ctx.request_id)
        self._checker.record(item)
