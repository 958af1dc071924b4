"""ServerRequests: the requests to one server under its time-out, retries, breaker and limits."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

import msgspec

from ..errors import ToolError
from ..mcp.jsonrpc import RpcError
from ..reading import read
from ..reply import Reply
from .exchange import RequestOptions
from .faults import NoAnswer, failed_reply, raised_error
from .listed import RemoteTool
from .request_policy import ClientOptions, refused_reply, under_policy
from .results import resource_reply
from .server_lists import ServerLists

T = TypeVar("T", bound=msgspec.Struct)


class ServerRequests:
    """Sends requests as the options say. Several of them may share the connection."""

    def __init__(self, lists: ServerLists, options: ClientOptions, *, strict: bool) -> None:
        self.lists = lists
        self.options = options
        self.strict = strict
        self._plain = RequestOptions(options.timeout, options.progress)
        self._has_policy = options.has_policy

    async def tools(self) -> list[RemoteTool]:
        """The tools that may be called; raises ToolError."""
        found = await under_policy(
            self.options, lambda left: self.lists.tools(RequestOptions(left))
        )
        return [known.tool for known in found.values()]

    async def entries(self, kind: str, type: type[T]) -> list[T]:
        """A whole list; raises ToolError."""
        found: list[T] = await under_policy(
            self.options, lambda left: self.lists.entries(kind, type, RequestOptions(left))
        )
        return found

    async def result(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """The result of a request that changes nothing; raises ToolError."""

        async def once(left: float | None) -> dict[str, Any]:
            try:
                return await self.lists.link.request(method, params, RequestOptions(left))
            except (NoAnswer, RpcError) as error:
                raise raised_error(error) from None

        found: dict[str, Any] = await under_policy(self.options, once)
        return found

    async def read(self, uri: str) -> Reply[Any]:
        async def once(left: float | None) -> Reply[Any]:
            options = RequestOptions(left, self.options.progress)
            try:
                result = await self.lists.link.request("resources/read", {"uri": uri}, options)
            except (NoAnswer, RpcError) as error:
                return failed_reply(error)
            return resource_reply(result)

        try:
            reply: Reply[Any] = await under_policy(self.options, once)
        except ToolError as refusal:
            return refused_reply(refusal)
        return reply

    def call(self, name: str, given: dict[str, Any]) -> Coroutine[Any, Any, Reply[Any]]:
        """Call a tool; under a retry it is called again only if that is safe."""
        if self._has_policy:
            return self._call_under_policy(name, given)
        return self._call_once(name, given, self._plain)

    async def _call_under_policy(self, name: str, given: dict[str, Any]) -> Reply[Any]:
        options = self.options
        until, is_safe = self._until(), False
        if options.retry is not None:
            is_safe = await self.lists.is_safe_to_repeat(name, RequestOptions(options.timeout))

        async def once(left: float | None) -> Reply[Any]:
            nonlocal until
            if until is not None:
                # The list of tools was asked for within the time of the first attempt.
                left = max(0.0, min(until - asyncio.get_running_loop().time(), left or 0.0))
                until = None
            sent = RequestOptions(left, options.progress)
            return await self._call_once(name, given, sent)

        try:
            reply: Reply[Any] = await under_policy(options, once, may_repeat=is_safe)
        except ToolError as refusal:
            return refused_reply(refusal)
        return reply

    def _until(self) -> float | None:
        seconds = self.options.timeout
        return None if seconds is None else asyncio.get_running_loop().time() + seconds

    async def _call_once(
        self, name: str, given: dict[str, Any], options: RequestOptions
    ) -> Reply[Any]:
        try:
            result = await self.lists.call(name, given, options)
        except (NoAnswer, RpcError) as error:
            return failed_reply(error)
        known = self.lists.known.get(name)
        if known is None and "structuredContent" in result:
            known = await self.lists.schema_of(name, options.timeout)
        return read(result) if known is None else known.reply(result, strict=self.strict)
