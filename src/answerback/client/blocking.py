"""BlockingServer: a connected server for programs without async, on an event loop in a thread."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import update_wrapper
from typing import Any, Concatenate, ParamSpec, TypeAlias, TypeVar, Unpack

from ..calls.loop_thread import LoopThread
from .call_options import CallOptions
from .many_servers import ManyServers
from .remote_server import RemoteServer, ServerMethods, opened

P = ParamSpec("P")
T = TypeVar("T")
Connected: TypeAlias = RemoteServer | ManyServers


def _blocking(
    method: Callable[Concatenate[ServerMethods, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[BlockingServer, P], T]:
    """Return a RemoteServer's method in a form that blocks until the result is there."""

    def wait(server: BlockingServer, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return server._loop.run(method(server._server, *args, **kwargs))

    return update_wrapper(wait, method)


class BlockingServer:
    """A RemoteServer's methods, but blocking; any thread may call them."""

    def __init__(self, server: Connected, loop: LoopThread, *, owns_loop: bool = True) -> None:
        self._server = server
        self._loop = loop
        self._owns_loop = owns_loop
        """Whether closing the server ends the loop; several servers share one."""

    @classmethod
    def opened(cls, make: Callable[[], Connected]) -> BlockingServer:
        """Make a server on its own event loop, and open it; raises ConnectError."""
        loop = LoopThread("answerback-client")
        try:
            return cls(loop.run(opened(make)), loop)
        except BaseException:
            loop.close()
            raise

    @property
    def info(self) -> Any:
        return self._server.info

    @property
    def failures(self) -> dict[str, str]:
        """Why a server could not be used the last time, by its name."""
        server = self._server
        return server.failures if isinstance(server, ManyServers) else {}

    @property
    def servers(self) -> dict[str, BlockingServer]:
        """The servers by name, each with its own names of tools; empty if it is one server."""
        server = self._server
        found = server.servers if isinstance(server, ManyServers) else {}
        return {
            name: BlockingServer(each, self._loop, owns_loop=False) for name, each in found.items()
        }

    tools = _blocking(ServerMethods.tools)
    resources = _blocking(ServerMethods.resources)
    templates = _blocking(ServerMethods.templates)
    prompts = _blocking(ServerMethods.prompts)
    call = _blocking(ServerMethods.call)
    read = _blocking(ServerMethods.read)
    prompt = _blocking(ServerMethods.prompt)
    complete = _blocking(ServerMethods.complete)
    subscribe = _blocking(ServerMethods.subscribe)
    unsubscribe = _blocking(ServerMethods.unsubscribe)

    def options(self, **options: Unpack[CallOptions]) -> BlockingServer:
        changed = self._server.options(**options)
        return BlockingServer(changed, self._loop, owns_loop=self._owns_loop)

    def close(self) -> None:
        try:
            self._loop.run(self._server.close())
        finally:
            if self._owns_loop:
                self._loop.close()
