"""RemoteServer: the tools, resources and prompts of one connected server."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..core.reply import Reply
from ..errors import MalformedReply, ToolError
from .eras import ServerFacts
from .faults import INVALID_RESPONSE
from .listed import (
    FilledPrompt,
    RemotePrompt,
    RemoteResource,
    RemoteTemplate,
    RemoteTool,
)
from .opening import LinkPlan
from .request_policy import CallOptions, ClientOptions
from .server_lists import ServerLists
from .server_requests import ServerRequests

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ..core.json_value import JsonObject


class RemoteServer:
    """A server that this process is connected to; `connect` makes it.

    `call` and `read` return a reply in every case. The lists, `prompt` and `complete` raise
    ToolError if they fail.
    """

    def __init__(self, plan: LinkPlan, options: ClientOptions, *, strict: bool = False) -> None:
        self._lists = ServerLists(plan)
        self._requests = ServerRequests(self._lists, options, strict=strict)

    @property
    def info(self) -> ServerFacts:
        """The version of MCP, the server's name, its capabilities and its instructions."""
        return self._lists.link.facts

    async def tools(self) -> list[RemoteTool]:
        return await self._requests.tools()

    async def resources(self) -> list[RemoteResource]:
        return await self._requests.entries("resources", RemoteResource)

    async def templates(self) -> list[RemoteTemplate]:
        return await self._requests.entries("templates", RemoteTemplate)

    async def prompts(self) -> list[RemotePrompt]:
        return await self._requests.entries("prompts", RemotePrompt)

    async def call(
        self, name: str, arguments: Mapping[str, Any] | None = None, /, **named: object
    ) -> Reply[Any]:
        """Call a tool: `call("add", x=1)`, or `call("add", {"x": 1})` for names of any form.

        A connection that fails and a time-out are failed replies; `error.details` then has
        `may_have_run`.
        """
        return await self._requests.call(name, {**(arguments or {}), **named})

    async def read(self, uri: str) -> Reply[Any]:
        """Read a resource; its contents are embedded blocks of the reply."""
        return await self._requests.read(uri)

    async def prompt(
        self, name: str, arguments: Mapping[str, str] | None = None, /, **named: str
    ) -> FilledPrompt:
        """The messages of a prompt; raises ToolError."""
        params: JsonObject = {"name": name}
        if given := {**(arguments or {}), **named}:
            params["arguments"] = given
        result = await self._requests.result("prompts/get", params)
        try:
            return FilledPrompt.read(result)
        except MalformedReply as exc:
            raise ToolError(f"the prompt cannot be read: {exc}", INVALID_RESPONSE) from None

    async def complete(
        self, of: str, argument: str, value: str, context: Mapping[str, str] | None = None
    ) -> list[str]:
        """The completions of an argument; *of* is a prompt's name or a template's URI."""
        is_uri = "://" in of
        ref = {"type": "ref/resource", "uri": of} if is_uri else {"type": "ref/prompt", "name": of}
        params: JsonObject = {"ref": ref, "argument": {"name": argument, "value": value}}
        if context:
            params["context"] = {"arguments": dict(context)}
        result = await self._requests.result("completion/complete", params)
        found = result.get("completion")
        values = found.get("values") if isinstance(found, dict) else None
        return [str(each) for each in values or ()]

    async def subscribe(self, uri: str) -> None:
        """Tell `on_change` when a resource changes; raises ToolError."""
        await self._lists.subscribed.change(uri, wanted=True)

    async def unsubscribe(self, uri: str) -> None:
        await self._lists.subscribed.change(uri, wanted=False)

    def options(self, **options: Unpack[CallOptions]) -> RemoteServer:
        """The same server with other options: `server.options(timeout=2).call("add", x=1)`."""
        changed = copy.copy(self)
        before = self._requests
        changed._requests = ServerRequests(
            self._lists, before.options.changed(options), strict=before.strict
        )
        return changed

    async def open(self) -> None:
        """Open the connection; raises ConnectError. `connect` does it."""
        await self._lists.link.open()

    async def close(self) -> None:
        await self._lists.link.close()
