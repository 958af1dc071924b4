"""A call's reply within its tool's budget, with the whole kept for the caller."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from ..core.authentication import owner_of
from ..core.reply import Reply
from ..fitting.cut_pages import Paging
from ..fitting.fit import fit
from ..fitting.whole_store import Owner
from ..tools.context import Context
from .call import Call

if TYPE_CHECKING:
    from .runtime import Runtime


async def fitted_reply(reply: Reply[Any], call: Call) -> Reply[Any]:
    """Return the reply that MCP sends for a tool's call."""
    tool = call.tool
    assert tool is not None
    runtime = cast("Runtime", call.runtime)
    owner = owner_of_call(call)
    paging = None
    if tool.is_paged:
        from ..tools.paging import part_cursor

        paging = Paging(call.part, lambda part: part_cursor(part, call))
    return await fit(reply, tool, call.shape, lambda body: runtime.wholes.keep(body, owner), paging)


def owner_of_call(call: Call) -> Owner:
    """Return for whom the whole reply of *call* is kept."""
    return Owner(
        user=owner_of(Context(call).user),
        session=call.peer.session_key,
        address=call.caller,
        tool=call.name,
    )
