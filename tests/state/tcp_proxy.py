"""A TCP proxy on loopback that takes its targets in turn, and that can cut what passes."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from itertools import cycle
from typing import Any

_CHUNK = 65_536
_CONNECT = 1.0
"""Seconds after which the next target is tried."""
Target = tuple[str, int]


class Proxy:
    """Sends each new connection to the next target that answers; runs in a thread of its own."""

    def __init__(self, targets: Sequence[int | Target], port: int = 0) -> None:
        self._count = len(targets)
        # A target without an address is on loopback.
        self._targets = cycle(
            ("127.0.0.1", target) if isinstance(target, int) else target for target in targets
        )
        self._open: set[asyncio.StreamWriter] = set()
        self._loses_after: bytes | None = None
        self._following = b""
        self.lost = threading.Event()
        """Set when a reply was swallowed, after `lose_reply`."""
        self.replied = 0
        """The bytes that the targets have sent."""
        self._loop = asyncio.new_event_loop()
        self._flows = asyncio.Event()
        self._flows.set()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._server = self._run(asyncio.start_server(self._serve, "127.0.0.1", port))
        self.port = int(self._server.sockets[0].getsockname()[1])

    def cut(self) -> None:
        """Close all connections at once."""
        self._run(self._cut())

    def stall(self) -> None:
        """Pass nothing on, and close nothing, until `resume`."""
        self._loop.call_soon_threadsafe(self._flows.clear)

    def resume(self) -> None:
        self._loop.call_soon_threadsafe(self._flows.set)

    def lose_reply(self, after: bytes, following: bytes = b"") -> None:
        """Pass on the next message with these bytes; close its connection in place of the reply.

        With *following*, only on a connection that has sent those bytes before.
        """
        self.lost.clear()
        self._following = following
        self._loses_after = after

    def close(self) -> None:
        self._run(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, steps: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(steps, self._loop).result(60)

    async def _cut(self) -> None:
        for writer in tuple(self._open):
            writer.transport.abort()

    async def _end(self) -> None:
        self._server.close()
        self._flows.set()
        await self._cut()
        current = asyncio.current_task()
        await asyncio.gather(
            *(task for task in asyncio.all_tasks() if task is not current), return_exceptions=True
        )

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there = await self._connected()
        if there is None:
            writer.transport.abort()
            return
        reads, writes = there
        doomed = asyncio.Event()
        self._open |= {writer, writes}
        try:
            await asyncio.gather(
                self._pass(reader, writes, doomed, is_reply=False),
                self._pass(reads, writer, doomed, is_reply=True),
            )
        finally:
            self._open -= {writer, writes}

    async def _connected(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        for _ in range(self._count):
            with suppress(OSError):
                async with asyncio.timeout(_CONNECT):
                    return await asyncio.open_connection(*next(self._targets))
        return None

    async def _pass(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        doomed: asyncio.Event,
        *,
        is_reply: bool,
    ) -> None:
        sent = b""
        with suppress(OSError):
            while data := await reader.read(_CHUNK):
                await self._flows.wait()
                if is_reply and doomed.is_set():
                    self.lost.set()
                    break
                if self._loses_after and not is_reply:
                    sent += data
                if self._loses_after and self._loses_after in data and self._following in sent:
                    self._loses_after = None
                    doomed.set()
                self.replied += len(data) * is_reply
                writer.write(data)
                await writer.drain()
        # Both directions end together: an HTTP or PostgreSQL connection is of no use half open.
        writer.transport.abort() if doomed.is_set() else writer.close()
