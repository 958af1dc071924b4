"""Fits a call's reply into its tool's budget; the full reply is stored for the caller."""

from __future__ import annotations

from collections.abc import Awaitable
from contextlib import suppress
from typing import Any

import msgspec

from ..core.authentication import owner_of
from ..core.content import Embedded
from ..core.reply import Reply
from ..errors import NotFound, ToolError
from ..fitting.fit import Paging, fit
from ..fitting.ranges import part_of
from ..fitting.reply_store import PREFIX, Owner, range_uri
from ..registry.declarations import Registry, adopt, is_hidden
from ..tools.current_call import CURRENT
from ..tools.paging import cursors_for, open_cursor
from ..tools.resource import Resource
from .call import Call
from .context import Context, current_runtime


class StoredReplyResource(Resource):
    """The resource that serves the stored full replies to an app's callers."""

    is_listed = False

    def arguments_for(self, uri: str) -> bytes | None:
        # The query stays encoded, because `part_of` decodes it.
        if not uri.startswith(PREFIX):
            return None
        id, _, query = uri.removeprefix(PREFIX).partition("?")
        return msgspec.json.encode({"id": id, "query": query})


def stored_reply_resource(registry: Registry) -> Resource:
    """Return the resource for the app's stored replies, behind the app's gates."""
    if registry.stored_reply_resource is None:
        uri = PREFIX + "{id}{?query}"
        resource = StoredReplyResource(uri, read_stored_reply, {}, registry.contract)
        adopt(registry, resource)
        registry.stored_reply_resource = resource
    return registry.stored_reply_resource


async def read_stored_reply(ctx: Context, id: str, query: str = "") -> Embedded:
    """Return a full reply, or a range of it."""
    runtime = current_runtime()
    assert runtime is not None
    part = part_of(query)
    stored = await runtime.stored_replies.find(id, owner_of(ctx.user))
    tool = None if stored is None else runtime.registry.tools.get(stored.tool)
    if stored is None or tool is None or is_hidden(tool, ctx.request):
        raise NotFound(
            f"Resource not found: {PREFIX}{id}",
            hint="full replies are stored for a limited time; call the tool again to get a new one",
        )
    if tool.gates is not None:
        # Only the gates that take just `ctx`: gates that take the tool's arguments were passed when
        # the tool was called.
        reading = CURRENT.get()
        assert isinstance(reading, Call)
        call = msgspec.structs.replace(reading, name=tool.name, arguments=b"{}", tool=tool)
        refused = await runtime.pass_gates(call)
        if refused is not None and (error := refused.error) is not None:
            raise ToolError(error.message, error.code, error.details, hint=error.hint)
    found = await runtime.stored_replies.read(stored, part)
    return Embedded(range_uri(PREFIX + id, part), text=found.text, mime=found.mime)


class _Cursor(msgspec.Struct):
    cursor: str | None = None


async def fitted_reply(reply: Reply[Any], call: Call) -> Reply[Any]:
    """Return the reply that MCP sends for a tool call."""
    tool, runtime = call.tool, call.runtime
    assert tool is not None
    assert runtime is not None

    def keep(body: bytes) -> Awaitable[str | None]:
        return runtime.stored_replies.keep(body, owner_of_call(call))

    def paging() -> Paging:
        part = call.part
        cursor = msgspec.json.decode(call.arguments, type=_Cursor).cursor
        if part is None and cursor is not None:
            # A task's reply was a success, but the key that signed its cursor may have changed.
            with suppress(ToolError):
                part = open_cursor(cursor, call).part
        return Paging(part, cursors_for(call), call.item_sizes)

    return await fit(reply, tool, call.shape, keep, paging if tool.is_paged else None)


def owner_of_call(call: Call) -> Owner:
    """Return the owner under whom the full reply to *call* is stored."""
    return Owner(
        user=call.owner,
        session=call.peer.session_key,
        address=call.caller,
        tool=call.name,
    )
