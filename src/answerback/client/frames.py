"""Messages between a client and a server, their headers, and the transport interface."""

from __future__ import annotations

import asyncio
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol, TypeAlias

import msgspec

from ..core.json_value import Json, JsonObject
from ..core.limits import MAX_REPAIRED_BYTES, MAX_WIDE_BYTES
from ..core.versions import V2026_07_28, Version
from ..dialects.mcp import SERVER_INFO
from ..protocol.jsonrpc import NO_PARAMS, PREFIX, TASKS, Id, RpcError, is_batch, parse_batch
from ..protocol.mcp_request_info import NAMED_BY, encode_header, is_plain
from ..reading.sources import load_json
from ..types.json_text import has_more_marks
from .faults import INVALID_RESPONSE, TOO_LARGE

CLIENT_INFO = {"name": "answerback", "version": sys.modules["answerback"].__version__}


class ServerFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The facts that a server reported when the connection was opened."""

    version: Version
    """The MCP version that both sides speak."""
    capabilities: dict[str, Any] = {}
    """The capabilities that the server declared."""
    info: dict[str, Any] = {}
    """The server's `name` and `version`."""
    instructions: str = ""
    """The server's instructions for models."""

    @property
    def name(self) -> str:
        """The server's name; empty if it sent none."""
        return str(self.info.get("name") or "")

    @classmethod
    def of(cls, result: Mapping[str, Any], version: Version) -> ServerFacts:
        """Read the result of `initialize` or `server/discover`."""
        meta, capabilities = result.get("_meta"), result.get("capabilities")
        info = meta.get(SERVER_INFO) if isinstance(meta, dict) else None
        info = info or result.get("serverInfo")
        return cls(
            version=version,
            capabilities=capabilities if isinstance(capabilities, dict) else {},
            info=info if isinstance(info, dict) else {},
            instructions=str(result.get("instructions") or ""),
        )

    def offers(self, *path: str) -> bool:
        """Return whether the server declared a capability: `offers("tools", "listChanged")`."""
        found: Json = self.capabilities
        for name in path:
            if not isinstance(found, dict) or name not in found:
                return False
            found = found[name]
        return found is not False


def _with_meta(params: Mapping[str, Any], more: JsonObject) -> JsonObject:
    return {**params, "_meta": {**(params.get("_meta") or {}), **more}}


class StatefulEra:
    """2024-11-05 to 2025-11-25: the version is negotiated in `initialize`."""

    stateless = False

    def __init__(self, version: Version | None = None) -> None:
        self._headers = {} if version is None else {"MCP-Protocol-Version": version.name}

    def params(self, params: Mapping[str, Any], token: int | None) -> JsonObject:
        """Return the parameters to send; *token* asks for progress."""
        return dict(params) if token is None else _with_meta(params, {"progressToken": token})

    def headers(self, method: str, params: Mapping[str, Any]) -> dict[str, str]:
        """Return the HTTP headers for a request."""
        return self._headers


class StatelessEra:
    """2026-07-28: each request names its version and the client's capabilities."""

    stateless = True

    def __init__(
        self, capabilities: JsonObject, client: Mapping[str, Any], log_level: str | None = None
    ) -> None:
        self._meta: JsonObject = {
            PREFIX + "protocolVersion": V2026_07_28.name,
            PREFIX + "clientCapabilities": capabilities,
            PREFIX + "clientInfo": client,
        }
        if log_level is not None:
            self._meta[PREFIX + "logLevel"] = log_level
        self._encoded = msgspec.Raw(msgspec.json.encode(self._meta))

    def params(self, params: Mapping[str, Any], token: int | None) -> JsonObject:
        is_of_task = "task" in params or "taskId" in params
        if token is None and "_meta" not in params and not is_of_task:
            return {**params, "_meta": self._encoded}
        more = self._meta if token is None else {**self._meta, "progressToken": token}
        if is_of_task:
            # Earlier versions ask for a task with a parameter, this one with a capability.
            params = {name: value for name, value in params.items() if name != "task"}
            capabilities: JsonObject = self._meta[PREFIX + "clientCapabilities"]
            extensions = {**(capabilities.get("extensions") or {}), TASKS: {}}
            with_tasks = {**capabilities, "extensions": extensions}
            more = {**more, PREFIX + "clientCapabilities": with_tasks}
        return _with_meta(params, more)

    def headers(self, method: str, params: Mapping[str, Any]) -> dict[str, str]:
        found = {"MCP-Protocol-Version": V2026_07_28.name, "Mcp-Method": method}
        name = params.get(NAMED_BY.get(method, ""))
        if isinstance(name, str):
            found["Mcp-Name"] = name if is_plain(name) else encode_header(name)
        return found


MARK = "x-mcp-header"
HeaderPaths: TypeAlias = dict[tuple[str, ...], str]
"""Header names, keyed by the path of the argument that each one carries."""

_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_TYPES = frozenset({"string", "integer", "boolean"})
# The JSON Schema keywords that contain schemas. Values such as `default` and `enum` are data.
_ONE = frozenset(
    {"items", "contains", "unevaluatedItems", "additionalProperties", "propertyNames"}
    | {"unevaluatedProperties", "not", "if", "then", "else", "contentSchema"}
)
_SEVERAL = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_NAMED = frozenset({"patternProperties", "dependentSchemas", "$defs", "definitions"})


class BadAnnotation(ValueError):
    """A tool's `x-mcp-header` breaks an MCP rule; clients must exclude the tool."""


def header_paths(schema: Json) -> HeaderPaths:
    """Return the headers for calls to a tool with this input schema; raises BadAnnotation."""
    found: HeaderPaths = {}
    seen: set[str] = set()
    for path, part in _schemas(schema):
        if MARK not in part:
            continue
        name = part[MARK]
        if not path:
            raise BadAnnotation(f"{MARK} is not on a property of the arguments")
        if not isinstance(name, str) or not _TOKEN.fullmatch(name):
            raise BadAnnotation(f"{MARK} {name!r} is not a valid header name")
        if not isinstance(part.get("type"), str) or part["type"] not in _TYPES:
            raise BadAnnotation(f"{MARK} {name!r} is on a property of type {part.get('type')!r}")
        if name.lower() in seen:
            raise BadAnnotation(f"{MARK} {name!r} is used twice")
        seen.add(name.lower())
        found[path] = name
    return found


def param_headers(paths: HeaderPaths, arguments: Mapping[str, Any]) -> dict[str, str]:
    """Return a call's `Mcp-Param-*` headers; an absent or null argument has none."""
    headers = {}
    for path, name in paths.items():
        value: Json = arguments
        for step in path:
            value = value.get(step) if isinstance(value, Mapping) else None
        if isinstance(value, bool):
            headers[f"Mcp-Param-{name}"] = "true" if value else "false"
        elif isinstance(value, str | int | float):
            headers[f"Mcp-Param-{name}"] = encode_header(str(value))
    return headers


def _schemas(root: Json) -> Iterator[tuple[tuple[str, ...] | None, JsonObject]]:
    """Yield every schema in *root*, with its path if only `properties` lead to it; skip `$ref`."""
    waiting: list[tuple[tuple[str, ...] | None, Any]] = [((), root)]
    while waiting:
        path, part = waiting.pop()
        if not isinstance(part, dict):
            continue
        yield path, part
        for keyword, value in part.items():
            if keyword == "properties" and isinstance(value, dict):
                for name, inner in value.items():
                    waiting.append((None if path is None else (*path, name), inner))
            elif keyword in _ONE:
                waiting.append((None, value))
            elif keyword in _SEVERAL and isinstance(value, list):
                waiting.extend((None, inner) for inner in value)
            elif keyword in _NAMED and isinstance(value, dict):
                waiting.extend((None, inner) for inner in value.values())


_BEGINNING = 200
"""How many bytes of an unreadable frame are kept for the log."""
_NO_CODE = -32603
"""The code for an error without a numeric code."""


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
    """A request's result, which may arrive over a stream other than the request's own."""


class Receiver(Protocol):
    """Receives the server's frames; returns the id if a frame is a response."""

    def receive(self, frame: bytes) -> Id | None:
        """Receive a frame immediately."""

    async def receive_large(self, frame: bytes) -> Id | None:
        """Receive a frame of more than `LARGE` bytes and decode it in a thread.

        The transport resumes reading only afterwards, so that frames do not pile up.
        """

    def receive_cut(self, edges: bytes) -> None:
        """Receive the beginning and the end of a frame that is too large to keep."""


Lost: TypeAlias = Callable[[Exception], None]
"""Called with the error that broke the connection."""


class Transport(ABC):
    """Carries frames between this process and one server, by default over one stream."""

    closes_to_cancel = False
    """True if closing the response's stream cancels a stateless request."""
    has_headers = False
    """True if the transport sends a message's headers."""
    can_send_now = False
    """True if `send_now` may send a message."""

    @property
    def receives_changes(self) -> bool:
        """True if notifications can arrive outside of requests, in the stateful era."""
        return True

    def send_now(self, outgoing: Outgoing) -> bool:
        """Send a message without waiting; return False if `send` is needed instead."""
        return False

    @abstractmethod
    async def open(self, receiver: Receiver, lost: Lost) -> None:
        """Open the connection; raises ConnectError."""

    @abstractmethod
    async def send(self, outgoing: Outgoing) -> None:
        """Send a message; raises NoAnswer.

        Over HTTP, this returns when the response has been received.
        """

    async def listen(self) -> None:  # noqa: B027 -- most transports have one stream
        """Start receiving messages on a second stream, in the stateful era."""

    async def identity(self) -> str:
        """Return the requests' credentials; lists cached under other credentials are not used."""
        return ""

    @abstractmethod
    async def close(self) -> None:
        """Close the connection; never raises, and is safe to call more than once."""


incoming_decoder = msgspec.json.Decoder(Incoming)


def messages_in(frame: bytes, max_values: int) -> list[Incoming | Unreadable]:
    """Return the messages in *frame*; a batch has several."""
    excess = ""
    if has_more_marks(frame, max_values):
        excess = f"it has more than {max_values} JSON values; connect(…, max_values=…) allows more"
    elif len(frame) > MAX_WIDE_BYTES and not (frame.isascii() and b"\\u" not in frame):
        excess = f"it has more than {MAX_WIDE_BYTES} bytes, and non-ASCII characters"
    if excess:
        try:
            found = msgspec.json.decode(frame, type=_Addressee)
        except (ValueError, RecursionError):
            found = _Addressee(_id_in(frame))
        id = found.id if found.method is None else None
        return [Unreadable(frame[:_BEGINNING], id, excess, TOO_LARGE)]
    if frame[:1] != b"{" and is_batch(frame):
        try:
            return [_message_in(each) for each in parse_batch(frame)]
        except RpcError:
            return [Unreadable(frame[:_BEGINNING])]
    return [_message_in(frame)]


def cut_message(edges: bytes, reason: str) -> Unreadable:
    """Describe a frame that was too large to keep, from its *edges*."""
    return Unreadable(edges[:_BEGINNING], _id_in(edges), reason, TOO_LARGE)


def _message_in(frame: bytes) -> Incoming | Unreadable:
    message = decode_frame(frame)
    if message is not None:
        is_response = message.result is not msgspec.UNSET or message.error is not None
        if is_response or message.method is not None:
            return message
    return Unreadable(frame[:_BEGINNING], *(malformed_response(frame) or ()))


class _Addressee(msgspec.Struct):
    """The members that say who a message is for; the others are skipped."""

    id: Id | None = None
    method: str | None = None


def decode_frame(frame: bytes) -> Incoming | None:
    """Return the message in *frame*; None if it is not a JSON-RPC message."""
    try:
        return incoming_decoder.decode(frame)
    except (ValueError, RecursionError):
        # Some servers send invalid JSON or JSON-RPC.
        return _decode_nearly_json(frame) or _decode_odd_error(frame)


class _OddResponse(msgspec.Struct):
    """A response whose error is not an object, or has members of types that JSON-RPC forbids."""

    id: Id
    error: Json
    method: None = None


def _decode_odd_error(frame: bytes) -> Incoming | None:
    """Return the response in a frame with a malformed error, to keep the server's message."""
    try:
        found = msgspec.json.decode(frame, type=_OddResponse)
        error = found.error
        if error is None:
            return None
        if not isinstance(error, dict):
            return Incoming(found.id, error=ErrorBody(message=_text(error)))
        code, message, data = error.get("code"), error.get("message"), error.get("data")
        number = int(str(code)) if re.fullmatch(r"-?\d{1,6}", str(code)) else _NO_CODE
        if str(code) != str(number) and code is not None:
            data = {"code": code} if data is None else {"code": code, "data": data}
        if message is None:
            message = "" if code is None else f"error {_text(code)}"
        return Incoming(found.id, error=ErrorBody(number, _text(message), data))
    except (ValueError, RecursionError):
        return None


def _text(value: Json) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


_NEARLY_JSON = (b"\\ud", b"\\uD", b"NaN", b"Infinity")


def _decode_nearly_json(frame: bytes) -> Incoming | None:
    """Return the message in a frame with NaN or an unpaired surrogate, as sent by some servers."""
    if len(frame) > MAX_REPAIRED_BYTES or not any(each in frame for each in _NEARLY_JSON):
        return None
    try:
        return incoming_decoder.decode(msgspec.json.encode(load_json(frame.decode())))
    except (ValueError, RecursionError):
        return None


# Servers write a response's id at the beginning or at the end.
_FIRST_ID = re.compile(rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d{1,15})\b')
_LAST_ID = re.compile(rb',\s*"id"\s*:\s*(\d{1,15})\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$')


def _id_in(frame: bytes) -> int | None:
    found = _FIRST_ID.match(frame[:100]) or _LAST_ID.search(frame[-100:])
    return None if found is None or b'"method"' in frame[:200] else int(found[1])


def malformed_response(frame: bytes) -> tuple[Id, str] | None:
    """Return an undecodable response's id and what is wrong with it; None if it has no id."""
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
