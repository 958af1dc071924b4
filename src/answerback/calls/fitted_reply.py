"""A call's reply within its tool's budget, with the whole kept for the caller."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

import msgspec

from ..core.authentication import owner_of
from ..core.list_page import KeptPart
from ..core.reply import Reply
from ..errors import ToolError
from ..fitting.cut_pages import Paging
from ..fitting.fit import fit
from ..fitting.whole_store import Owner
from ..tools.context import Context
from ..tools.paging import open_cursor, part_cursor
from .call import Call

if TYPE_CHECKING:
    from .runtime import Runtime


class _Cursor(msgspec.Struct):
    cursor: str | None = None


async def fitted_reply(reply: Reply[Any], call: Call) -> Reply[Any]:
    """Return the reply that MCP sends for a tool's call."""
    tool = call.tool
    assert tool is not None
    runtime = cast("Runtime", call.runtime)
    owner = owner_of_call(call)
    paging = None
    if tool.is_paged:
        part = call.part or _part(call)
        paging = Paging(part, lambda rest: part_cursor(rest, call), call.kept_sizes)
    return await fit(reply, tool, call.shape, lambda body: runtime.wholes.keep(body, owner), paging)


def _part(call: Call) -> KeptPart | None:
    """Return the kept part that a stored reply continues, which its cursor names."""
    cursor = msgspec.json.decode(call.arguments, type=_Cursor).cursor
    # The stored reply was a success; the key that signed its cursor may be another by now.
    with suppress(ToolError):
        return None if cursor is None else open_cursor(cursor, call).part
    return None


def owner_of_call(call: Call) -> Owner:
    """Return for whom the whole reply of *call* is kept."""
    return Owner(
        user=owner_of(Context(call).user),
        session=call.peer.session_key,
        address=call.caller,
        tool=call.name,
    )
