"""ManyServers: several servers at once; each fails alone, and its names have its prefix."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import msgspec

from ..core.reply import Reply, failure
from ..errors import TOOL_NOT_FOUND, NotFound, ToolError
from .faults import ConnectError
from .listed import FilledPrompt, RemotePrompt, RemoteResource, RemoteTemplate, RemoteTool
from .remote_server import RemoteServer
from .request_policy import CallOptions
from .targets import BadTarget

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ..core.json_value import JsonObject
    from .rest_server import RestServer

T = TypeVar("T")
Server: TypeAlias = "RemoteServer | RestServer"
Named = TypeVar("Named", RemoteTool, RemotePrompt)


class ManyServers:
    """The servers by name. The tool `add` of the server `math` is called `math_add`."""

    def __init__(self, servers: Mapping[str, Server]) -> None:
        self.servers = dict(servers)
        self.failures: dict[str, str] = {}
        """Why a server could not be used last, by its name."""

    @property
    def info(self) -> JsonObject:
        return {name: server.info for name, server in self.servers.items()}

    async def open(self) -> None:
        """Open all connections; raises ConnectError if none of them can be opened."""
        await _each(self, lambda server: server.open())
        if self.servers and len(self.failures) == len(self.servers):
            raise ConnectError("; ".join(self.failures.values()))

    async def close(self) -> None:
        await asyncio.gather(*(server.close() for server in self.servers.values()))

    async def tools(self) -> list[RemoteTool]:
        """The tools of the servers that answer; `failures` tells which do not."""
        found = await _each(self, lambda server: server.tools())
        return [_prefixed(name, each) for name, listed in found.items() for each in listed]

    async def prompts(self) -> list[RemotePrompt]:
        found = await _each(self, lambda server: server.prompts())
        return [_prefixed(name, each) for name, listed in found.items() for each in listed]

    async def resources(self) -> list[RemoteResource]:
        found = await _each(self, lambda server: server.resources())
        return [each for listed in found.values() for each in listed]

    async def templates(self) -> list[RemoteTemplate]:
        found = await _each(self, lambda server: server.templates())
        return [each for listed in found.values() for each in listed]

    async def call(
        self, name: str, arguments: Mapping[str, Any] | None = None, /, **named: object
    ) -> Reply[Any]:
        """Call a tool by its name with the server's prefix."""
        found = _find(self.servers, name)
        if found is None:
            known = ", ".join(self.servers)
            return failure(f"no server for {name!r}; the servers are {known}", TOOL_NOT_FOUND)
        server, own = found
        return await server.call(own, arguments, **named)

    async def read(self, uri: str) -> Reply[Any]:
        """Read a resource from the first server that has it."""
        reply = failure(f"no server has {uri!r}", "NOT_FOUND")
        for name, server in self.servers.items():
            if name not in self.failures:
                reply = await server.read(uri)
                if reply.ok:
                    return reply
        return reply

    async def prompt(
        self, name: str, arguments: Mapping[str, str] | None = None, /, **named: str
    ) -> FilledPrompt:
        """The messages of a prompt, by its name with the server's prefix; raises ToolError."""
        server, own = _named(self.servers, name)
        return await server.prompt(own, arguments, **named)

    async def complete(
        self, of: str, argument: str, value: str, context: Mapping[str, str] | None = None
    ) -> list[str]:
        """The completions of an argument; *of* is a prompt's name or a template's URI."""
        if "://" not in of:
            server, own = _named(self.servers, of)
            return await server.complete(own, argument, value, context)
        listed = await _each(self, lambda server: server.templates())
        for name, templates in listed.items():
            if any(each.uri_template == of for each in templates):
                return await self.servers[name].complete(of, argument, value, context)
        raise NotFound(f"no server has the template {of!r}")

    async def subscribe(self, uri: str) -> None:
        """Tell `on_change` when a resource changes; raises ToolError."""
        await (await _owner(self, uri)).subscribe(uri)

    async def unsubscribe(self, uri: str) -> None:
        await (await _owner(self, uri)).unsubscribe(uri)

    def options(self, **options: Unpack[CallOptions]) -> ManyServers:
        """The same servers with other options."""
        if options.get("breaker") is not None:
            raise BadTarget("a breaker belongs to one server; each server of several fails alone")
        changed = copy.copy(self)
        changed.servers = {name: server.options(**options) for name, server in self.servers.items()}
        return changed


async def _owner(many: ManyServers, uri: str) -> Server:
    """The server that lists the resource, or else the first that can read it."""
    listed = await _each(many, lambda server: server.resources())
    for name, resources in listed.items():
        if any(each.uri == uri for each in resources):
            return many.servers[name]
    for name in listed:
        if (await many.servers[name].read(uri)).ok:
            return many.servers[name]
    raise NotFound(f"no server has {uri!r}")


async def _each(many: ManyServers, ask: Callable[[Server], Awaitable[T]]) -> dict[str, T]:
    """The answers of the servers that answer; the others are noted in `failures`."""

    async def one(name: str, server: Server) -> tuple[str, T] | None:
        try:
            answer = await ask(server)
        except (ConnectError, ToolError) as exc:
            many.failures[name] = f"{name}: {exc}"
            return None
        many.failures.pop(name, None)
        return name, answer

    found = await asyncio.gather(*(one(*each) for each in many.servers.items()))
    return dict(each for each in found if each is not None)


def _named(servers: Mapping[str, Server], name: str) -> tuple[Server, str]:
    found = _find(servers, name)
    if found is None:
        raise NotFound(f"no server for {name!r}; the servers are {', '.join(servers)}")
    return found


def _find(servers: Mapping[str, Server], name: str) -> tuple[Server, str] | None:
    """The server with the longest name that is a prefix of *name*, and the rest."""
    fitting = [each for each in servers if name.startswith(f"{each}_")]
    if not fitting:
        return None
    prefix = max(fitting, key=len)
    return servers[prefix], name[len(prefix) + 1 :]


def _prefixed(server: str, entry: Named) -> Named:
    return msgspec.structs.replace(entry, name=f"{server}_{entry.name}")
