"""What workers tell each other: so that a session is the same session in all of them.

Each listens on a socket of its own in a folder that only they can enter. What is told is
acknowledged, so that a client's next request finds it done whichever worker takes it.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeAlias

import msgspec

from ...mcp.messages import Id
from ...peer import Level
from ...registry import Change

_PATIENCE = 2.0
"""Seconds to wait for another worker; one that has died does not answer."""


class Ended(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """A session is over."""

    nonce: bytes


class Levelled(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """A session wants log messages from this level on."""

    nonce: bytes
    level: Level


class Subscribed(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """A session wants to hear of a resource, or no longer."""

    nonce: bytes
    uri: str
    wanted: bool


class Cancelled(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """A session gives up a request."""

    nonce: bytes
    id: Id


class Answered(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """A session answers a question of ours."""

    nonce: bytes
    id: Id
    result: bytes | None
    error: bytes | None


class Listens(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """A session has a stream open, since that moment; or no longer."""

    nonce: bytes
    since: int
    worker: int
    open: bool


class Changed(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """A list or a resource of the app is not what it was."""

    change: Change


class Follow(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """A client came back, to another worker, for the rest of a stream."""

    log: str
    nonce: bytes
    start: int
    worker: int
    reader: str


class Said(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """One frame of a stream that is followed; the last one says that it is."""

    reader: str
    frame: bytes
    last: bool


Note: TypeAlias = (
    Ended | Levelled | Subscribed | Cancelled | Answered | Listens | Changed | Follow | Said
)
_notes = msgspec.msgpack.Decoder(Note)
_encode = msgspec.msgpack.Encoder().encode


class Bus(Protocol):
    """The other workers."""

    @property
    def number(self) -> int:
        """Which worker this is."""

    def has(self, worker: int) -> bool:
        """Whether there is such another worker."""

    async def tell_all(self, note: Note) -> None:
        """Tell all the others; gives back when they have heard."""

    async def tell(self, worker: int, note: Note) -> None:
        """Tell one of the others."""


class Alone:
    """There are no others."""

    number = 0

    def has(self, worker: int) -> bool:
        return False

    async def tell_all(self, note: Note) -> None:
        pass

    async def tell(self, worker: int, note: Note) -> None:
        pass


ALONE: Bus = Alone()


class Sockets:
    """A bus of unix sockets, one for each worker, in a folder made before they were forked."""

    def __init__(self, folder: str, number: int, count: int) -> None:
        self.number = number
        self._folder = folder
        self._others = [worker for worker in range(count) if worker != number]
        self._lines: dict[int, _Line] = {}

    async def start(self, hear: Callable[[Note], Awaitable[None]]) -> None:
        path = self._path(self.number)
        # A worker that takes the place of a dead one finds its socket there.
        if os.path.exists(path):
            os.unlink(path)
        self._server = await asyncio.start_unix_server(lambda r, w: _listen(r, w, hear), path)

    def has(self, worker: int) -> bool:
        return worker in self._others

    async def tell_all(self, note: Note) -> None:
        await asyncio.gather(*(self.tell(worker, note) for worker in self._others))

    async def tell(self, worker: int, note: Note) -> None:
        line = self._lines.setdefault(worker, _Line(self._path(worker)))
        await line.say(_encode(note))

    def _path(self, worker: int) -> str:
        return os.path.join(self._folder, str(worker))

    async def close(self) -> None:
        self._server.close()
        for line in self._lines.values():
            line.close()


class _Line:
    """The way to one worker, opened when it is needed and again when it breaks."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._lock = asyncio.Lock()
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def say(self, message: bytes) -> None:
        async with self._lock:
            try:
                async with asyncio.timeout(_PATIENCE):
                    await self._say(message)
            except (OSError, EOFError, TimeoutError):
                self.close()

    async def _say(self, message: bytes) -> None:
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


async def _listen(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    hear: Callable[[Note], Awaitable[None]],
) -> None:
    try:
        while True:
            size = int.from_bytes(await reader.readexactly(4))
            note: Any = _notes.decode(await reader.readexactly(size))
            await hear(note)
            writer.write(b"+")
            await writer.drain()
    except (OSError, EOFError, asyncio.CancelledError):
        # The last is how a loop ends; before 3.12 asyncio would log it as a fault.
        pass
    finally:
        writer.close()
