"""RemoteServer: a connected server's tools, resources and prompts."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack, overload

import msgspec

from ..core.json_value import JsonObject
from ..core.limits import MAX_BLOCKS
from ..core.reply import Reply
from ..errors import MalformedReply, ToolError
from ..reading.read_reply import typed_reader
from ..types.json_text import ENCODER
from .call_options import CallOptions, ClientOptions
from .faults import INVALID_RESPONSE
from .listed import FilledPrompt, RemotePrompt, RemoteResource, RemoteTemplate, RemoteTool
from .request_params import ServerFacts

if TYPE_CHECKING:
    from .client_session import ClientSession
    from .many_servers import ManySessions
    from .remote_tasks import StartedTask
    from .rest_session import RestSession

S = TypeVar("S", bound="ServerMethods")
T = TypeVar("T")


class ServerMethods:
    """The methods of one server and of several.

    `call` and `read` return a reply in every case. The lists, `prompt` and `complete` raise
    ToolError if they fail.
    """

    def __init__(
        self, session: ClientSession | RestSession | ManySessions, options: ClientOptions
    ) -> None:
        self._session = session
        self._options = options

    async def tools(self) -> list[RemoteTool]:
        """Return the server's tools; raises ToolError."""
        return await self._session.entries(RemoteTool, self._options)

    async def resources(self) -> list[RemoteResource]:
        """Return the server's resources; raises ToolError."""
        return await self._session.entries(RemoteResource, self._options)

    async def templates(self) -> list[RemoteTemplate]:
        """Return the templates of the server's resources; raises ToolError."""
        return await self._session.entries(RemoteTemplate, self._options)

    async def prompts(self) -> list[RemotePrompt]:
        """Return the server's prompts; raises ToolError."""
        return await self._session.entries(RemotePrompt, self._options)

    @overload
    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        /,
        *,
        into: type[T],
        **named: object,
    ) -> Reply[T]: ...
    @overload
    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        /,
        *,
        into: Any = None,
        **named: object,
    ) -> Reply[Any]: ...
    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        /,
        *,
        into: Any = None,
        **named: object,
    ) -> Reply[Any]:
        """Call a tool: `call("add", x=1)`, or `call("add", {"x": 1})` for any argument name.

        *arguments* may have any names, also `into`. *into* is the data's type, as in `read`.

        A failed connection and a time-out do not raise: the reply is a failure whose code is
        UNAVAILABLE or TIMED_OUT, and its `error.details` has `may_have_run`.
        """
        given = {**(arguments or {}), **named}
        if into is None:
            return await self._session.call(name, given, self._options)
        try:
            typed = typed_reader(into)
        except TypeError as exc:
            hint = 'an argument of the tool goes into the mapping: call(name, {"into": …})'
            raise TypeError(f"{exc}; {hint}") from None
        return await typed.read_async(await self._session.call(name, given, self._options))

    async def start_task(
        self, name: str, arguments: Mapping[str, Any] | None = None, /, **named: object
    ) -> StartedTask:
        """Call a tool as a task, and return at once; raises ToolError if the server refuses it."""
        return await self._session.start_task(name, {**(arguments or {}), **named}, self._options)

    async def read(self, uri: str) -> Reply[Any]:
        """Read a resource; its contents are embedded blocks of the reply."""
        return await self._session.read(uri, self._options)

    async def prompt(
        self, name: str, arguments: Mapping[str, object] | None = None, /, **named: object
    ) -> FilledPrompt:
        """Return a prompt's messages; raises ToolError.

        MCP sends the arguments as text: other values than strings as JSON, and None not at all.
        """
        params: JsonObject = {"name": name}
        given = {**(arguments or {}), **named}
        if texts := {key: _text_of(value) for key, value in given.items() if value is not None}:
            params["arguments"] = texts
        result = await self._session.result("prompts/get", params, self._options)
        try:
            return FilledPrompt.read(result)
        except MalformedReply as exc:
            raise ToolError(f"the prompt cannot be read: {exc}", INVALID_RESPONSE) from None

    async def complete(
        self, of: str, argument: str, value: str, context: Mapping[str, str] | None = None
    ) -> list[str]:
        """Complete an argument; *of* is a prompt's name or a template's URI."""
        is_uri = "://" in of
        ref = {"type": "ref/resource", "uri": of} if is_uri else {"type": "ref/prompt", "name": of}
        params: JsonObject = {"ref": ref, "argument": {"name": argument, "value": value}}
        if context:
            params["context"] = {"arguments": dict(context)}
        result = await self._session.result("completion/complete", params, self._options)
        found = result.get("completion")
        values = found.get("values") if isinstance(found, dict) else None
        return [str(each) for each in values[:MAX_BLOCKS]] if isinstance(values, list) else []

    async def subscribe(self, uri: str) -> None:
        """Report a resource's changes to `on_change`; raises ToolError."""
        await self._session.subscribe(uri, self._options, wanted=True)

    async def unsubscribe(self, uri: str) -> None:
        """Report a resource's changes no longer; raises ToolError."""
        await self._session.subscribe(uri, self._options, wanted=False)

    async def ping(self) -> None:
        """Return when the server answers; raises ToolError."""
        await self._session.ping(self._options)

    def options(self, **options: Unpack[CallOptions]) -> Self:
        """Return the server with other options: `server.options(timeout=2).call("add", x=1)`."""
        changed = copy.copy(self)
        changed._options = self._options.changed(options)
        return changed

    async def open(self) -> None:
        """Open the connection, as `connect` does; raises ConnectError."""
        await self._session.open()

    async def close(self) -> None:
        """Close the connection, and end the child process."""
        await self._session.close()


class RemoteServer(ServerMethods):
    """A connected server, as `connect` gives it.

    `call` and `read` return a failed reply if something goes wrong. The other methods raise the
    ToolError of its code: TimedOut after a time-out, Unavailable if the connection failed.
    """

    _session: ClientSession | RestSession

    @property
    def info(self) -> ServerFacts:
        """The MCP version, the server's name, its capabilities and its instructions."""
        return self._session.info


async def opened(make: Callable[[], S]) -> S:
    """Make a server, and open it; raises ConnectError."""
    server = make()
    try:
        await server.open()
    except BaseException:
        await server.close()
        raise
    return server


def _text_of(value: object) -> str:
    """Return the value as JSON, but a string without quotes, also one of a date or an enum."""
    encoded = ENCODER.encode(value)
    return msgspec.json.decode(encoded, type=str) if encoded[:1] == b'"' else encoded.decode()
