"""A call's reply within its tool's budget, with the whole kept for the caller."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import msgspec

from ..core.authentication import owner_of
from ..core.content import Embedded
from ..core.list_page import KeptPart
from ..core.reply import Reply
from ..errors import NotFound, ToolError
from ..fitting.cut_lists import Paging
from ..fitting.fit import fit
from ..fitting.ranges import part_of
from ..fitting.reply_store import PREFIX, Owner, range_uri
from ..registry.declarations import Registry, adopt, is_hidden
from ..tools.current_call import CURRENT
from ..tools.paging import open_cursor, part_cursor
from ..tools.resource import Resource
from .call import Call
from .context import Context, current_runtime


class WholeResource(Resource):
    """The resource of all whole replies that are kept for the callers of one app."""

    is_listed = False

    def arguments_for(self, uri: str) -> bytes | None:
        # The query stays encoded, because `part_of` decodes it.
        if not uri.startswith(PREFIX):
            return None
        id, _, query = uri.removeprefix(PREFIX).partition("?")
        return msgspec.json.encode({"id": id, "query": query})


def whole_resource(registry: Registry) -> Resource:
    """Return the resource of the app's whole replies, behind the app's gates."""
    if registry.whole_replies is None:
        uri = PREFIX + "{id}{?query}"
        resource = WholeResource(uri, read_whole, {}, registry.contract)
        adopt(registry, resource)
        registry.whole_replies = resource
    return registry.whole_replies


async def read_whole(ctx: Context, id: str, query: str = "") -> Embedded:
    """Return a whole reply, or a range of it."""
    runtime = current_runtime()
    assert runtime is not None
    part = part_of(query)
    whole = await runtime.wholes.find(id, owner_of(ctx.user))
    tool = None if whole is None else runtime.registry.tools.get(whole.tool)
    if whole is None or tool is None or is_hidden(tool, ctx.request):
        raise NotFound(
            f"Resource not found: {PREFIX}{id}",
            hint="a whole reply is kept for a limited time; call the tool again to get a new one",
        )
    if tool.gates is not None:
        # These are the gates that take only `ctx`: those that take the tool's arguments were
        # passed when it was called.
        reading = CURRENT.get()
        assert isinstance(reading, Call)
        call = msgspec.structs.replace(reading, name=tool.name, arguments=b"{}", tool=tool)
        refused = await runtime.pass_gates(call)
        if refused is not None and (error := refused.error) is not None:
            raise ToolError(error.message, error.code, error.details, hint=error.hint)
    found = await runtime.wholes.read(whole, part)
    return Embedded(range_uri(PREFIX + id, part), text=found.text, mime=found.mime)


class _Cursor(msgspec.Struct):
    cursor: str | None = None


async def fitted_reply(reply: Reply[Any], call: Call) -> Reply[Any]:
    """Return the reply that MCP sends for a tool's call."""
    tool, runtime = call.tool, call.runtime
    assert tool is not None
    assert runtime is not None
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
        user=call.owner,
        session=call.peer.session_key,
        address=call.caller,
        tool=call.name,
    )
