"""A tap sees every message of a connection; its file can be replayed in place of the server."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
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
NOT_RECORDED = -32001
_LOGGER = logger("answerback.client")


class TapLine(msgspec.Struct, omit_defaults=True):
    """One line of a tap's file; *text* holds a frame that is not JSON."""

    direction: Direction
    at: float = 0.0
    """Seconds since 1970."""
    message: msgspec.Raw = msgspec.Raw()
    text: str = ""


def tapped(
    makers: tuple[Callable[[], Transport], ...], tap: str | os.PathLike[str] | Watcher
) -> tuple[Callable[[], Transport], ...]:
    """Return the transports, each with a tap: a function, or the name of a file to write."""
    watch = tap if callable(tap) else _FileTap(Path(tap)).write
    return tuple(_with_tap(make, watch) for make in makers)


def _with_tap(make: Callable[[], Transport], watch: Watcher) -> Callable[[], Transport]:
    return lambda: _Tapped(make(), watch)


class _FileTap:
    """Writes a line for each message at once, so that a crash loses none."""

    def __init__(self, path: Path) -> None:
        self._path = path
        # It has all arguments and replies, which only this program's user may see.
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600))

    def write(self, direction: str, frame: bytes) -> None:
        line = TapLine("sent" if direction == "sent" else "received", time.time())
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
    """The transport that answers from a tap's file.

    A request is answered as the first unused request in the file with the same method and
    parameters was, with the notifications and questions that preceded that answer.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lines: list[tuple[Direction, JsonObject]] = []
        self._used: set[int] = set()

    async def open(self, receiver: Receiver, lost: Lost) -> None:
        self._receive = receiver.receive
        try:
            self._lines = list(_messages(self._path))
        except (OSError, ValueError) as exc:
            raise ConnectError(f"cannot replay {self._path}: {exc}") from None

    async def send(self, outgoing: Outgoing) -> None:
        if outgoing.id is None:
            return
        asked = msgspec.json.decode(outgoing.frame)
        place = self._find(asked)
        if place is None:
            text = f"{outgoing.method} with these parameters is not in {self._path}"
            self._receive(error_frame(outgoing.id, RpcError(NOT_RECORDED, text)))
            return
        self._used.add(place)
        self._answer(place, asked)

    async def close(self) -> None:
        """Do nothing: there is nothing to close."""

    def _find(self, asked: JsonObject) -> int | None:
        wanted = _key(asked)
        for place, (direction, message) in enumerate(self._lines):
            if direction == "sent" and place not in self._used and _key(message) == wanted:
                return place
        return None

    def _answer(self, place: int, asked: JsonObject) -> None:
        """Receive what was received from *place* on, up to the response."""
        recorded = self._lines[place][1]
        token = _token(recorded)
        for number in range(place + 1, len(self._lines)):
            direction, message = self._lines[number]
            if direction == "sent" or number in self._used:
                continue
            is_response = "method" not in message
            if is_response and message.get("id") != recorded.get("id"):
                continue
            self._used.add(number)
            if is_response:
                self._receive(msgspec.json.encode({**message, "id": asked["id"]}))
                return
            if message.get("params", {}).get("progressToken") == token is not None:
                message = {**message, "params": {**message["params"], "progressToken": asked["id"]}}
            self._receive(msgspec.json.encode(message))
        raise ConnectionLost("the recording ends before the response")


def _messages(path: Path) -> Iterator[tuple[Direction, JsonObject]]:
    decoder = msgspec.json.Decoder(TapLine)
    for line in path.read_bytes().splitlines():
        found = decoder.decode(line)
        if found.text:
            continue
        message = msgspec.json.decode(found.message)
        for each in message if isinstance(message, list) else [message]:
            yield found.direction, each


def _key(message: JsonObject) -> tuple[Any, bytes]:
    """Return the method and the parameters without `_meta`, by which a request is found again."""
    params = dict(message.get("params") or {})
    params.pop("_meta", None)
    return message.get("method"), msgspec.json.encode(params, order="sorted")


def _token(message: JsonObject) -> Json:
    meta = (message.get("params") or {}).get("_meta") or {}
    return meta.get("progressToken")
