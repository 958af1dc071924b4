"""Streams that a client can come back to, wherever its request comes in."""

from __future__ import annotations

import asyncio
import os
from collections import OrderedDict

from .request import Headers
from .sessions import Visitor
from .sse import Log
from .worker_bus import Bus, Follow, Said

_MOST = 256
"""So many streams can be resumed; an older one is forgotten."""
_KEPT = 32 * 1024 * 1024
"""Bytes of such streams."""


class Streams:
    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._logs: OrderedDict[str, tuple[bytes, Log]] = OrderedDict()
        self._followed: dict[str, Log] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def new(self, visitor: Visitor) -> Log:
        """A log whose id says which worker has it."""
        id = f"{self._bus.number}.{os.urandom(8).hex()}"
        log = Log(asyncio.get_running_loop(), id)
        self._logs[id] = (visitor.nonce, log)
        while len(self._logs) > _MOST or sum(kept.size for _, kept in self._logs.values()) > _KEPT:
            self._logs.popitem(last=False)
        return log

    async def resumed(self, visitor: Visitor, headers: Headers) -> tuple[Log | None, int]:
        """The stream that a client lost, and how far it had read; maybe another worker has it."""
        last = headers.get(b"last-event-id", b"").decode("ascii", "replace")
        id, _, number = last.rpartition("-")
        worker = id.partition(".")[0]
        if not (number.isdigit() and worker.isdigit() and len(number) < 10 and len(worker) < 5):
            return None, 0
        if self._bus.has(int(worker)):
            return await self._followed_log(id, int(worker), visitor, int(number)), 0
        owner, log = self._logs.get(id, (b"", None))
        return (log, int(number)) if owner == visitor.nonce else (None, 0)

    def forget(self, log: Log) -> None:
        """Its client has gone: what another worker may still say of it is for nobody."""
        for reader, followed in list(self._followed.items()):
            if followed is log:
                del self._followed[reader]

    def hear(self, note: Follow | Said) -> None:
        if isinstance(note, Said):
            self._retold(note)
            return
        task = asyncio.ensure_future(self._retell(note))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _followed_log(self, id: str, worker: int, visitor: Visitor, start: int) -> Log:
        """Here the stream has no id: its events would be numbered anew."""
        log = Log(asyncio.get_running_loop())
        reader = os.urandom(8).hex()
        self._followed[reader] = log
        await self._bus.tell(worker, Follow(id, visitor.nonce, start, self._bus.number, reader))
        return log

    async def _retell(self, follow: Follow) -> None:
        """Send what is said on a stream of ours to the worker that its client came back to."""
        owner, log = self._logs.get(follow.log, (b"", None))
        if log is not None and owner == follow.nonce:
            async for frame in log.read(follow.start):
                await self._bus.tell(follow.worker, Said(follow.reader, frame, last=False))
        await self._bus.tell(follow.worker, Said(follow.reader, b"", last=True))

    def _retold(self, said: Said) -> None:
        log = self._followed.get(said.reader)
        if log is None:
            return
        if said.last:
            log.end()
            del self._followed[said.reader]
        else:
            log.append(said.frame)
