"""ManyServers: several servers at once, each with its own name prefix and its own failures."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, Self, TypeVar, Unpack

import msgspec

from ..core.event_loop import spawn
from ..core.json_value import JsonObject
from ..core.log import logger
from ..core.reply import Reply, failure
from ..errors import TOOL_NOT_FOUND, NotFound, ToolError
from .call_options import CallOptions, ClientOptions
from .faults import UNAVAILABLE, ConnectError
from .frames import ServerFacts
from .remote_server import RemoteServer, ServerMethods, StartedTask
from .results import RemotePrompt, RemoteTool
from .targets import BadTarget

ONE_BREAKER = "a breaker belongs to one server; write servers.servers[NAME].options(breaker=…)"
_LOGGER = logger("answerback.client")

T = TypeVar("T")
Listed = TypeVar("Listed", bound=msgspec.Struct)


class ManySessions:
    """Sends each request to its server, with that server's own options."""

    def __init__(
        self, servers: Mapping[str, RemoteServer], failures: dict[str, str], wait: float | None
    ) -> None:
        self.servers = dict(servers)
        self.failures = failures
        """The latest failure of each server that could not be used, by server name."""
        self.wait = wait
        self._asking: set[asyncio.Task[Any]] = set()

    async def open(self) -> None:
        """Open the connections; raises ConnectError if none can be opened.

        A slow server keeps connecting in the background.
        """
        await self._each(lambda server: server._session.open_shared())
        if self.servers and len(self.failures) == len(self.servers):
            raise ConnectError("; ".join(self.failures.values()))

    async def close(self) -> None:
        await asyncio.gather(*(server.close() for server in self.servers.values()))

    async def entries(self, kind: type[Listed], options: ClientOptions) -> list[Listed]:
        """Return the entries from the servers that answer; `failures` names the others.

        Tools and prompts are prefixed with their server's name.
        """
        found = await self._each(lambda server: server._session.entries(kind, server._options))
        return [
            msgspec.structs.replace(each, name=f"{name}_{each.name}")
            if isinstance(each, RemoteTool | RemotePrompt)
            else each
            for name, listed in found.items()
            for each in listed
        ]

    async def call(self, name: str, given: JsonObject, options: ClientOptions) -> Reply[Any]:
        """Call a tool by its prefixed name."""
        try:
            server, tool = self._named(name)
        except NotFound as exc:
            return failure(str(exc), TOOL_NOT_FOUND)
        reply = await server.call(tool, given)
        if reply.ok:
            self.failures.pop(name.removesuffix(f"_{tool}"), None)
        return reply

    async def start_task(self, name: str, given: JsonObject, options: ClientOptions) -> StartedTask:
        server, tool = self._named(name)
        return await server.start_task(tool, given)

    async def ping(self, options: ClientOptions) -> None:
        """Ping all servers; `failures` names the silent ones. Raises ToolError if none answers."""
        if not await self._each(lambda server: server.ping()):
            raise ToolError("; ".join(self.failures.values()), UNAVAILABLE)

    async def read(self, uri: str, options: ClientOptions) -> Reply[Any]:
        """Read a resource from the first server that has it."""
        reply = failure(f"no server has {uri!r}", "NOT_FOUND")
        for name, server in self.servers.items():
            if name not in self.failures:
                reply = await server.read(uri)
                if reply.ok:
                    return reply
        return reply

    async def result(
        self, method: str, params: Mapping[str, Any], options: ClientOptions
    ) -> JsonObject:
        """Send a request about a prompt, by its prefixed name, or about a template."""
        ref = params.get("ref", params)
        if "name" in ref:
            server, prompt = self._named(ref["name"])
            renamed = {**ref, "name": prompt}
            params = renamed if ref is params else {**params, "ref": renamed}
        else:
            server = await self._with_template(ref["uri"])
        return await server._session.result(method, params, server._options)

    async def subscribe(self, uri: str, options: ClientOptions, *, wanted: bool) -> None:
        server = await self._with_resource(uri)
        await (server.subscribe(uri) if wanted else server.unsubscribe(uri))

    async def _with_template(self, uri: str) -> RemoteServer:
        listed = await self._each(lambda server: server.templates())
        for name, templates in listed.items():
            if any(each.uri_template == uri for each in templates):
                return self.servers[name]
        raise NotFound(f"no server has the template {uri!r}")

    async def _with_resource(self, uri: str) -> RemoteServer:
        """Return the server that lists the resource, or else the first that can read it."""
        listed = await self._each(lambda server: server.resources())
        for name, resources in listed.items():
            if any(each.uri == uri for each in resources):
                return self.servers[name]
        for name in listed:
            if (await self.servers[name].read(uri)).ok:
                return self.servers[name]
        raise NotFound(f"no server has {uri!r}")

    async def _each(self, ask: Callable[[RemoteServer], Awaitable[T]]) -> dict[str, T]:
        """Collect the servers' answers, in order; `failures` names the servers that sent none.

        Waits as long as answers keep arriving. Once one server has answered and `wait` seconds pass
        without another answer, the rest are left out.
        """
        asked = {
            spawn(_answer(ask, server), self._asking): name
            for name, server in self.servers.items()
            if not self._is_late(name)
        }
        found: dict[str, T] = {}
        late = set(asked)
        try:
            while late:
                done, late = await asyncio.wait(
                    late, timeout=self.wait, return_when=asyncio.FIRST_COMPLETED
                )
                if found and not done:
                    break
                for each in done:
                    name, answer = asked[each], each.result()
                    if isinstance(answer, ConnectError | ToolError):
                        text = str(answer)
                        self.failures[name] = text if text.startswith(name) else f"{name}: {text}"
                    else:
                        found[name] = answer
                        self.failures.pop(name, None)
        finally:
            for each in late:
                each.cancel()
        for each in late:
            text = f"did not answer within {self.wait:g} seconds; calls still wait for it"
            self.failures[asked[each]] = f"{asked[each]} {text}"
            _LOGGER.warning("a server is left out of lists: %s %s", asked[each], text)
        return {name: found[name] for name in self.servers if name in found}

    async def wait_for(self, name: str) -> str:
        fitting = [each for each in self.servers if name.startswith(f"{each}_")]
        late = max(filter(self._is_late, fitting), key=len, default="")
        if late:
            with suppress(ConnectError):
                await self.servers[late]._session.open_shared()
        return late

    def _is_late(self, name: str) -> bool:
        """Return whether a server is still connecting after an earlier wait."""
        return name in self.failures and self.servers[name]._session.is_opening

    def _named(self, name: str) -> tuple[RemoteServer, str]:
        """Return the server whose name is the longest prefix of *name*, and the rest of *name*."""
        fitting = [each for each in self.servers if name.startswith(f"{each}_")]
        if not fitting:
            servers = list(self.servers)
            text = f"no server for {name!r}; the servers are {', '.join(servers)}"
            if servers:
                example = f"{servers[0]}_{name}"
                text += f"; put the server's name in front, as in {example!r}"
            raise NotFound(text)
        prefix = max(fitting, key=len)
        return self.servers[prefix], name[len(prefix) + 1 :]


class ManyServers(ServerMethods):
    """Several servers, by name. The `add` tool of the `math` server is called `math_add`."""

    _session: ManySessions

    def __init__(
        self,
        servers: Mapping[str, RemoteServer],
        failures: dict[str, str] | None = None,
        wait: float | None = 5.0,
    ) -> None:
        sessions = ManySessions(servers, {} if failures is None else failures, wait)
        super().__init__(sessions, ClientOptions())
        self.servers: dict[str, RemoteServer] = sessions.servers
        """The servers, by name."""
        self.failures: dict[str, str] = sessions.failures
        """The latest failure of each server that could not be used, by server name."""

    @property
    def info(self) -> dict[str, ServerFacts]:
        """Facts about each server, by server name."""
        return {name: server.info for name, server in self.servers.items()}

    async def wait_for(self, name: str) -> str:
        """Wait for a tool's server if it is connecting; return its name, or "" if it is not."""
        return await self._session.wait_for(name)

    def options(self, **options: Unpack[CallOptions]) -> Self:
        """Return the same servers with different options."""
        if options.get("breaker") is not None:
            raise BadTarget(ONE_BREAKER)
        servers = {name: server.options(**options) for name, server in self.servers.items()}
        return type(self)(servers, self.failures, self._session.wait)


async def _answer(
    ask: Callable[[RemoteServer], Awaitable[T]], server: RemoteServer
) -> T | ConnectError | ToolError:
    try:
        return await ask(server)
    except (ConnectError, ToolError) as exc:
        return exc
