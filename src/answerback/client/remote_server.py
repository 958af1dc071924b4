"""RemoteServer: the tools, resources and prompts of one connected server."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from ..errors import MalformedReply, ToolError
from ..mcp.jsonrpc import RpcError
from ..reading import read
from ..reply import Reply
from .eras import ServerFacts
from .exchange import RequestOptions
from .faults import NoAnswer, failed_reply, raised_error
from .listed import (
    FilledPrompt,
    RemotePrompt,
    RemoteResource,
    RemoteTemplate,
    RemoteTool,
)
from .opening import LinkPlan
from .results import INVALID_RESPONSE, resource_reply
from .server_lists import ServerLists
from .user_handlers import OnProgress


class RemoteServer:
    """A server that this process is connected to; `connect` makes it.

    `call` and `read` return a reply in every case. The lists, `prompt` and `complete` raise
    ToolError if they fail.
    """

    def __init__(self, plan: LinkPlan, *, strict: bool = False) -> None:
        self._lists = ServerLists(plan)
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
        known = self._lists.known.get(name)
        if known is None and "structuredContent" in result:
            known = await self._lists.schema_of(name, self._options)
        return read(result) if known is None else known.reply(result, strict=self._strict)

    async def read(self, uri: str) -> Reply[Any]:
        """Read a resource; its contents are embedded blocks of the reply."""
        try:
            result = await self._lists.link.request("resources/read", {"uri": uri}, self._options)
        except (NoAnswer, RpcError) as error:
            return failed_reply(error)
        return resource_reply(result)

    async def prompt(
        self, name: str, arguments: Mapping[str, str] | None = None, /, **named: str
    ) -> FilledPrompt:
        """The messages of a prompt; raises ToolError."""
        params: dict[str, Any] = {"name": name}
        if given := {**(arguments or {}), **named}:
            params["arguments"] = given
        try:
            return FilledPrompt.read(
                await self._lists.link.request("prompts/get", params, self._options)
            )
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
