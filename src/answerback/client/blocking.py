"""BlockingServer: a connected server for programs without async; an event loop runs in a thread."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from functools import update_wrapper
from typing import Any, Concatenate, Generic, ParamSpec, TypeAlias, TypeVar, Unpack, overload

from ..calls.loop_thread import LoopThread
from ..core.reply import Reply
from .call_options import CallOptions
from .many_servers import ManyServers
from .remote_server import RemoteServer, ServerMethods, StartedTask, opened

P = ParamSpec("P")
T = TypeVar("T")
Inner = TypeVar("Inner")
Connected: TypeAlias = RemoteServer | ManyServers


class _OnLoop(Generic[Inner]):
    """An object whose async methods run on a loop in a thread."""

    def __init__(self, inner: Inner, loop: LoopThread) -> None:
        self._inner = inner
        self._loop = loop


def _blocking(
    method: Callable[Concatenate[Inner, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[_OnLoop[Any], P], T]:
    """Wrap an async method in one that blocks until the result is available."""

    def wait(self: _OnLoop[Inner], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._loop.run(method(self._inner, *args, **kwargs))

    return update_wrapper(wait, method)


class BlockingTask(_OnLoop[StartedTask]):
    """A StartedTask with blocking methods, which may be called from any thread."""

    @property
    def id(self) -> str:
        """The task's id; empty if the server did not create a task."""
        return self._inner.id

    status = _blocking(StartedTask.status)
    result = _blocking(StartedTask.result)
    cancel = _blocking(StartedTask.cancel)
    answer = _blocking(StartedTask.answer)


class BlockingServer(_OnLoop[Connected]):
    """A RemoteServer with blocking methods, which may be called from any thread."""

    def __init__(self, server: Connected, loop: LoopThread, *, owns_loop: bool = True) -> None:
        super().__init__(server, loop)
        self._owns_loop = owns_loop
        """Whether closing the server also ends the loop; False if several servers share it."""

    @classmethod
    def opened(cls, make: Callable[[], Connected]) -> BlockingServer:
        """Create a server on its own event loop and open it; raises ConnectError."""
        loop = LoopThread("answerback-client")
        try:
            return cls(loop.run(opened(make)), loop)
        except BaseException:
            loop.close()
            raise

    @property
    def info(self) -> Any:
        return self._inner.info

    @property
    def failures(self) -> dict[str, str]:
        """The latest failure of each server that could not be used, by server name."""
        server = self._inner
        return server.failures if isinstance(server, ManyServers) else {}

    @property
    def servers(self) -> dict[str, BlockingServer]:
        """The servers by name, each with unprefixed tool names; empty for a single server."""
        server = self._inner
        found = server.servers if isinstance(server, ManyServers) else {}
        return {
            name: BlockingServer(each, self._loop, owns_loop=False) for name, each in found.items()
        }

    def wait_for(self, name: str) -> str:
        """Wait for a tool's server if it is connecting; return its name, or "" if it is not."""
        server = self._inner
        return self._loop.run(server.wait_for(name)) if isinstance(server, ManyServers) else ""

    tools = _blocking(ServerMethods.tools)
    resources = _blocking(ServerMethods.resources)
    templates = _blocking(ServerMethods.templates)
    prompts = _blocking(ServerMethods.prompts)
    read = _blocking(ServerMethods.read)
    prompt = _blocking(ServerMethods.prompt)
    complete = _blocking(ServerMethods.complete)
    subscribe = _blocking(ServerMethods.subscribe)
    unsubscribe = _blocking(ServerMethods.unsubscribe)
    ping = _blocking(ServerMethods.ping)

    def start_task(
        self, name: str, arguments: Mapping[str, Any] | None = None, /, **named: object
    ) -> BlockingTask:
        """Call a tool as a task without waiting; raises ToolError if the server refuses it."""
        started = self._loop.run(self._inner.start_task(name, arguments, **named))
        return BlockingTask(started, self._loop)

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
        """Call a tool, like `RemoteServer.call`."""
        return self._loop.run(self._inner.call(name, arguments, into=into, **named))

    def options(self, **options: Unpack[CallOptions]) -> BlockingServer:
        changed = self._inner.options(**options)
        return BlockingServer(changed, self._loop, owns_loop=self._owns_loop)

    def close(self) -> None:
        """Close the connection; safe to call more than once."""
        if self._loop.loop.is_closed():
            return
        try:
            self._loop.run(self._inner.close())
        finally:
            if self._owns_loop:
                self._loop.close()
