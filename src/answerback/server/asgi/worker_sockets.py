"""Messages between workers, so that a session is the same in all of them.

Each worker listens on a unix socket in a folder that only the workers can enter. The receiver
acknowledges a message once it is applied. So whichever worker takes a client's next request, the
message is applied there.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import msgspec

from ...core.peer import Level
from ...protocol.params import Id
from ...registry.declarations import Change
from ...registry.enabling import Switch

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
    """A client set the log level of its session."""

    nonce: bytes
    level: Level


class ResourceSubscribed(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """A client subscribed its session to a resource, or unsubscribed it."""

    nonce: bytes
    uri: str
    wanted: bool


class SessionStates(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """All sessions' changes, and what is disabled, for a new worker."""

    changes: list[SessionEnded | LogLevelSet | ResourceSubscribed]
    ended_until: float
    switches: list[Switch]


class RequestCancelled(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """A client cancelled a request of its session."""

    nonce: bytes
    id: Id


class QuestionAnswered(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """The client of a session answered a question; *result* is None if it sent an error."""

    nonce: bytes
    id: Id
    result: bytes | None


class StreamState(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """A client opened a GET stream of its session at the time *since*, or closed it."""

    nonce: bytes
    since: int
    worker: int
    open: bool


class RegistryChanged(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """A list or a resource of the registry changed."""

    change: Change


class RegistrySwitched(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """A tool, prompt or resource was enabled or disabled."""

    switch: Switch


class FollowStream(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """A client resumed a stream at another worker."""

    stream: str
    nonce: bytes
    start: int
    worker: int
    reader: str


class StreamFrame(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """One frame of a stream that another worker follows; *last* marks its end."""

    reader: str
    frame: bytes
    last: bool


WorkerMessage: TypeAlias = (
    SessionEnded
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
)
_messages = msgspec.msgpack.Decoder(WorkerMessage)
_encode = msgspec.msgpack.Encoder().encode


class WorkerBus:
    """Sends messages to the other workers; this one is for a server without any."""

    number = 0
    """The number of this worker."""

    def has(self, worker: int) -> bool:
        """Return whether *worker* is another worker of this server."""
        return False

    async def broadcast(self, message: WorkerMessage) -> None:
        """Send to all other workers, and wait until they have applied it."""

    async def send(self, worker: int, message: WorkerMessage) -> None:
        """Send to one other worker."""


SINGLE_WORKER = WorkerBus()


class SocketBus(WorkerBus):
    """A bus of unix sockets, one for each worker, in a folder made before the fork."""

    def __init__(self, folder: str, number: int, count: int) -> None:
        self.number = number
        self._folder = folder
        self._others = [worker for worker in range(count) if worker != number]
        self._connections: dict[int, _WorkerConnection] = {}

    async def start(self, on_message: Callable[[WorkerMessage], Awaitable[None]]) -> None:
        path = self._path(self.number)
        # A replaced worker left its socket behind.
        if os.path.exists(path):
            os.unlink(path)
        self._server = await asyncio.start_unix_server(
            lambda r, w: _receive(r, w, on_message), path
        )

    def has(self, worker: int) -> bool:
        return worker in self._others

    async def broadcast(self, message: WorkerMessage) -> None:
        await asyncio.gather(*(self.send(worker, message) for worker in self._others))

    async def send(self, worker: int, message: WorkerMessage) -> None:
        connection = self._connections.setdefault(worker, _WorkerConnection(self._path(worker)))
        await connection.send(_encode(message))

    def _path(self, worker: int) -> str:
        return os.path.join(self._folder, str(worker))

    async def close(self) -> None:
        self._server.close()
        for connection in self._connections.values():
            connection.close()


class _WorkerConnection:
    """The connection to one worker, opened at first use and again after an error."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._lock = asyncio.Lock()
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def send(self, message: bytes) -> None:
        async with self._lock:
            try:
                async with asyncio.timeout(_TIMEOUT):
                    await self._send_or_reconnect(message)
            except (OSError, EOFError, TimeoutError):
                self.close()

    async def _send_or_reconnect(self, message: bytes) -> None:
        """Send on the open connection, and on a new one if the worker has been replaced."""
        if self._streams is not None:
            try:
                await self._send(message)
                return
            except (OSError, EOFError):
                self.close()
        await self._send(message)

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
    on_message: Callable[[WorkerMessage], Awaitable[None]],
) -> None:
    try:
        while True:
            size = int.from_bytes(await reader.readexactly(4))
            message: Any = _messages.decode(await reader.readexactly(size))
            await on_message(message)
            writer.write(b"+")
            await writer.drain()
    except (OSError, EOFError, asyncio.CancelledError):
        # The loop cancels this task when it ends; before Python 3.12 asyncio logs that as an error.
        pass
    finally:
        writer.close()
