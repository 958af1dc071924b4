"""The streams of a session: which GET stream is active, and those that can be resumed.

A session may have several GET streams, at several workers. A notification goes only to the newest,
the active one. When it ends, the previous stream becomes active again.
"""

from __future__ import annotations

import asyncio
import os
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import OrderedDict

import msgspec

from ...core.event_loop import spawn
from ...errors import Unavailable
from ...protocol.jsonrpc import INTERNAL_ERROR, Id, RpcError, error_frame
from .request import Headers
from .sessions import HttpClient
from .sse import EventStream
from .worker_sockets import FollowStream, StreamFrame, StreamState, WorkerBus

_MAX_STREAMS = 256
"""Maximum resumable streams; beyond it the oldest is dropped."""
_MAX_BYTES = 32 * 1024 * 1024
"""Maximum bytes kept by these streams in total; beyond it the oldest is dropped."""

_MAX_REQUEST_ID = 64
"""Maximum length of a request's id in the id of its stream."""
_AFTER_FAILURE = 1.0
"""Seconds before a frame is sent again."""
_LOST = "The process that ran this call has ended; the call may have had an effect"


class ActiveStreams:
    """Knows the GET streams of each session, at all workers."""

    def __init__(self, worker: int) -> None:
        self._worker = worker
        self._streams: dict[bytes, dict[int, int]] = {}
        """By session: the worker of each stream, by the time the stream was opened."""

    def open(self, nonce: bytes, since: int) -> StreamState:
        """Register a new stream of this worker; the result is for the other workers."""
        message = StreamState(nonce, since, self._worker, True)
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

    def forget(self, worker: int) -> None:
        """Remove the streams of a worker that has ended."""
        for nonce, streams in list(self._streams.items()):
            for since in [since for since, each in streams.items() if each == worker]:
                self.apply(StreamState(nonce, since, worker, False))

    def is_active(self, stream: StreamState) -> bool:
        """Return whether the stream is the newest of its session."""
        return stream.since == max(self._streams.get(stream.nonce, (0,)))


class ResumableStreams:
    """Streams that a client can resume, at any worker."""

    def __init__(self, bus: WorkerBus) -> None:
        self._bus = bus
        self._streams: OrderedDict[str, tuple[bytes, EventStream]] = OrderedDict()
        self._followed: dict[str, _Followed] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def new(self, client: HttpClient, request: Id | None) -> EventStream:
        """Return a new stream; its id has the number of this worker and the id of its *request*.

        So another worker can answer the request if this worker has ended.
        """
        id = f"{self._bus.number}.{os.urandom(8).hex()}.{_packed(request)}"
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
        if not (number.isdigit() and worker.isdigit() and len(number) < 10 and len(worker) < 6):
            return None, 0
        if self._bus.has(int(worker)):
            followed = _Followed(EventStream(asyncio.get_running_loop()), int(worker), id)
            await self._follow(followed, client, int(number))
            return followed.stream, 0
        owner, stream = self._streams.get(id, (b"", None))
        return (stream, int(number)) if owner == client.nonce else (None, 0)

    def stop_following(self, stream: EventStream) -> None:
        """Stop following a stream of another worker, because its client has disconnected."""
        for reader, followed in list(self._followed.items()):
            if followed.stream is stream:
                del self._followed[reader]

    def apply(self, message: FollowStream | StreamFrame) -> None:
        if isinstance(message, FollowStream):
            spawn(self._forward(message), self._tasks)
        elif (followed := self._followed.get(message.reader)) is not None:
            if message.last:
                followed.stream.end()
                del self._followed[message.reader]
            else:
                followed.stream.append(message.frame)

    def end_streams_of(self, worker: int) -> None:
        """End the streams that are followed at a worker that has ended, each with an error."""
        for reader, followed in list(self._followed.items()):
            if followed.worker == worker:
                del self._followed[reader]
                followed.end_with_error()

    def end_followed(self) -> None:
        """End the streams of other workers, of which frames may be missing; clients resume them."""
        for followed in self._followed.values():
            followed.stream.end()
        self._followed.clear()

    async def _follow(self, followed: _Followed, client: HttpClient, start: int) -> None:
        """Follow a stream of another worker. It has no id here: its events get new numbers."""
        reader = os.urandom(8).hex()
        self._followed[reader] = followed
        wanted = FollowStream(followed.id, client.nonce, start, self._bus.number, reader)
        try:
            is_there = await self._bus.send(followed.worker, wanted)
        except Unavailable:
            self._followed.pop(reader, None)
            raise
        if not is_there:
            self._followed.pop(reader, None)
            followed.end_with_error()

    async def _forward(self, message: FollowStream) -> None:
        """Send a local stream's frames to the worker where its client resumed it."""
        owner, stream = self._streams.get(message.stream, (b"", None))
        if stream is not None and owner == message.nonce:
            async for frame in stream.read(message.start):
                sent = StreamFrame(message.reader, frame, last=False)
                if not await self._send_surely(message.worker, sent):
                    return
        await self._send_surely(message.worker, StreamFrame(message.reader, b"", last=True))

    async def _send_surely(self, worker: int, message: StreamFrame) -> bool:
        """Send, and try again while the database is away; return whether the worker is there."""
        while True:
            try:
                return await self._bus.send(worker, message)
            except Unavailable:
                await asyncio.sleep(_AFTER_FAILURE)


class _Followed:
    """A stream that is read here, and written by another worker."""

    def __init__(self, stream: EventStream, worker: int, id: str) -> None:
        self.stream = stream
        self.worker = worker
        self.id = id

    def end_with_error(self) -> None:
        """Answer the stream's request, because its worker has ended."""
        error = RpcError(INTERNAL_ERROR, _LOST, {"code": "WORKER_LOST", "retryable": False})
        self.stream.append(error_frame(_unpacked(self.id.rpartition(".")[2]), error))
        self.stream.end()


def _packed(request: Id | None) -> str:
    """Return a request's id as a part of a stream's id; empty if it is too long."""
    packed = urlsafe_b64encode(msgspec.json.encode(request)).decode()
    return packed if len(packed) <= _MAX_REQUEST_ID else ""


def _unpacked(packed: str) -> Id | None:
    try:
        found: Id | None = msgspec.json.decode(urlsafe_b64decode(packed), type=Id | None)
    except (ValueError, msgspec.DecodeError):
        return None
    return found
