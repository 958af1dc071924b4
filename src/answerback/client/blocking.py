"""BlockingServer: a connected server for programs without async, on an event loop in a thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from ..reply import Reply
from .listed import FilledPrompt, RemotePrompt, RemoteResource, RemoteTemplate, RemoteTool
from .request_policy import CallOptions

if TYPE_CHECKING:
    from typing_extensions import Unpack

T = TypeVar("T")


class BlockingServer:
    """The methods of a RemoteServer, each of which waits; any thread may call them."""

    def __init__(self, make: Callable[[], Any], loop: _LoopInThread | None = None) -> None:
        self._loop = loop or _LoopInThread()
        if loop is not None:
            self._server = make()
            return
        try:
            self._server = self._loop.run(_opened(make))
        except BaseException:
            self._loop.close()
            raise

    @property
    def info(self) -> Any:
        return self._server.info

    @property
    def failures(self) -> dict[str, str]:
        """Why servers of several could not be used last, by their names."""
        found: dict[str, str] = getattr(self._server, "failures", {})
        return found

    def tools(self) -> list[RemoteTool]:
        found: list[RemoteTool] = self._loop.run(self._server.tools())
        return found

    def resources(self) -> list[RemoteResource]:
        found: list[RemoteResource] = self._loop.run(self._server.resources())
        return found

    def templates(self) -> list[RemoteTemplate]:
        found: list[RemoteTemplate] = self._loop.run(self._server.templates())
        return found

    def prompts(self) -> list[RemotePrompt]:
        found: list[RemotePrompt] = self._loop.run(self._server.prompts())
        return found

    def call(
        self, name: str, arguments: Mapping[str, Any] | None = None, /, **named: Any
    ) -> Reply[Any]:
        reply: Reply[Any] = self._loop.run(self._server.call(name, arguments, **named))
        return reply

    def read(self, uri: str) -> Reply[Any]:
        reply: Reply[Any] = self._loop.run(self._server.read(uri))
        return reply

    def prompt(
        self, name: str, arguments: Mapping[str, str] | None = None, /, **named: str
    ) -> FilledPrompt:
        found: FilledPrompt = self._loop.run(self._server.prompt(name, arguments, **named))
        return found

    def complete(
        self, of: str, argument: str, value: str, context: Mapping[str, str] | None = None
    ) -> list[str]:
        found: list[str] = self._loop.run(self._server.complete(of, argument, value, context))
        return found

    def subscribe(self, uri: str) -> None:
        self._loop.run(self._server.subscribe(uri))

    def unsubscribe(self, uri: str) -> None:
        self._loop.run(self._server.unsubscribe(uri))

    def options(self, **options: Unpack[CallOptions]) -> BlockingServer:
        changed = self._server.options(**options)
        return BlockingServer(lambda: changed, self._loop)

    def close(self) -> None:
        try:
            self._loop.run(self._server.close())
        finally:
            self._loop.close()


async def _opened(make: Callable[[], Any]) -> Any:
    server = make()
    try:
        await server.open()
    except BaseException:
        await server.close()
        raise
    return server


class _LoopInThread:
    """An event loop that runs in a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="answerback-client", daemon=True
        )
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for *work*; an exception in the waiting thread, such as Ctrl-C, cancels it."""
        if self._loop.is_closed():
            work.close()
            raise RuntimeError("the connection was closed")
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def close(self) -> None:
        if self._loop.is_closed():
            return
        self.run(self._loop.shutdown_default_executor())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
