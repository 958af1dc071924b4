"""ServerRequests: the requests to one server under its time-out, retries, breaker and limits."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from ..core.reply import Reply
from ..errors import ToolError
from ..protocol.jsonrpc import METHOD_NOT_FOUND, MISSING_CAPABILITY, RpcError
from ..reading import read
from .exchange import RequestOptions
from .faults import NoAnswer, failed_reply, raised_error
from .listed import RemoteTool
from .request_policy import ClientOptions, refused_reply, under_policy
from .results import resource_reply
from .server_lists import ServerLists

if TYPE_CHECKING:
    from ..core.json_value import JsonObject


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
        return await under_policy(
            self.options, lambda left: self.lists.entries(kind, type, RequestOptions(left))
        )

    async def result(self, method: str, params: Mapping[str, Any]) -> JsonObject:
        """The result of a request that changes nothing; raises ToolError."""

        async def once(left: float | None) -> JsonObject:
            try:
                return await self.lists.link.request(method, params, RequestOptions(left))
            except (NoAnswer, RpcError) as error:
                raise raised_error(error) from None

        found: JsonObject = await under_policy(self.options, once)
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

    def call(self, name: str, given: JsonObject) -> Coroutine[Any, Any, Reply[Any]]:
        """Call a tool; under a retry it is called again only if that is safe."""
        if self._has_policy:
            return self._call_under_policy(name, given)
        return self._call_once(name, given, self._plain)

    async def _call_under_policy(self, name: str, given: JsonObject) -> Reply[Any]:
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

    async def _result_of_call(
        self, name: str, given: JsonObject, options: RequestOptions
    ) -> JsonObject:
        """The result; a tool that runs only as a task is called again as one."""
        lists = self.lists
        loop = asyncio.get_running_loop()
        began = loop.time()
        result = None
        if name not in lists.as_tasks:
            try:
                result = await lists.call(name, given, options)
            except RpcError as error:
                if error.code not in (MISSING_CAPABILITY, METHOD_NOT_FOUND):
                    raise
                from .remote_tasks import needs_task

                if not needs_task(error, lists.link.facts):
                    raise
                lists.as_tasks.add(name)
        if result is None:
            from .remote_tasks import create_task

            creation = lists.call(name, given, options, as_task=True)
            result = await create_task(lists.link, creation)
        if "task" not in result and result.get("resultType") != "task":
            return result
        from .remote_tasks import RemoteTask, task_in

        task = task_in(result)
        if task is None:
            return result
        left = options.timeout
        left = None if left is None else max(0.0, left + began - loop.time())
        return await RemoteTask(lists.link, task).wait(left)

    def _until(self) -> float | None:
        seconds = self.options.timeout
        return None if seconds is None else asyncio.get_running_loop().time() + seconds

    async def _call_once(self, name: str, given: JsonObject, options: RequestOptions) -> Reply[Any]:
        try:
            result = await self._result_of_call(name, given, options)
        except (NoAnswer, RpcError) as error:
            return failed_reply(error)
        return await self.reply_of(name, result, options.timeout)

    async def reply_of(self, name: str, result: JsonObject, timeout: float | None) -> Reply[Any]:
        """The reply that a result of a tool is; its output schema is asked for within *timeout*."""
        known = self.lists.known.get(name)
        if known is None and "structuredContent" in result:
            known = await self.lists.schema_of(name, timeout)
        return read(result) if known is None else known.reply(result, strict=self.strict)
