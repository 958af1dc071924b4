"""ManyServers: several servers at once; each fails alone, and its names have its prefix."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import msgspec

from ..errors import TOOL_NOT_FOUND, ToolError
from ..reply import Reply, failure
from .faults import ConnectError
from .listed import FilledPrompt, RemotePrompt, RemoteResource, RemoteTemplate, RemoteTool
from .remote_server import RemoteServer
from .user_handlers import OnProgress

T = TypeVar("T")
Named = TypeVar("Named", RemoteTool, RemotePrompt)


class ManyServers:
    """The servers by name. The tool `add` of the server `math` is called `math_add`."""

    def __init__(self, servers: Mapping[str, RemoteServer]) -> None:
        self.servers = dict(servers)
        self.failures: dict[str, str] = {}
        """Why a server could not be used last, by its name."""

    @property
    def info(self) -> dict[str, Any]:
        return {name: server.info for name, server in self.servers.items()}

    async def open(self) -> None:
        """Open all connections; raises ConnectError if none of them can be opened."""
        await self._each(lambda server: server.open())
        if self.servers and len(self.failures) == len(self.servers):
            raise ConnectError("; ".join(self.failures.values()))

    async def close(self) -> None:
        await asyncio.gather(*(server.close() for server in self.servers.values()))

    async def tools(self) -> list[RemoteTool]:
        """The tools of the servers that answer; `failures` tells which do not."""
        found = await self._each(lambda server: server.tools())
        return [_prefixed(name, each) for name, listed in found.items() for each in listed]

    async def prompts(self) -> list[RemotePrompt]:
        found = await self._each(lambda server: server.prompts())
        return [_prefixed(name, each) for name, listed in found.items() for each in listed]

    async def resources(self) -> list[RemoteResource]:
        found = await self._each(lambda server: server.resources())
        return [each for listed in found.values() for each in listed]

    async def templates(self) -> list[RemoteTemplate]:
        found = await self._each(lambda server: server.templates())
        return [each for listed in found.values() for each in listed]

    async def call(
        self, name: str, arguments: Mapping[str, Any] | None = None, /, **named: Any
    ) -> Reply[Any]:
        """Call a tool by its name with the server's prefix."""
        found = self._find(name)
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
        found = self._find(name)
        if found is None:
            raise ToolError(f"no server for {name!r}", "NOT_FOUND")
        server, own = found
        return await server.prompt(own, arguments, **named)

    def options(
        self, *, timeout: float | None = None, progress: OnProgress | None = None
    ) -> ManyServers:
        """The same servers with other options."""
        changed = copy.copy(self)
        changed.servers = {
            name: server.options(timeout=timeout, progress=progress)
            for name, server in self.servers.items()
        }
        return changed

    def _find(self, name: str) -> tuple[RemoteServer, str] | None:
        """The server with the longest name that is a prefix of *name*, and the rest."""
        fitting = [each for each in self.servers if name.startswith(f"{each}_")]
        if not fitting:
            return None
        prefix = max(fitting, key=len)
        return self.servers[prefix], name[len(prefix) + 1 :]

    async def _each(self, ask: Callable[[RemoteServer], Awaitable[T]]) -> dict[str, T]:
        """The answers of the servers that answer; the others are noted in `failures`."""

        async def one(name: str, server: RemoteServer) -> tuple[str, T] | None:
            try:
                answer = await ask(server)
            except (ConnectError, ToolError) as exc:
                self.failures[name] = f"{name}: {exc}"
                return None
            self.failures.pop(name, None)
            return name, answer

        found = await asyncio.gather(*(one(*each) for each in self.servers.items()))
        return dict(each for each in found if each is not None)


def _prefixed(server: str, entry: Named) -> Named:
    return msgspec.structs.replace(entry, name=f"{server}_{entry.name}")
