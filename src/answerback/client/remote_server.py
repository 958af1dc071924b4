"""RemoteServer: the tools, resources and prompts of one connected server."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from functools import partial
from typing import Any, TypeVar

import msgspec

from ..errors import MalformedReply, ToolError
from ..mcp.jsonrpc import HEADER_MISMATCH, METHOD_NOT_FOUND, RpcError
from ..registry import Change
from ..reply import Reply
from .eras import ServerFacts
from .exchange import RequestOptions
from .faults import NoAnswer, failed_reply, raised_error
from .link import LinkPlan, ServerLink
from .list_cache import ListCache, seconds_of
from .listed import (
    Prompt,
    RemotePrompt,
    RemoteResource,
    RemoteTemplate,
    RemoteTool,
    read_entries,
)
from .mirrored_headers import BadAnnotation, param_headers
from .results import INVALID_RESPONSE, KnownTool, resource_reply, tool_reply
from .subscribing import Subscribed
from .user_handlers import OnProgress

T = TypeVar("T", bound=msgspec.Struct)

_MAX_PAGES = 1000
_METHODS = {
    "tools": ("tools/list", "tools"),
    "resources": ("resources/list", "resources"),
    "templates": ("resources/templates/list", "resourceTemplates"),
    "prompts": ("prompts/list", "prompts"),
}


class RemoteServer:
    """A server that this process is connected to; `connect` makes it.

    `call` and `read` return a reply in every case. The lists, `prompt` and `complete` raise
    ToolError if they fail.
    """

    def __init__(self, plan: LinkPlan, *, strict: bool = False) -> None:
        self._lists = _Lists(plan)
        self._options = RequestOptions(plan.timeout)
        self._strict = strict

    @property
    def info(self) -> ServerFacts:
        """The version of MCP, the server's name, its capabilities and its instructions."""
        return self._lists.link.facts

    async def tools(self) -> list[RemoteTool]:
        return [known.tool for known in (await self._lists.tools(self._options)).values()]

    async def resources(self) -> list[RemoteResource]:
        return await self._lists.entries("resources", RemoteResource, self._options)

    async def templates(self) -> list[RemoteTemplate]:
        return await self._lists.entries("templates", RemoteTemplate, self._options)

    async def prompts(self) -> list[RemotePrompt]:
        return await self._lists.entries("prompts", RemotePrompt, self._options)

    async def call(
        self, name: str, arguments: Mapping[str, Any] | None = None, /, **named: Any
    ) -> Reply[Any]:
        """Call a tool: `call("add", x=1)`, or `call("add", {"x": 1})` for names of any form.

        A connection that fails and a time-out are failed replies; `error.details` then has
        `may_have_run`.
        """
        given = {**(arguments or {}), **named}
        try:
            result = await self._lists.call(name, given, self._options)
        except (NoAnswer, RpcError) as error:
            return failed_reply(error)
        reply = tool_reply(result)
        if "structuredContent" in result or name in self._lists.known:
            known = await self._lists.known_tool(name, self._options)
            if known is not None:
                return known.checked(reply, result, strict=self._strict)
        return reply

    async def read(self, uri: str) -> Reply[Any]:
        """Read a resource; its contents are embedded blocks of the reply."""
        try:
            result = await self._lists.link.request("resources/read", {"uri": uri}, self._options)
        except (NoAnswer, RpcError) as error:
            return failed_reply(error)
        return resource_reply(result)

    async def prompt(
        self, name: str, arguments: Mapping[str, str] | None = None, /, **named: str
    ) -> Prompt:
        """The messages of a prompt; raises ToolError."""
        params: dict[str, Any] = {"name": name}
        if given := {**(arguments or {}), **named}:
            params["arguments"] = given
        try:
            return Prompt.read(await self._lists.link.request("prompts/get", params, self._options))
        except (NoAnswer, RpcError) as error:
            raise raised_error(error) from None
        except MalformedReply as exc:
            raise ToolError(f"the prompt cannot be read: {exc}", INVALID_RESPONSE) from None

    async def complete(
        self, of: str, argument: str, value: str, context: Mapping[str, str] | None = None
    ) -> list[str]:
        """The completions of an argument; *of* is a prompt's name or a template's URI."""
        is_uri = "://" in of
        ref = {"type": "ref/resource", "uri": of} if is_uri else {"type": "ref/prompt", "name": of}
        params: dict[str, Any] = {"ref": ref, "argument": {"name": argument, "value": value}}
        if context:
            params["context"] = {"arguments": dict(context)}
        try:
            result = await self._lists.link.request("completion/complete", params, self._options)
        except (NoAnswer, RpcError) as error:
            raise raised_error(error) from None
        found = result.get("completion")
        values = found.get("values") if isinstance(found, dict) else None
        return [str(each) for each in values or ()]

    async def subscribe(self, uri: str) -> None:
        """Tell `on_change` when a resource changes; raises ToolError."""
        await self._lists.subscribed.change(uri, wanted=True)

    async def unsubscribe(self, uri: str) -> None:
        await self._lists.subscribed.change(uri, wanted=False)

    def options(
        self, *, timeout: float | None = None, progress: OnProgress | None = None
    ) -> RemoteServer:
        """The same server with other options: `server.options(timeout=2).call("add", x=1)`."""
        changed = copy.copy(self)
        before = self._options
        changed._options = RequestOptions(
            before.timeout if timeout is None else timeout, progress or before.progress
        )
        return changed

    async def open(self) -> None:
        """Open the connection; raises ConnectError. `connect` does it."""
        await self._lists.link.open()

    async def close(self) -> None:
        await self._lists.link.close()


class _Lists:
    """The server's lists, and the tools that are known from them."""

    def __init__(self, plan: LinkPlan) -> None:
        self.link = ServerLink(plan, self._changed)
        self.subscribed = Subscribed(self.link, plan)
        self.known: dict[str, KnownTool] = {}
        self._cache = ListCache()
        self._on_change = plan.handlers.on_change

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
        self._cache.keep(kind, await self.link.identity(), entries, seconds)
        return list(entries)

    async def tools(self, options: RequestOptions) -> dict[str, KnownTool]:
        """The tools by name; those that a client must not call are left out."""
        entries = await self.entries("tools", RemoteTool, options)
        if [known.tool for known in self.known.values()] != entries:
            self.known = dict(_known(entries))
        return self.known

    async def known_tool(self, name: str, options: RequestOptions) -> KnownTool | None:
        """The tool, from the last list if it is there; None if the list cannot be read."""
        if name not in self.known:
            try:
                await self.tools(options)
            except ToolError:
                return None
        return self.known.get(name)

    async def call(
        self, name: str, arguments: dict[str, Any], options: RequestOptions
    ) -> dict[str, Any]:
        """The result of `tools/call`; raises RpcError or NoAnswer."""
        params = {"name": name, "arguments": arguments}
        may_repeat = partial(self.is_safe_to_repeat, name, options)
        try:
            return await self.link.request(
                "tools/call", params, self._with_headers(name, arguments, options), may_repeat
            )
        except RpcError as error:
            if error.code != HEADER_MISMATCH or name in self.known:
                raise
        # The tool's entry in the list names arguments that are repeated in headers.
        await self.known_tool(name, options)
        return await self.link.request(
            "tools/call", params, self._with_headers(name, arguments, options), may_repeat
        )

    async def is_safe_to_repeat(self, name: str, options: RequestOptions) -> bool:
        known = await self.known_tool(name, options)
        return known is not None and known.tool.is_safe_to_repeat

    def _with_headers(
        self, name: str, arguments: dict[str, Any], options: RequestOptions
    ) -> RequestOptions:
        known = self.known.get(name)
        if known is None or not known.paths or not self.link.facts.version.stateless:
            return options
        headers = param_headers(known.paths, arguments)
        return msgspec.structs.replace(options, headers=headers)

    async def _fetch(self, kind: str, options: RequestOptions) -> tuple[list[Any], float]:
        method, member = _METHODS[kind]
        found: list[Any] = []
        seconds: list[float] = []
        params: dict[str, Any] = {}
        for _ in range(_MAX_PAGES):
            result = await self.link.request(method, params, RequestOptions(options.timeout))
            page = result.get(member)
            found += page if isinstance(page, list) else []
            seconds.append(seconds_of(result))
            cursor = result.get("nextCursor")
            if cursor is None or params.get("cursor") == cursor:
                break
            params = {"cursor": cursor}
        facts = self.link.facts
        if facts.version.stateless:
            return found, min(seconds)
        family = "resources" if kind == "templates" else kind
        is_told = self.link.hears_changes and facts.offers(family, "listChanged")
        return found, float("inf") if is_told else 0.0

    def _changed(self, change: Change) -> None:
        if change.kind != "resource":
            self._cache.drop(change.kind)
        if self._on_change is not None:
            self._on_change(change)


def _known(entries: list[RemoteTool]) -> list[tuple[str, KnownTool]]:
    found = []
    for tool in entries:
        try:
            found.append((tool.name, KnownTool(tool)))
        except BadAnnotation as exc:
            import logging

            logger = logging.getLogger("answerback.client")
            logger.warning("the tool %r is left out: %s", tool.name, exc)
    return found
