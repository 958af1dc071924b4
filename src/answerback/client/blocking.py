"""BlockingServer: a connected server for programs without async, on an event loop in a thread."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from functools import update_wrapper
from typing import Any, Concatenate, ParamSpec, TypeAlias, TypeVar, Unpack, overload

from ..calls.loop_thread import LoopThread
from ..core.reply import Reply
from .call_options import CallOptions
from .many_servers import ManyServers
from .remote_server import RemoteServer, ServerMethods

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

    def __init__(self, server: Connected, loop: LoopThread) -> None:
        self._server = server
        self._loop = loop

    @classmethod
    def opened(cls, make: Callable[[], Connected]) -> BlockingServer:
        """Make a server on its own event loop, and open it; raises ConnectError."""
        loop = LoopThread("answerback-client")
        try:
            return cls(loop.run(_opened(make)), loop)
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

    tools = _blocking(ServerMethods.tools)
    resources = _blocking(ServerMethods.resources)
    templates = _blocking(ServerMethods.templates)
    prompts = _blocking(ServerMethods.prompts)
    read = _blocking(ServerMethods.read)
    prompt = _blocking(ServerMethods.prompt)
    complete = _blocking(ServerMethods.complete)
    subscribe = _blocking(ServerMethods.subscribe)
    unsubscribe = _blocking(ServerMethods.unsubscribe)

    @overload
    def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        /,
        *,
        into: type[T],
        **named: object,
    ) -> Reply[T]: ...
    @overload
    def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        /,
        *,
        into: Any = None,
        **named: object,
    ) -> Reply[Any]: ...
    def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        /,
        *,
        into: Any = None,
        **named: object,
    ) -> Reply[Any]:
        """Call a tool, as `RemoteServer.call` does."""
        return self._loop.run(self._server.call(name, arguments, into=into, **named))

    def options(self, **options: Unpack[CallOptions]) -> BlockingServer:
        return BlockingServer(self._server.options(**options), self._loop)

    def close(self) -> None:
        try:
            self._loop.run(self._server.close())
        finally:
            self._loop.close()


async def _opened(make: Callable[[], Connected]) -> Connected:
    server = make()
    try:
        await server.open()
    except BaseException:
        await server.close()
        raise
    return server
