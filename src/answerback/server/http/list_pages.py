"""Long lists over REST: `?limit=50` returns the first items, with a link to the next page.

The full list is stored with the call's arguments. Below a tool's path, `/pages/{cursor}` returns
the rest of a list, for callers who pass the tool's gates.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

import msgspec

from ...calls.call import Call, reply_or_refusal
from ...calls.fitted_reply import owner_of_call
from ...calls.runtime import ADMITTED
from ...core.list_page import Page, StoredPart
from ...core.reply import Error, Reply
from ...dialects import HttpReply
from ...dialects.common import encoded_data
from ...errors import INVALID_ARGUMENTS, ToolError
from ...fitting.cut_lists import DATA, ITEMS, StoredList, first_part, read_list
from ...fitting.reply_store import PREFIX
from ...tools.paging import cursor_expired, cursors_for, open_cursor
from ...types.problems import InvalidOutput
from .routes import refuse_method

if TYPE_CHECKING:
    from ...calls.runtime import Runtime
    from .routes import RestRequest, Routes

PAGES = "/pages/"
_LIMIT = "limit"
_GET = "GET, HEAD"
_DIGITS = 10
_members = msgspec.json.Decoder(dict[str, msgspec.Raw])


class ListPages:
    """Answers requests for the first page of a list and for the pages after it."""

    def __init__(self, runtime: Runtime, writer: Routes) -> None:
        self._runtime = runtime
        self._writer = writer

    def asked_limit(self, request: RestRequest) -> int | None:
        """Return the limit in a request's query; None if there is none. Raises ToolError."""
        query = request.query.decode("latin-1")
        given = parse_qs(query, keep_blank_values=True).get(_LIMIT)
        if given is None:
            return None
        text = given[-1]
        if text.isascii() and text.isdigit() and 0 < len(text) < _DIGITS and int(text) > 0:
            return int(text)
        raise ToolError(f"limit={text[:20]} should be a positive integer", code=INVALID_ARGUMENTS)

    async def write_first(
        self, reply: Reply[Any], call: Call, limit: int, request: RestRequest
    ) -> HttpReply:
        """Return the response with at most *limit* items of a tool's list, and a link to the rest.

        A reply that is not a list, or a list that cannot be stored, is sent in full.
        """
        data = reply.data
        items = data.items if isinstance(data, Page) else data
        if not isinstance(items, list) or len(items) <= limit or call.tool is None:
            return self._writer.write_call(reply, call, request)
        part, sizes = call.part, call.item_sizes
        if part is None or part.path == ITEMS:  # MCP stores replies without the arguments.
            part, sizes = await self._keep(reply, call)
        if part is None:
            return self._writer.write_call(reply, call, request)
        cursor = cursors_for(call)(part, limit, sizes)
        first: Any = items[:limit]
        if isinstance(data, Page):
            first = Page(first, total=data.total, next=cursor)
        try:
            encoded, first = call.tool.output.encode(first)
        except InvalidOutput:  # The type requires more items.
            return self._writer.write_call(reply, call, request)
        reply = msgspec.structs.replace(reply, encoded=encoded, data=first)
        written = self._writer.write_call(reply, call, request)
        return _linked(written, cursor, limit, request)

    async def _keep(self, reply: Reply[Any], call: Call) -> tuple[StoredPart | None, Sequence[int]]:
        """Store a full reply; return its list (None on failure) and each item's size in bytes."""
        encoded = encoded_data(reply)
        body = b'{"data":%b,"arguments":%b}' % (encoded, call.arguments)
        uri = await self._runtime.stored_replies.keep(body, owner_of_call(call))
        if uri is None:
            return None, ()
        id = uri.removeprefix(PREFIX)
        if isinstance(reply.data, Page):
            items = bytes(_members.decode(encoded)[ITEMS])
            return first_part(id, f"{DATA}.{ITEMS}", body, items)
        return first_part(id, DATA, body, encoded)

    async def answer(self, name: str, request: RestRequest) -> HttpReply:
        """Answer a request for the rest of a list; *name* is the path after the prefix."""
        refused = refuse_method(request.method, _GET)
        if refused is not None:
            return self._writer.refuse(refused, request, allow=_GET)
        tool, _, cursor = name.partition(PAGES)
        call = Call(tool, wire="rest", caller=request.caller, stage="admit")
        call.request = request
        try:
            limit = self.asked_limit(request)
            call.part = part = open_cursor(cursor, call).part
            # MCP stores replies without the arguments.
            if part is None or part.path == ITEMS:
                raise cursor_expired()
            kept = await read_list(self._runtime.stored_replies, part, call.owner, limit)
            if kept is None:
                raise cursor_expired()
            call.arguments = kept.arguments
            outcome = await self._runtime.admit(call)
            if outcome is ADMITTED:
                return await self._next(kept, limit, call, request)
        except ToolError as exc:
            outcome = Reply(error=Error.of(exc))
        return self._writer.write_call(reply_or_refusal(outcome), call, request)

    async def _next(
        self, kept: StoredList, limit: int | None, call: Call, request: RestRequest
    ) -> HttpReply:
        """Return the next items of a stored list, for a call that passed the tool's gates."""
        assert call.part is not None
        assert call.tool is not None
        found = kept.data
        items = found.items if isinstance(found, Page) else found
        cursor = None
        if limit is not None and len(items) > limit:
            sizes = [memoryview(item).nbytes for item in items[:limit]]
            cursor = cursors_for(call)(call.part, limit, sizes)
        data: Any = items[:limit]
        if isinstance(found, Page):
            data = Page(data, total=found.total, next=cursor or found.next)
        encoded, data = call.tool.output.encode(data)
        call.shape = call.tool.shape
        reply = Reply(data=data, encoded=encoded)
        await self._runtime.record(call, reply)
        written = self._writer.write_call(reply, call, request)
        return _linked(written, cursor, limit, request)


def _linked(
    written: HttpReply, cursor: str | None, limit: int | None, request: RestRequest
) -> HttpReply:
    """Return the response with a link to the rest of the list, if any is left."""
    if cursor is None:
        return written
    path = request.root + request.path.partition(PAGES)[0] + PAGES + cursor
    link = f'<{path}?{_LIMIT}={limit}>; rel="next"'
    return msgspec.structs.replace(written, headers=(*written.headers, ("Link", link)))
