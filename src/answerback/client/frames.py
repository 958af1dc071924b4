"""The messages between a client and a server, and the interface of a transport."""

from __future__ import annotations

import asyncio
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Protocol, TypeAlias

import msgspec

from ..core.json_value import Json
from ..core.limits import MAX_REPAIRED_BYTES, MAX_WIDE_BYTES
from ..protocol.jsonrpc import NO_PARAMS, Id, RpcError, is_batch, parse_batch
from ..types.json_text import has_more_marks
from .faults import INVALID_RESPONSE, TOO_LARGE

_BEGINNING = 200
"""How many bytes of an unreadable frame are kept for the log."""
_NO_CODE = -32603
"""The code of an error without a number."""


class ErrorBody(msgspec.Struct):
    code: int = _NO_CODE
    message: str = ""
    data: Json = None

    def as_exception(self) -> RpcError:
        return RpcError(self.code, self.message or f"error {self.code}", self.data)


class Incoming(msgspec.Struct):
    """A message from the server: a response, a request or a notification."""

    id: Id | None = None
    method: str | None = None
    params: msgspec.Raw = NO_PARAMS
    result: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    error: ErrorBody | None = None


class Unreadable(msgspec.Struct):
    """A frame that is not a message, or is too large to be decoded."""

    beginning: bytes
    id: Id | None = None
    """The id of the request that the frame answers."""
    reason: str = ""
    code: str = INVALID_RESPONSE


class Outgoing(msgspec.Struct):
    """A message to the server; only a request, which waits for its response, has an *id*."""

    frame: bytes
    id: Id | None = None
    method: str = ""
    headers: Mapping[str, str] = {}
    answer: asyncio.Future[msgspec.Raw] | None = None
    """A request's result, which may arrive over another stream than the request's own."""


class Receiver(Protocol):
    """Takes the server's frames; returns the id if a frame is a response."""

    def receive(self, frame: bytes) -> Id | None:
        """Take a frame at once."""

    async def receive_large(self, frame: bytes) -> Id | None:
        """Take a frame of more than `LARGE` bytes, which is decoded on a thread.

        The transport reads on after this, so that frames do not gather.
        """

    def receive_cut(self, edges: bytes) -> None:
        """Take the beginning and the end of a frame that is too large to be kept."""


Lost: TypeAlias = Callable[[Exception], None]
"""Takes the reason why the connection broke."""


class Transport(ABC):
    """Carries frames between this process and one server, by default over one stream."""

    closes_to_cancel = False
    """True if closing the response's stream cancels a stateless request."""
    has_headers = False
    """True if a message's headers are sent."""
    can_send_now = False
    """True if `send_now` may send a message."""

    @property
    def receives_changes(self) -> bool:
        """True if notifications that belong to no request arrive, in the stateful era."""
        return True

    def send_now(self, outgoing: Outgoing) -> bool:
        """Send a message without waiting; return False if nothing was sent: then use `send`."""
        return False

    @abstractmethod
    async def open(self, receiver: Receiver, lost: Lost) -> None:
        """Open the connection; raises ConnectError."""

    @abstractmethod
    async def send(self, outgoing: Outgoing) -> None:
        """Send a message; raises NoAnswer.

        Over HTTP this returns when the request's response has been received.
        """

    async def listen(self) -> None:  # noqa: B027 -- one stream needs no second
        """Begin to receive messages on a second stream, in the stateful era."""

    async def identity(self) -> str:
        """Return the requests' credentials; replies to other credentials are not shared."""
        return ""

    @abstractmethod
    async def close(self) -> None:
        """Close the connection; never raises, and may be called twice."""


incoming_decoder = msgspec.json.Decoder(Incoming)


def messages_in(frame: bytes, max_values: int) -> list[Incoming | Unreadable]:
    """Return the messages in *frame*; a batch has several."""
    if excess := _excess(frame, max_values):
        return [_too_large(frame, excess)]
    if frame[:1] != b"{" and is_batch(frame):
        try:
            return [_message_in(each) for each in parse_batch(frame)]
        except RpcError:
            return [Unreadable(frame[:_BEGINNING])]
    return [_message_in(frame)]


def cut_message(edges: bytes, reason: str) -> Unreadable:
    """Return a frame that was too large to be kept, of which only the *edges* are known."""
    return Unreadable(edges[:_BEGINNING], _id_in(edges), reason, TOO_LARGE)


def _message_in(frame: bytes) -> Incoming | Unreadable:
    message = decode_frame(frame)
    if message is not None:
        is_response = message.result is not msgspec.UNSET or message.error is not None
        if is_response or message.method is not None:
            return message
    found = malformed_response(frame)
    return Unreadable(frame[:_BEGINNING], *(found or ()))


def _excess(frame: bytes, max_values: int) -> str:
    """Say why a frame is too large to be decoded; return nothing if it is not."""
    if has_more_marks(frame, max_values):
        return f"it has more than {max_values} JSON values; connect(…, max_values=…) allows more"
    if len(frame) > MAX_WIDE_BYTES and not (frame.isascii() and b"\\u" not in frame):
        return f"it has more than {MAX_WIDE_BYTES} bytes, and characters beyond ASCII"
    return ""


class _Addressee(msgspec.Struct):
    """The members that say whom a message is for; the others are skipped."""

    id: Id | None = None
    method: str | None = None


def _too_large(frame: bytes, reason: str) -> Unreadable:
    try:
        found = msgspec.json.decode(frame, type=_Addressee)
    except (ValueError, RecursionError):
        found = _Addressee(_id_in(frame))
    id = found.id if found.method is None else None
    return Unreadable(frame[:_BEGINNING], id, reason, TOO_LARGE)


def decode_frame(frame: bytes) -> Incoming | None:
    """Return the message in *frame*; None if it is not a JSON-RPC message."""
    try:
        return incoming_decoder.decode(frame)
    except (ValueError, RecursionError):
        # Some servers' frames break JSON or JSON-RPC.
        return _decode_nearly_json(frame) or _decode_odd_error(frame)


class _OddResponse(msgspec.Struct):
    """A response whose error is not an object, or has members of other types than in JSON-RPC."""

    id: Id
    error: Json
    method: None = None


def _decode_odd_error(frame: bytes) -> Incoming | None:
    """Return the response in a frame with such an error, to keep the server's message."""
    try:
        found = msgspec.json.decode(frame, type=_OddResponse)
        return None if found.error is None else Incoming(found.id, error=_odd_error(found.error))
    except (ValueError, RecursionError):
        return None


def _odd_error(error: Json) -> ErrorBody:
    if not isinstance(error, dict):
        return ErrorBody(message=_text(error))
    code, message, data = error.get("code"), error.get("message"), error.get("data")
    number = int(str(code)) if re.fullmatch(r"-?\d{1,6}", str(code)) else _NO_CODE
    if str(code) != str(number) and code is not None:
        data = {"code": code} if data is None else {"code": code, "data": data}
    said = message if message is not None else "" if code is None else f"error {_text(code)}"
    return ErrorBody(number, _text(said), data)


def _text(value: Json) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


_NEARLY_JSON = (b"\\ud", b"\\uD", b"NaN", b"Infinity")


def _decode_nearly_json(frame: bytes) -> Incoming | None:
    """Return the message in a frame with NaN or half a character, as some servers send."""
    if len(frame) > MAX_REPAIRED_BYTES or not any(each in frame for each in _NEARLY_JSON):
        return None
    from ..reading.sources import load_json

    try:
        return incoming_decoder.decode(msgspec.json.encode(load_json(frame.decode())))
    except (ValueError, RecursionError):
        return None


# A response's id, where servers write it: at the beginning or at the end.
_FIRST_ID = re.compile(rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d{1,15})\b')
_LAST_ID = re.compile(rb',\s*"id"\s*:\s*(\d{1,15})\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$')


def _id_in(frame: bytes) -> int | None:
    found = _FIRST_ID.match(frame[:100]) or _LAST_ID.search(frame[-100:])
    return None if found is None or b'"method"' in frame[:200] else int(found[1])


def malformed_response(frame: bytes) -> tuple[Id, str] | None:
    """Return an undecodable response's id, and the reason; None if it has no id."""
    id = _id_in(frame)
    if id is None:
        return None
    try:
        incoming_decoder.decode(frame)
    except RecursionError:
        return id, "it is nested too deeply"
    except ValueError as exc:
        return id, str(exc)
    return id, "it has neither a result nor an error"
