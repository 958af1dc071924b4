"""A tap sees every message on a connection and writes it to a file or passes it to a function."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeAlias

import msgspec

from ..core.log import logger
from ..protocol.jsonrpc import Id
from .faults import ConnectError
from .frames import Lost, Outgoing, Receiver, Transport

Watcher: TypeAlias = Callable[[str, bytes], object]
_LOGGER = logger("answerback.client")


class TapLine(msgspec.Struct, omit_defaults=True):
    """One line in a tap's file; *text* holds a frame that is not JSON."""

    direction: str
    """"sent" or "received"."""
    at: float = 0.0
    """Seconds since 1970."""
    server: str = ""
    """The server's name, if the file covers several servers."""
    message: msgspec.Raw = msgspec.Raw()
    text: str = ""


class Tap:
    """Passes every message to a function, or writes it to a file shared by several servers."""

    def __init__(self, tap: str | os.PathLike[str] | Watcher) -> None:
        self._watch = tap if callable(tap) else None
        self._path = Path("" if callable(tap) else tap)
        if self._watch is None:
            path = self._path
            try:
                # It will contain all arguments and replies, which only this program's user may see.
                file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
                is_empty = os.fstat(file).st_size == 0
                os.close(file)
            except OSError as exc:
                raise ConnectError(f"cannot record to {path}: {exc.strerror}") from None
            if not is_empty:
                # Never overwrite an older recording.
                text = f"{path} already has a recording; remove it, or choose another file for tap="
                raise ConnectError(text)

    def transports(
        self, makers: tuple[Callable[[], Transport], ...], server: str
    ) -> tuple[Callable[[], Transport], ...]:
        """Wrap each of a server's transports with this tap."""
        watch = self._watch or partial(self._write, server)
        return tuple(partial(_Tapped, make, watch) for make in makers)

    def _write(self, server: str, direction: str, frame: bytes) -> None:
        """Write each message immediately, so that none is lost in a crash."""
        line = TapLine(direction, time.time(), server)
        try:
            frame.decode()
            msgspec.json.decode(frame, type=msgspec.Raw)
            line.message = msgspec.Raw(frame)
        except (ValueError, RecursionError):
            line.text = frame.decode(errors="replace")
        with self._path.open("ab") as file:
            file.write(msgspec.json.encode(line).replace(b"\n", b" ") + b"\n")


class _Tapped(Transport):
    """A transport that shows its messages to a watcher."""

    def __init__(self, make: Callable[[], Transport], watch: Watcher) -> None:
        self._transport = transport = make()
        self._watch = watch
        self.closes_to_cancel = transport.closes_to_cancel
        self.has_headers = transport.has_headers

    @property
    def receives_changes(self) -> bool:
        return self._transport.receives_changes

    async def open(self, receiver: Receiver, lost: Lost) -> None:
        await self._transport.open(_Watched(receiver, self._show), lost)

    async def send(self, outgoing: Outgoing) -> None:
        self._show("sent", outgoing.frame)
        await self._transport.send(outgoing)

    def _show(self, direction: str, frame: bytes) -> None:
        try:
            self._watch(direction, frame)
        except Exception:
            _LOGGER.exception("the tap raised; the message is passed on anyway")

    async def listen(self) -> None:
        await self._transport.listen()

    async def identity(self) -> str:
        return await self._transport.identity()

    async def close(self) -> None:
        await self._transport.close()


class _Watched:
    """A receiver that shows each frame to a watcher first."""

    def __init__(self, receiver: Receiver, show: Callable[[str, bytes], None]) -> None:
        self._receiver = receiver
        self._show = show

    def receive(self, frame: bytes) -> Id | None:
        self._show("received", frame)
        return self._receiver.receive(frame)

    async def receive_large(self, frame: bytes) -> Id | None:
        self._show("received", frame)
        return await self._receiver.receive_large(frame)

    def receive_cut(self, edges: bytes) -> None:
        self._receiver.receive_cut(edges)
