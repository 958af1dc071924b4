"""A tap sees every message of a connection; its file can be replayed in place of the server."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec

from ..core.json_value import Json, JsonObject
from ..core.log import logger
from ..protocol.jsonrpc import RpcError, error_frame
from ..protocol.params import Id
from .faults import ConnectError, ConnectionLost
from .frames import Lost, Outgoing, Receiver, Transport

Direction: TypeAlias = Literal["sent", "received"]
Watcher: TypeAlias = Callable[[str, bytes], object]
Recording: TypeAlias = list[tuple[Direction, JsonObject]]
NOT_RECORDED = -32001
_LOGGER = logger("answerback.client")


class TapLine(msgspec.Struct, omit_defaults=True):
    """One line of a tap's file; *text* holds a frame that is not JSON."""

    direction: Direction
    at: float = 0.0
    """Seconds since 1970."""
    server: str = ""
    """The server's name, if the file has several servers."""
    message: msgspec.Raw = msgspec.Raw()
    text: str = ""


class Tap:
    """Gives every message to a function, or writes it to a file that several servers share."""

    def __init__(self, tap: str | os.PathLike[str] | Watcher) -> None:
        self._watch = tap if callable(tap) else None
        self._path = Path("" if callable(tap) else tap)
        if self._watch is None:
            _create(self._path)

    def transports(
        self, makers: tuple[Callable[[], Transport], ...], server: str
    ) -> tuple[Callable[[], Transport], ...]:
        """Return a server's transports, each with this tap."""
        watch = self._watch or partial(self._write, server)
        return tuple(_with_tap(make, watch) for make in makers)

    def _write(self, server: str, direction: str, frame: bytes) -> None:
        """Write a line for each message at once, so that a crash loses none."""
        line = TapLine("sent" if direction == "sent" else "received", time.time(), server)
        try:
            frame.decode()
            msgspec.json.decode(frame, type=msgspec.Raw)
            line.message = msgspec.Raw(frame)
        except (ValueError, RecursionError):
            line.text = frame.decode(errors="replace")
        with self._path.open("ab") as file:
            file.write(msgspec.json.encode(line).replace(b"\n", b" ") + b"\n")


def _create(path: Path) -> None:
    """Create a tap's file; raises ConnectError rather than lose an older recording."""
    try:
        # It has all arguments and replies, which only this program's user may see.
        file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
        is_empty = os.fstat(file).st_size == 0
        os.close(file)
    except OSError as exc:
        raise ConnectError(f"cannot record into {path}: {exc.strerror}") from None
    if not is_empty:
        text = f"{path} has a recording already; remove it, or name another file for tap="
        raise ConnectError(text)


def _with_tap(make: Callable[[], Transport], watch: Watcher) -> Callable[[], Transport]:
    return lambda: _Tapped(make(), watch)


class _Tapped(Transport):
    """A transport that shows its messages to a watcher."""

    def __init__(self, transport: Transport, watch: Watcher) -> None:
        self._transport = transport
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
            _LOGGER.exception("the tap raised; the message goes on without it")

    async def listen(self) -> None:
        await self._transport.listen()

    async def identity(self) -> str:
        return await self._transport.identity()

    async def close(self) -> None:
        await self._transport.close()


class _Watched:
    """A receiver that shows the frames first."""

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


class Replay(Transport):
    """The transport that answers from a recording.

    A request is answered as the first unused request in the recording with the same method and
    parameters was, with the notifications and questions that preceded that answer. If all of
    them are used, the last is used again.
    """

    def __init__(self, path: Path, recording: Recording) -> None:
        self._path = path
        self._lines = recording
        self._given: dict[int, list[int]] = {}
        """The used requests, and what was received for each, as places in the recording."""

    async def open(self, receiver: Receiver, lost: Lost) -> None:
        self._receive = receiver.receive

    async def send(self, outgoing: Outgoing) -> None:
        if outgoing.id is None:
            return
        asked = msgspec.json.decode(outgoing.frame)
        place = self._find(asked)
        if place is None:
            text = f"{outgoing.method} with these parameters is not in {self._path}"
            self._receive(error_frame(outgoing.id, RpcError(NOT_RECORDED, text)))
            return
        if place not in self._given:
            self._given[place] = self._received_for(place)
        self._answer(place, asked)

    async def close(self) -> None:
        """Do nothing: there is nothing to close."""

    def _find(self, asked: JsonObject) -> int | None:
        wanted = _key(asked)
        found = None
        for place, (direction, message) in enumerate(self._lines):
            if direction == "sent" and _key(message) == wanted:
                found = place
                if place not in self._given:
                    break
        return found

    def _received_for(self, place: int) -> list[int]:
        """Return the places of what was received from *place* on, up to the response."""
        used = {number for each in self._given.values() for number in each}
        id = self._lines[place][1].get("id")
        found = []
        for number in range(place + 1, len(self._lines)):
            direction, message = self._lines[number]
            is_response = "method" not in message
            if direction == "sent" or number in used or (is_response and message.get("id") != id):
                continue
            found.append(number)
            if is_response:
                break
        return found

    def _answer(self, place: int, asked: JsonObject) -> None:
        token = _token(self._lines[place][1])
        for number in self._given[place]:
            message = self._lines[number][1]
            if "method" not in message:
                self._receive(msgspec.json.encode({**message, "id": asked["id"]}))
                return
            if message.get("params", {}).get("progressToken") == token is not None:
                message = {**message, "params": {**message["params"], "progressToken": asked["id"]}}
            self._receive(msgspec.json.encode(message))
        raise ConnectionLost("the recording ends before the response")


def read_recording(path: Path) -> dict[str, Recording]:
    """Return the messages in a tap's file by their server's name; raises ConnectError."""
    decoder = msgspec.json.Decoder(TapLine)
    found: dict[str, Recording] = {}
    try:
        for line in path.read_bytes().splitlines():
            read = decoder.decode(line)
            if not read.text:
                message = msgspec.json.decode(read.message)
                each = message if isinstance(message, list) else [message]
                found.setdefault(read.server, []).extend((read.direction, one) for one in each)
    except (OSError, ValueError) as exc:
        raise ConnectError(f"cannot replay {path}: {exc}") from None
    return found


def _key(message: JsonObject) -> tuple[Any, bytes]:
    """Return the method and the parameters by which a request is found again.

    `_meta`, and what the client says about itself, differ between releases.
    """
    method = message.get("method")
    left_out = {"_meta", "clientInfo", "capabilities"} if method == "initialize" else {"_meta"}
    params = message.get("params") or {}
    kept = {name: value for name, value in params.items() if name not in left_out}
    return method, msgspec.json.encode(kept, order="sorted")


def _token(message: JsonObject) -> Json:
    meta = (message.get("params") or {}).get("_meta") or {}
    return meta.get("progressToken")
