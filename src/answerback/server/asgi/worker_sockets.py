"""Messages between workers, so that a session is the same in all of them.

Each worker listens on a unix socket in a folder that only the workers can enter. A receiver
acknowledges a message once it has applied it, so whichever worker gets the client's next request
has already applied the message.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeAlias

import msgspec

from ...core.event_loop import spawn
from ...core.peer import Level
from ...errors import Unavailable
from ...protocol.jsonrpc import Id
from ...registry.composition import Switch
from ...registry.declarations import Change

_TIMEOUT = 2.0
"""Seconds to wait for another worker, which may have died."""


class SessionEnded(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """A client ended its session."""

    nonce: bytes
    expires: float
    """When the session would have expired."""


class SessionStatesWanted(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """A new worker asks the others for changed sessions."""

    worker: int


class LogLevelSet(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """A client set its session's log level."""

    nonce: bytes
    level: Level


class ResourceSubscribed(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """A client subscribed its session to a resource, or unsubscribed it."""

    nonce: bytes
    uri: str
    wanted: bool


class SessionChanged(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """Everything that differs from a new session."""

    nonce: bytes
    level: Level | None = None
    subscriptions: frozenset[str] = frozenset()


class SessionStates(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """All changed sessions and disabled entries, for a new worker."""

    changes: list[SessionEnded | SessionChanged]
    ended_until: float
    switches: list[Switch]


class RequestCancelled(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """A client cancelled a request in its session."""

    nonce: bytes
    id: Id


class QuestionAnswered(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """A session's client answered a question; *result* is None if it sent an error."""

    nonce: bytes
    id: Id
    result: bytes | None


class StreamState(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """A client opened a GET stream in its session at the time *since*, or closed it."""

    nonce: bytes
    since: int
    worker: int
    open: bool


class RegistryChanged(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """A list or a resource in the registry changed."""

    change: Change


class RegistrySwitched(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """A tool, prompt or resource was enabled or disabled."""

    switch: Switch


class FollowStream(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """A client resumed a stream on another worker."""

    stream: str
    nonce: bytes
    start: int
    worker: int
    reader: str


class StreamFrame(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """One frame of a stream that another worker is following; *last* marks its end."""

    reader: str
    frame: bytes
    last: bool


class WorkerLost(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """A worker has ended, and its streams with it. The bus itself sends this."""

    worker: int


class MessagesLost(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """Messages from other workers may have been lost. The bus itself sends this."""


WorkerMessage: TypeAlias = (
    SessionEnded
    | SessionChanged
    | SessionStatesWanted
    | SessionStates
    | LogLevelSet
    | ResourceSubscribed
    | RequestCancelled
    | QuestionAnswered
    | StreamState
    | RegistryChanged
    | RegistrySwitched
    | FollowStream
    | StreamFrame
    | WorkerLost
    | MessagesLost
)
decode_message: Callable[[bytes], WorkerMessage] = msgspec.msgpack.Decoder(WorkerMessage).decode
encode_message = msgspec.msgpack.Encoder().encode
OnMessage: TypeAlias = Callable[[WorkerMessage], Awaitable[None]]


class WorkerBus:
    """Sends messages to the other workers; this base class is for a server without any."""

    number = 0
    """This worker's number, once the bus has started."""
    _loop: asyncio.AbstractEventLoop | None = None

    def __init__(self) -> None:
        self._sending: set[asyncio.Task[None]] = set()

    async def start(self, on_message: OnMessage) -> None:
        """Join the other workers, and apply their changes so far."""

    async def close(self) -> None:
        """Leave the other workers."""

    def has(self, worker: int) -> bool:
        """Return whether *worker* is another worker of this server."""
        return False

    async def broadcast(self, message: WorkerMessage) -> None:
        """Send to all other workers; raises Unavailable.

        Workers on this machine have applied it when this returns. Those on other machines apply a
        session change soon after, even if they cannot be reached now.
        """

    async def send(self, worker: int, message: WorkerMessage) -> bool:
        """Send to one other worker; return whether it exists. Raises Unavailable."""
        return False

    async def catch_up(self) -> int:
        """Apply other workers' messages so far; return the current time, which orders streams.

        Raises Unavailable.
        """
        # All processes on a machine share this clock.
        return time.monotonic_ns()

    def forward(self, message: WorkerMessage) -> None:
        """Send to all other workers soon, if they can be reached. May be called from any thread."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._broadcast_soon, message)

    def forward_change(self, change: Change) -> None:
        self.forward(RegistryChanged(change))

    def forward_switch(self, switch: Switch) -> None:
        """Send a switch to the other workers. Callable from any thread; raises Unavailable."""
        self.forward(RegistrySwitched(switch))

    def _broadcast_soon(self, message: WorkerMessage) -> None:
        spawn(self._try_to_broadcast(message), self._sending)

    async def _try_to_broadcast(self, message: WorkerMessage) -> None:
        with suppress(Unavailable):
            await self.broadcast(message)


SINGLE_WORKER = WorkerBus()


class SocketBus(WorkerBus):
    """A bus of unix sockets, one per worker, in a folder created before the fork."""

    def __init__(self, folder: str, number: int, count: int) -> None:
        super().__init__()
        self.number = number
        self._folder = folder
        self._others = [worker for worker in range(count) if worker != number]
        self._connections: dict[int, _WorkerConnection] = {}

    async def start(self, on_message: OnMessage) -> None:
        self._loop = asyncio.get_running_loop()
        path = self._path(self.number)
        # The worker that this one replaces left its socket behind.
        if os.path.exists(path):
            os.unlink(path)
        self._server = await asyncio.start_unix_server(
            lambda r, w: _receive(r, w, on_message), path
        )
        # This worker may replace one that died.
        await self.broadcast(SessionStatesWanted(self.number))

    def has(self, worker: int) -> bool:
        return worker in self._others

    async def broadcast(self, message: WorkerMessage) -> None:
        await asyncio.gather(*(self.send(worker, message) for worker in self._others))

    async def send(self, worker: int, message: WorkerMessage) -> bool:
        connection = self._connections.setdefault(worker, _WorkerConnection(self._path(worker)))
        return await connection.send(encode_message(message))

    def _path(self, worker: int) -> str:
        return os.path.join(self._folder, str(worker))

    async def close(self) -> None:
        self._server.close()
        for connection in self._connections.values():
            connection.close()


class _WorkerConnection:
    """The connection to one worker, opened on first use and reopened after an error."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._lock = asyncio.Lock()
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def send(self, message: bytes) -> bool:
        """Return whether the worker has applied the message."""
        async with self._lock:
            try:
                async with asyncio.timeout(_TIMEOUT):
                    if self._streams is not None:
                        try:
                            await self._send(message)
                            return True
                        except (OSError, EOFError):
                            # The worker may have been replaced: send on a new connection.
                            self.close()
                    await self._send(message)
            except (OSError, EOFError, TimeoutError):
                self.close()
                return False
            return True

    async def _send(self, message: bytes) -> None:
        if self._streams is None:
            self._streams = await asyncio.open_unix_connection(self._path)
        reader, writer = self._streams
        writer.write(len(message).to_bytes(4) + message)
        await writer.drain()
        await reader.readexactly(1)

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


async def _receive(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    on_message: OnMessage,
) -> None:
    try:
        while True:
            size = int.from_bytes(await reader.readexactly(4))
            await on_message(decode_message(await reader.readexactly(size)))
            writer.write(b"+")
            await writer.drain()
    except (OSError, EOFError, asyncio.CancelledError):
        # The loop cancels this task when it ends; before Python 3.12 asyncio logs that as an error.
        pass
    finally:
        writer.close()
