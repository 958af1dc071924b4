"""BlockingServer: a connected server for programs without async, on an event loop in a thread."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ..calls.loop_thread import LoopThread
from ..core.reply import Reply
from .listed import FilledPrompt, RemotePrompt, RemoteResource, RemoteTemplate, RemoteTool
from .many_servers import ManyServers
from .request_policy import CallOptions

if TYPE_CHECKING:
    from typing_extensions import Unpack


class BlockingServer:
    """The methods of a RemoteServer, each of which waits; any thread may call them."""

    def __init__(self, make: Callable[[], Any], loop: LoopThread | None = None) -> None:
        self._loop = loop or LoopThread("answerback-client")
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
        server = self._server
        return server.failures if isinstance(server, ManyServers) else {}

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
        self, name: str, arguments: Mapping[str, Any] | None = None, /, **named: object
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
