"""The lists of a server: they are kept as long as the server allows it, and name its tools."""

from __future__ import annotations

import asyncio
import logging
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from ..errors import ToolError
from ..protocol.jsonrpc import HEADER_MISMATCH, METHOD_NOT_FOUND, RpcError
from ..registry.declarations import Change
from .exchange import Exchange, RequestOptions
from .faults import NoAnswer, raised_error
from .link import Safety, ServerLink
from .listed import RemoteTool, read_entries
from .mirrored_headers import param_headers
from .opening import LinkPlan
from .results import KnownTool, known_tools
from .subscribing import Subscribed

if TYPE_CHECKING:
    from ..core.json_value import JsonObject


T = TypeVar("T", bound=msgspec.Struct)

_MAX_PAGES = 1000
_MAX_ENTRIES = 100_000
"""How many entries of a list are read; a longer list is cut."""
_SCHEMA_SECONDS = 5.0
"""Seconds to wait for the list of tools when only a tool's output schema is wanted."""
_METHODS = {
    "tools": ("tools/list", "tools"),
    "resources": ("resources/list", "resources"),
    "templates": ("resources/templates/list", "resourceTemplates"),
    "prompts": ("prompts/list", "prompts"),
}
MAX_SECONDS = 24 * 3600.0


class _Entry(msgspec.Struct):
    identity: str
    until: float
    value: object


class ListCache:
    """The lists of one connection, by kind. Other credentials do not see them."""

    def __init__(self) -> None:
        self._entries: dict[str, _Entry] = {}

    def get(self, kind: str, identity: str) -> Any:
        """The list, or None if it is not there, too old, or of other credentials."""
        entry = self._entries.get(kind)
        if entry is None or entry.identity != identity or monotonic() >= entry.until:
            return None
        return entry.value

    def keep(self, kind: str, identity: str, value: object, seconds: float) -> None:
        if seconds > 0:
            until = monotonic() + min(seconds, MAX_SECONDS)
            self._entries[kind] = _Entry(identity, until, value)

    def drop(self, kind: str) -> None:
        """Forget a list that has changed."""
        self._entries.pop(kind, None)
        if kind == "resources":
            self._entries.pop("templates", None)

    def clear(self) -> None:
        self._entries.clear()


def seconds_of(result: JsonObject) -> float:
    """How long the server lets a stateless result be kept."""
    found = result.get("ttlMs")
    if isinstance(found, bool) or not isinstance(found, int | float):
        return 0.0
    return max(0.0, found / 1000)


class ServerLists:
    """The server's lists, and the tools that are known from them."""

    def __init__(self, plan: LinkPlan) -> None:
        self.link = ServerLink(plan, self._changed)
        self.subscribed = Subscribed(self.link, plan)
        self.known: dict[str, KnownTool] = {}
        self._unlisted: set[str] = set()
        """Tools that were called and are not in the list."""
        self.as_tasks: set[str] = set()
        """Tools that the server runs only as tasks."""
        self._cache = ListCache()
        self._on_change = plan.handlers.on_change
        self.link.after_open = self._opened

    async def entries(self, kind: str, type: type[T], options: RequestOptions) -> list[T]:
        """The whole list, from the cache if the server allows it; raises ToolError."""
        identity = await self.link.identity()
        cached: list[T] | None = self._cache.get(kind, identity)
        if cached is not None:
            return list(cached)
        try:
            found, seconds = await self._fetch(kind, options)
        except RpcError as error:
            if error.code == METHOD_NOT_FOUND:
                return []
            raise raised_error(error) from None
        except NoAnswer as error:
            raise raised_error(error) from None
        entries = read_entries(found, type)
        if await self.link.identity() == identity:
            # A login between two pages may have changed what the list shows.
            self._cache.keep(kind, identity, entries, seconds)
        return list(entries)

    async def tools(self, options: RequestOptions) -> dict[str, KnownTool]:
        """The tools by name; those that a client must not call are left out."""
        entries = await self.entries("tools", RemoteTool, options)
        if [known.tool for known in self.known.values()] != entries:
            self.known = known_tools(entries)
            self._unlisted.clear()
        return self.known

    async def known_tool(self, name: str, options: RequestOptions) -> KnownTool | None:
        """The tool, from the last list if it is there; None if the list cannot be read."""
        if name not in self.known:
            try:
                await self.tools(options)
            except ToolError:
                return None
        return self.known.get(name)

    async def schema_of(self, name: str, timeout: float | None) -> KnownTool | None:
        """The tool with its output schema, to read a result that is there already.

        The list is asked for once and not waited for long; without it the result is read alone.
        """
        if name in self._unlisted:
            return None
        seconds = _SCHEMA_SECONDS if timeout is None else min(timeout, _SCHEMA_SECONDS)
        found = await self.known_tool(name, RequestOptions(seconds))
        if found is None:
            self._unlisted.add(name)
        return found

    async def call(
        self,
        name: str,
        arguments: JsonObject,
        options: RequestOptions,
        *,
        as_task: bool = False,
    ) -> JsonObject:
        """The result of `tools/call`; raises RpcError or NoAnswer."""
        params: JsonObject = {"name": name, "arguments": arguments}
        if as_task:
            params["task"] = {}
        safety = _ToolSafety(self, name, options)
        try:
            return await self.link.request(
                "tools/call", params, self._with_headers(name, arguments, options), safety
            )
        except RpcError as error:
            if error.code != HEADER_MISMATCH or name in self.known:
                raise
        # The tool's entry in the list names arguments that are repeated in headers.
        await self.known_tool(name, options)
        return await self.link.request(
            "tools/call", params, self._with_headers(name, arguments, options), safety
        )

    async def is_safe_to_repeat(self, name: str, options: RequestOptions) -> bool:
        known = self.known.get(name)
        if known is None and name not in self._unlisted:
            known = await self.known_tool(name, options)
        return known is not None and known.tool.is_safe_to_repeat

    def _with_headers(
        self, name: str, arguments: JsonObject, options: RequestOptions
    ) -> RequestOptions:
        known = self.known.get(name)
        if known is None or not known.paths or not self.link.facts.version.stateless:
            return options
        headers = param_headers(known.paths, arguments)
        return msgspec.structs.replace(options, headers=headers)

    async def _fetch(self, kind: str, options: RequestOptions) -> tuple[list[Any], float]:
        found, seconds = await self._pages(kind, options.timeout)
        facts = self.link.facts
        if facts.version.stateless:
            return found, seconds
        family = "resources" if kind == "templates" else kind
        is_current = self.link.receives_changes and facts.offers(family, "listChanged")
        return found, float("inf") if is_current else 0.0

    async def _pages(self, kind: str, timeout: float | None) -> tuple[list[Any], float]:
        """All pages of a list within the time-out, and how long they may be kept."""
        method, member = _METHODS[kind]
        loop = asyncio.get_running_loop()
        until = None if timeout is None else loop.time() + timeout
        found: list[Any] = []
        seconds: list[float] = []
        params: JsonObject = {}
        cursors: set[str] = set()
        while True:
            left = None if until is None else max(0.0, until - loop.time())
            result = await self.link.request(method, params, RequestOptions(left))
            page = result.get(member)
            found += page if isinstance(page, list) else []
            seconds.append(seconds_of(result))
            cursor = result.get("nextCursor")
            is_endless = str(cursor) in cursors or len(cursors) >= _MAX_PAGES
            if is_endless or len(found) > _MAX_ENTRIES:
                found = found[:_MAX_ENTRIES]
                text = "%s has no end, or too many entries; the first %d entries are used"
                logging.getLogger("answerback.client").warning(text, method, len(found))
                cursor = None
            if cursor is None:
                return found, min(seconds)
            cursors.add(str(cursor))
            params = {"cursor": cursor}

    async def _opened(self, exchange: Exchange) -> None:
        # The lists may have changed while nobody could tell it.
        self._cache.clear()
        await self.subscribed.renew(exchange)

    def _changed(self, change: Change) -> None:
        if change.kind != "resource":
            self._cache.drop(change.kind)
        if change.kind == "tools":
            self._unlisted.clear()
        if self._on_change is not None:
            self._on_change(change)


class _ToolSafety(Safety):
    """A tool may be called a second time if the server says that this does no harm."""

    def __init__(self, lists: ServerLists, name: str, options: RequestOptions) -> None:
        self._lists = lists
        self._name = name
        self._options = options

    @property
    def known(self) -> bool | None:  # type: ignore[override] # it is asked for, not set
        found = self._lists.known.get(self._name)
        return None if found is None else found.tool.is_safe_to_repeat

    async def ask(self) -> bool:
        return await self._lists.is_safe_to_repeat(self._name, self._options)
