"""The streams of a session: which GET stream is active, and those that can be resumed.

A session may have several GET streams, at several workers. A notification goes only to the newest,
the active one. When it ends, the previous stream becomes active again.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import OrderedDict

from ...core.background import spawn
from .request import Headers
from .sessions import HttpClient
from .sse import EventStream
from .worker_sockets import FollowStream, StreamFrame, StreamState, WorkerBus

_MAX_STREAMS = 256
"""Maximum resumable streams; beyond it the oldest is dropped."""
_MAX_BYTES = 32 * 1024 * 1024
"""Maximum bytes kept by these streams in total; beyond it the oldest is dropped."""


class ActiveStreams:
    """Knows the GET streams of each session, at all workers."""

    def __init__(self, worker: int) -> None:
        self._worker = worker
        self._streams: dict[bytes, dict[int, int]] = {}
        """By session: the worker of each stream, by the time the stream was opened."""

    def open(self, nonce: bytes) -> StreamState:
        """Register a new stream of this worker; the result is for the other workers."""
        # This clock is the same for all processes of a machine.
        message = StreamState(nonce, time.monotonic_ns(), self._worker, True)
        self.apply(message)
        return message

    def close(self, opened: StreamState) -> StreamState:
        """Remove a stream of this worker; the result is for the other workers."""
        message = StreamState(opened.nonce, opened.since, self._worker, False)
        self.apply(message)
        return message

    def apply(self, message: StreamState) -> None:
        streams = self._streams.setdefault(message.nonce, {})
        if message.open:
            streams[message.since] = message.worker
        else:
            streams.pop(message.since, None)
        if not streams:
            del self._streams[message.nonce]

    def end_session(self, nonce: bytes) -> None:
        self._streams.pop(nonce, None)

    def is_active(self, stream: StreamState) -> bool:
        """Return whether the stream is the newest of its session."""
        return stream.since == max(self._streams.get(stream.nonce, (0,)))


class ResumableStreams:
    """Streams that a client can resume, at any worker."""

    def __init__(self, bus: WorkerBus) -> None:
        self._bus = bus
        self._streams: OrderedDict[str, tuple[bytes, EventStream]] = OrderedDict()
        self._followed: dict[str, EventStream] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def new(self, client: HttpClient) -> EventStream:
        """Return a new stream; its id has the number of this worker."""
        id = f"{self._bus.number}.{os.urandom(8).hex()}"
        stream = EventStream(asyncio.get_running_loop(), id)
        self._streams[id] = (client.nonce, stream)
        while (
            len(self._streams) > _MAX_STREAMS
            or sum(kept.size for _, kept in self._streams.values()) > _MAX_BYTES
        ):
            self._streams.popitem(last=False)
        return stream

    async def resume(self, client: HttpClient, headers: Headers) -> tuple[EventStream | None, int]:
        """Return the stream that a client resumes, from any worker, and the last event it has."""
        last = headers.get(b"last-event-id", b"").decode("ascii", "replace")
        id, _, number = last.rpartition("-")
        worker = id.partition(".")[0]
        if not (number.isdigit() and worker.isdigit() and len(number) < 10 and len(worker) < 5):
            return None, 0
        if self._bus.has(int(worker)):
            return await self._follow(id, int(worker), client, int(number)), 0
        owner, stream = self._streams.get(id, (b"", None))
        return (stream, int(number)) if owner == client.nonce else (None, 0)

    def stop_following(self, stream: EventStream) -> None:
        """Stop following a stream of another worker, because its client has disconnected."""
        for reader, followed in list(self._followed.items()):
            if followed is stream:
                del self._followed[reader]

    def apply(self, message: FollowStream | StreamFrame) -> None:
        if isinstance(message, FollowStream):
            spawn(self._forward(message), self._tasks)
        elif (stream := self._followed.get(message.reader)) is not None:
            if message.last:
                stream.end()
                del self._followed[message.reader]
            else:
                stream.append(message.frame)

    async def _follow(self, id: str, worker: int, client: HttpClient, start: int) -> EventStream:
        """Follow a stream of another worker. It has no id here: its events get new numbers."""
        stream = EventStream(asyncio.get_running_loop())
        reader = os.urandom(8).hex()
        self._followed[reader] = stream
        await self._bus.send(
            worker, FollowStream(id, client.nonce, start, self._bus.number, reader)
        )
        return stream

    async def _forward(self, message: FollowStream) -> None:
        """Send a local stream's frames to the worker where its client resumed it."""
        owner, stream = self._streams.get(message.stream, (b"", None))
        if stream is not None and owner == message.nonce:
            async for frame in stream.read(message.start):
                await self._bus.send(message.worker, StreamFrame(message.reader, frame, last=False))
        await self._bus.send(message.worker, StreamFrame(message.reader, b"", last=True))
