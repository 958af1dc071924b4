"""A server's lists, cached for as long as the server allows, and subscriptions to changes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from ..core.clocks import Deadline
from ..core.json_value import JsonObject, is_number
from ..core.limits import LARGE, MAX_BLOCKS, MAX_LIST_BYTES
from ..core.log import logger
from ..core.reply import Reply
from ..errors import ToolError
from ..protocol.jsonrpc import METHOD_NOT_FOUND, RpcError
from ..reading.foreign_errors import unlisted_tool
from .client_connection import ClientConnection, ClientRequest, read_in_thread
from .faults import TIMED_OUT, UNAVAILABLE, NoAnswer, raised_error
from .results import (
    KnownTool,
    RemotePrompt,
    RemoteResource,
    RemoteTemplate,
    RemoteTool,
    known_tools,
    read_entries,
)

if TYPE_CHECKING:
    from .client_session import ClientSession


R = TypeVar("R")
T = TypeVar("T", bound=msgspec.Struct)
_LOGGER = logger("answerback.client")

_MAX_PAGES = 1000
_SCHEMA_SECONDS = 5.0
"""Seconds to wait for the list of tools when only a tool's output schema is needed."""
_MAX_SECONDS = 24 * 3600.0


class _List(msgspec.Struct, frozen=True):
    family: str
    """The kind of change that invalidates this list; also the name of the server's capability."""
    method: str
    member: str


_LISTS: dict[type[msgspec.Struct], _List] = {
    RemoteTool: _List("tools", "tools/list", "tools"),
    RemoteResource: _List("resources", "resources/list", "resources"),
    RemoteTemplate: _List("resources", "resources/templates/list", "resourceTemplates"),
    RemotePrompt: _List("prompts", "prompts/list", "prompts"),
}


class _CachedList(msgspec.Struct):
    identity: str
    until: float
    """When the list expires, in monotonic time."""
    value: list[Any]


class ServerLists:
    """One session's lists, and the tools known from them."""

    def __init__(self, session: ClientSession) -> None:
        self.known: dict[str, KnownTool] = {}
        """The callable tools from the last list."""
        self._session = session
        self._unlisted: set[str] = set()
        """Tools that have been called but are not in the list."""
        self._cached: dict[type[msgspec.Struct], _CachedList] = {}

    async def entries(self, kind: type[T], deadline: Deadline) -> list[T]:
        """Return the complete list, from the cache if the server allows it; raises ToolError.

        If the server cannot be reached, the last list is returned.
        """
        identity = await self._identity()
        entry = self._cached.get(kind)
        # Different credentials may see different entries.
        if entry is not None and entry.identity == identity and monotonic() < entry.until:
            return list(entry.value)
        try:
            found, seconds = await self._fetch(_LISTS[kind], deadline)
        except RpcError as error:
            if error.code == METHOD_NOT_FOUND:
                return []
            raise raised_error(error) from None
        except NoAnswer as error:
            is_down = error.code in (UNAVAILABLE, TIMED_OUT)
            if entry is None or entry.identity != identity or not is_down:
                raise raised_error(error) from None
            text = "%s: using the last list of %s, because %s"
            _LOGGER.warning(text, self._session.label, _LISTS[kind].member, error)
            return list(entry.value)
        entries = await _read(deadline, lambda: read_entries(found, kind))
        # A login between two pages may have changed the list.
        if await self._identity() == identity:
            until = monotonic() + min(seconds, _MAX_SECONDS)
            self._cached[kind] = _CachedList(identity, until, entries)
        return list(entries)

    async def tools(self, deadline: Deadline) -> list[RemoteTool]:
        """Return the tools that a client may call; raises ToolError."""
        entries = await self.entries(RemoteTool, deadline)
        if [known.tool for known in self.known.values()] != entries:
            limits = self._session.limits
            self.known = await _read(deadline, lambda: known_tools(entries, limits))
            self._unlisted.clear()
        return [known.tool for known in self.known.values()]

    async def known_tool(self, name: str, deadline: Deadline) -> KnownTool | None:
        """Return the tool, from the last list if it is there; None if the list cannot be read."""
        if name not in self.known:
            try:
                await self.tools(deadline)
            except ToolError:
                return None
        return self.known.get(name)

    async def schema_of(self, name: str, deadline: Deadline) -> KnownTool | None:
        """Return the tool with its output schema, to read a result that has already arrived.

        The list is fetched once, with a short timeout; without it, the result is not checked.
        """
        if name in self._unlisted:
            return None
        found = await self.known_tool(name, deadline.sooner(_SCHEMA_SECONDS))
        if found is None:
            self._unlisted.add(name)
        return found

    def marked(self, name: str, reply: Reply[Any]) -> Reply[Any]:
        """Return the reply; if it failed and the tool is not in the list, the error says so."""
        if reply.error is None or not self.known or name in self.known:
            return reply
        return msgspec.structs.replace(reply, error=unlisted_tool(reply.error))

    async def is_safe_to_repeat(self, name: str, deadline: Deadline) -> bool:
        """Return whether the server says that a tool is safe to repeat."""
        known = self.known.get(name)
        if known is None and name not in self._unlisted:
            known = await self.known_tool(name, deadline)
        return known is not None and known.tool.is_safe_to_repeat

    def changed(self, family: str) -> None:
        """Mark lists as changed, so that they are fetched again when needed."""
        for kind, entry in self._cached.items():
            if _LISTS[kind].family == family:
                entry.until = 0.0
        if family == "tools":
            self._unlisted.clear()

    def all_changed(self) -> None:
        for family in {each.family for each in _LISTS.values()}:
            self.changed(family)

    async def _identity(self) -> str:
        """Return the next request's credentials, even while there is no connection."""
        connection, make = self._session.connection, self._session.make_transport
        if connection is not None:
            return await connection.transport.identity()
        return "" if make is None else await make().identity()

    async def _fetch(self, listed: _List, deadline: Deadline) -> tuple[list[Any], float]:
        """Fetch a list; return its entries and how many seconds they may be cached for."""
        found: list[Any] = []
        seconds: list[float] = []
        params: JsonObject = {}
        cursors: set[str] = set()
        most_bytes = deadline.received + MAX_LIST_BYTES
        while True:
            result = await self._session.request(ClientRequest(listed.method, params, deadline))
            page = result.get(listed.member)
            found += page if isinstance(page, list) else []
            # How long a stateless server lets the client cache a page.
            milliseconds = result.get("ttlMs")
            seconds.append(max(0.0, milliseconds / 1000) if is_number(milliseconds) else 0.0)
            cursor = result.get("nextCursor")
            is_endless = cursor is not None and (
                str(cursor) in cursors
                or len(cursors) >= _MAX_PAGES
                or deadline.received > most_bytes
            )
            if is_endless or len(found) > MAX_BLOCKS:
                found = found[:MAX_BLOCKS]
                text = "%s never ends or is too large; using the first %d entries"
                _LOGGER.warning(text, listed.method, len(found))
                cursor = None
            if cursor is None:
                break
            cursors.add(str(cursor))
            params = {"cursor": cursor}
        connection, facts = self._session.connection, self._session.info
        if facts.version.stateless:
            return found, min(seconds)
        receives = connection is not None and connection.transport.receives_changes
        is_current = receives and facts.offers(listed.family, "listChanged")
        return found, float("inf") if is_current else 0.0


async def _read(deadline: Deadline, work: Callable[[], R]) -> R:
    """Run *work*, in a thread if there is a lot to read; raises ToolError when the time is up."""
    if deadline.received <= LARGE:
        return work()
    try:
        return await read_in_thread(deadline, work)
    except NoAnswer as error:
        raise raised_error(error) from None


_AGAIN_SECONDS = 1.0
"""Seconds until a broken subscription is reopened."""


class ClientSubscriptions:
    """The user's subscriptions, which are renewed when a session is reopened."""

    def __init__(self, *, wants_lists: bool) -> None:
        self._uris: set[str] = set()
        self._wants_lists = wants_lists
        self._listening: asyncio.Task[None] | None = None

    def change(self, uri: str, *, wanted: bool) -> None:
        (self._uris.add if wanted else self._uris.discard)(uri)

    async def renew(self, connection: ClientConnection) -> None:
        """Resubscribe in a new session."""
        if connection.facts.version.stateless:
            self.listen(connection)
            return
        for uri in self._uris:
            asked = ClientRequest("resources/subscribe", {"uri": uri}, Deadline(None))
            await connection.request(asked)

    def listen(self, connection: ClientConnection) -> None:
        """Open a stateless server's stream of requested changes, replacing the previous one."""
        if self._listening is not None:
            self._listening.cancel()
            self._listening = None
        wanted: JsonObject = {}
        if self._wants_lists:
            wanted = {
                f"{kind}ListChanged": True
                for kind in ("tools", "prompts", "resources")
                if connection.facts.offers(kind, "listChanged")
            }
        if self._uris:
            wanted["resourceSubscriptions"] = sorted(self._uris)
        if wanted:
            self._listening = connection.spawn(_receive(connection, wanted))


async def _receive(connection: ClientConnection, wanted: JsonObject) -> None:
    """Keep the stream open; each change arrives on the connection as a notification."""
    while connection.lost is None:
        params = {"notifications": wanted}
        try:
            await connection.request(ClientRequest("subscriptions/listen", params, Deadline(None)))
        except RpcError:
            return  # The server does not support subscriptions.
        except NoAnswer:
            pass
        await asyncio.sleep(_AGAIN_SECONDS)
