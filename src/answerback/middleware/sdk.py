"""The official SDK (`mcp` 2): for the results of its servers' tools."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import msgspec

from ..versions import VERSIONS
from .checker import Checked, Checker, Clock, mcp_refusal

if TYPE_CHECKING:
    from ..records import Records


class ValidReplies:
    """Lets no invalid result out: `server.middleware.append(ValidReplies())`."""

    def __init__(self, *, records: Records | None = None) -> None:
        self._checker = Checker("mcp", records)

    async def __call__(self, ctx: Any, call_next: Callable[[Any], Awaitable[Any]]) -> Any:
        if ctx.method != "tools/call":
            return await call_next(ctx)
        clock = Clock()
        try:
            result = plain(await call_next(ctx))
        except Exception as exc:
            code = str(getattr(getattr(exc, "error", None), "code", type(exc).__name__))
            self._record(ctx, clock, Checked(code=code))
            raise
        if "content" not in result:  # A question back is no reply yet.
            return result
        checked = self._checker.check(result, version=VERSIONS.get(ctx.protocol_version))
        self._record(ctx, clock, checked)
        if not checked.code:
            return result
        # Of what was refused nothing goes out but what the protocol asks of every result.
        kept = {name: result[name] for name in ("resultType",) if name in result}
        return mcp_refusal(checked) | kept

    def _record(self, ctx: Any, clock: Clock, checked: Checked) -> None:
        asked = ctx.params or {}
        arguments = msgspec.json.encode(asked.get("arguments") or {}, enc_hook=repr)
        item = clock.answered(str(asked.get("name", "")), "mcp", checked, arguments)
        item.version = ctx.protocol_version or ""
        item.request = "" if ctx.request_id is None else str(ctx.request_id)
        self._checker.record(item)


def plain(result: Any) -> dict[str, Any]:
    """A result as it is sent; a model of pydantic's becomes what it stands for."""
    if isinstance(result, dict):
        return result
    sent: dict[str, Any] = result.model_dump(by_alias=True, mode="json", exclude_none=True)
    return sent
