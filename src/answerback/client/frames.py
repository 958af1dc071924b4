"""The messages between a client and a server, and the interface of a transport."""

from __future__ import annotations

import asyncio
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TypeAlias

import msgspec

from ..core.json_value import Json
from ..protocol.jsonrpc import NO_PARAMS, RpcError
from ..protocol.params import Id

MAX_FRAME = 64 * 1024 * 1024
"""The largest message that is read from a server."""


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


class Outgoing(msgspec.Struct):
    """A message to the server; only a request, which waits for its response, has an *id*."""

    frame: bytes
    id: Id | None = None
    method: str = ""
    headers: Mapping[str, str] = {}
    answer: asyncio.Future[msgspec.Raw] | None = None
    """A request's result, which may arrive over another stream than the request's own."""


Receive: TypeAlias = Callable[[bytes], Id | None]
"""Takes a frame from the server; returns the id if the frame is a response."""
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
    async def open(self, receive: Receive, lost: Lost) -> None:
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


_NEARLY_JSON = re.compile(rb"\\u[dD][89a-fA-F]|NaN|Infinity")


def _decode_nearly_json(frame: bytes) -> Incoming | None:
    """Return the message in a frame with NaN or half a character, as some servers send."""
    if not _NEARLY_JSON.search(frame):
        return None
    from ..reading.sources import load_json

    try:
        return incoming_decoder.decode(msgspec.json.encode(load_json(frame.decode())))
    except (ValueError, RecursionError):
        return None


# A response's id, where servers write it: at the beginning or at the end.
_FIRST_ID = re.compile(rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d{1,15})\b')
_LAST_ID = re.compile(rb',\s*"id"\s*:\s*(\d{1,15})\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$')


def malformed_response(frame: bytes) -> tuple[Id, str] | None:
    """Return an undecodable response's id, and the reason; None if it has no id."""
    found = _FIRST_ID.match(frame[:100]) or _LAST_ID.search(frame[-100:])
    if found is None or b'"method"' in frame[:200]:
        return None
    try:
        incoming_decoder.decode(frame)
    except RecursionError:
        return int(found[1]), "it is nested too deeply"
    except ValueError as exc:
        return int(found[1]), str(exc)
    return int(found[1]), "it has neither a result nor an error"
