"""JSON-RPC as MCP uses it: the messages, and how they are parsed and written."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

import msgspec

from ..core.json_value import is_integer
from ..core.peer import Level
from ..types.json_text import LARGE, MAX_DEPTH, refuse_bad_text
from ..types.problems import InvalidJson

if TYPE_CHECKING:
    from ..core.json_value import Json, JsonObject


PREFIX = "io.modelcontextprotocol/"
"""MCP's own prefix for names in `_meta`."""
TASKS = PREFIX + "tasks"
"""The name of MCP's tasks extension."""
Id: TypeAlias = int | str
"""A request id or a progress token."""


class Meta(msgspec.Struct):
    """The `_meta` of a request."""

    token: Id | None = msgspec.field(default=None, name="progressToken")
    version: str | msgspec.UnsetType = msgspec.field(
        default=msgspec.UNSET, name=PREFIX + "protocolVersion"
    )
    capabilities: dict[str, Any] | msgspec.UnsetType = msgspec.field(
        default=msgspec.UNSET, name=PREFIX + "clientCapabilities"
    )
    level: Level | None = msgspec.field(default=None, name=PREFIX + "logLevel")
    idempotency_key: str | None = msgspec.field(default=None, name="answerback/idempotencyKey")
    """Chosen by the client; each key creates only one task."""


class Common(msgspec.Struct, kw_only=True):
    """The parameters that every request may have."""

    meta: Meta | msgspec.UnsetType = msgspec.field(default=msgspec.UNSET, name="_meta")


class RetriedRequest(Common, kw_only=True):
    """A request that a stateless client may repeat, with its user's answers."""

    responses: dict[str, dict[str, Any]] = msgspec.field(default={}, name="inputResponses")
    state: str | None = msgspec.field(default=None, name="requestState")


class ToolCall(RetriedRequest, kw_only=True):
    """`tools/call`."""

    name: str
    arguments: msgspec.Raw = msgspec.Raw(b"{}")
    task: object = None
    """In 2025-11-25, this requests a task; later versions ignore it."""


class TaskId(msgspec.Struct):
    """`tasks/get`, `tasks/cancel` and `tasks/result`."""

    id: str = msgspec.field(name="taskId")


class TaskUpdate(TaskId):
    """`tasks/update`: answers to a task's questions."""

    responses: dict[str, dict[str, Any]] = msgspec.field(default={}, name="inputResponses")


class Initialize(msgspec.Struct):
    version: str = msgspec.field(name="protocolVersion")
    capabilities: dict[str, Any] = {}
    info: object = msgspec.field(default=None, name="clientInfo")


class PageParams(msgspec.Struct):
    cursor: str | None = None


class ReadResource(msgspec.Struct):
    uri: str


class GetPrompt(msgspec.Struct):
    name: str
    arguments: dict[str, str] = {}


class SetLevel(msgspec.Struct):
    level: Level


class Reference(msgspec.Struct):
    """The prompt or resource that an argument belongs to."""

    type: Literal["ref/prompt", "ref/resource"]
    name: str | None = None
    uri: str | None = None

    @property
    def target(self) -> str:
        """The name of the prompt, or the URI of the resource; a client may send both."""
        return (self.name if self.type == "ref/prompt" else self.uri) or ""


class Argument(msgspec.Struct):
    name: str
    value: str


class CompletionContext(msgspec.Struct):
    arguments: dict[str, str] = {}


class Complete(msgspec.Struct):
    ref: Reference
    argument: Argument
    context: CompletionContext = msgspec.field(default_factory=CompletionContext)


class CancelledParams(msgspec.Struct):
    id: Id | None = msgspec.field(default=None, name="requestId")


T = TypeVar("T")

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
RESOURCE_NOT_FOUND = -32002
HEADER_MISMATCH = -32020
MISSING_CAPABILITY = -32021
UNSUPPORTED_VERSION = -32022
URL_ELICITATION_REQUIRED = -32042
"""The client must send its user to a page first; used only in 2025-11-25."""

MAX_BATCH = 1000
"""The maximum number of messages in a batch; its responses stay in memory until all are ready."""

Params: TypeAlias = msgspec.Raw | msgspec.Struct
"""The parameters of a request, as JSON text or already decoded: `read_params` accepts both."""
NO_PARAMS = msgspec.Raw(b"{}")
Frame: TypeAlias = bytes | tuple[bytes, ...]
"""An outgoing message; a large one is split into pieces, because joining them would copy it."""


class RpcError(Exception):
    """An error response, instead of a result."""

    challenge: tuple[int, str] | None = None
    """The HTTP status and the value of `WWW-Authenticate`, if the client must log in."""

    def __init__(self, code: int, message: str, data: Json = None, *, id: Id | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data
        self.id = id


class Request(msgspec.Struct, frozen=True):
    """A message that expects a response with this *id*."""

    id: Id
    method: str
    params: Params = NO_PARAMS


class Notification(msgspec.Struct, frozen=True):
    """A message that expects no response."""

    method: str
    params: msgspec.Raw = NO_PARAMS


class Response(msgspec.Struct, frozen=True):
    """The client's response to one of our requests; *result* is None if it is an error."""

    id: Id
    result: msgspec.Raw | None = None


Message: TypeAlias = Request | Notification | Response


class _CallFrame(Request, frozen=True, kw_only=True):
    """A `tools/call`, decoded in one step because most requests are tool calls."""

    jsonrpc: Literal["2.0"]
    method: Literal["tools/call"]
    params: ToolCall


class _Frame(msgspec.Struct):
    jsonrpc: str = ""
    id: int | str | msgspec.UnsetType = msgspec.UNSET
    method: str | msgspec.UnsetType = msgspec.UNSET
    params: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    result: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    error: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class _IdOnly(msgspec.Struct):
    """The id of a malformed message; the other members are skipped, which is cheap."""

    id: object = None


_calls = msgspec.json.Decoder(_CallFrame)
_frames = msgspec.json.Decoder(_Frame)
_encode = msgspec.json.Encoder().encode


def parse(text: bytes) -> Message:
    """Return the one message in *text*; raises RpcError, with the id if it is readable."""
    try:
        # JSON with few brackets cannot be nested too deeply, and ASCII is valid UTF-8. Counting
        # the brackets in a large message would take too long.
        if (
            len(text) > LARGE
            or text.count(b"{") + text.count(b"[") > MAX_DEPTH
            or not text.isascii()
        ):
            refuse_bad_text(text)
        if b'"tools/call"' in text:
            try:
                return _calls.decode(text)
            except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
                pass  # It is unusual or malformed, so decode it step by step.
        frame = _frames.decode(text)
    except (msgspec.ValidationError, InvalidJson) as exc:
        raise _malformed(text, exc) from None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as exc:
        raise RpcError(PARSE_ERROR, f"Parse error: {exc}") from None
    id = None if frame.id is msgspec.UNSET else frame.id
    if frame.jsonrpc != "2.0":
        raise RpcError(INVALID_REQUEST, 'jsonrpc must be "2.0"', id=id)
    if frame.method is not msgspec.UNSET:
        params = NO_PARAMS if frame.params is msgspec.UNSET else frame.params
        if not bytes(params).lstrip().startswith(b"{"):
            raise RpcError(INVALID_REQUEST, "params must be an object", id=id)
        return (
            Notification(frame.method, params) if id is None else Request(id, frame.method, params)
        )
    is_response = frame.result is not msgspec.UNSET or frame.error is not msgspec.UNSET
    if id is None or not is_response:
        raise RpcError(INVALID_REQUEST, "neither a request, a notification nor a response", id=id)
    return Response(id, None if frame.result is msgspec.UNSET else frame.result)


def is_batch(text: bytes) -> bool:
    """Return True for a JSON array."""
    return text[:1] != b"{" and text.lstrip(b" \t\r\n").startswith(b"[")


def parse_batch(text: bytes) -> list[bytes]:
    """Return the raw messages in a JSON array; raises RpcError."""
    try:
        refuse_bad_text(text)
        parts = msgspec.structs.astuple(_batch_decoder().decode(text))
        return [bytes(part) for part in parts if part]
    except msgspec.ValidationError:
        too_many = f"A batch of more than {MAX_BATCH} messages"
        raise RpcError(INVALID_REQUEST, too_many) from None
    except (ValueError, RecursionError) as exc:
        raise RpcError(PARSE_ERROR, f"Parse error: {exc}") from None


@cache
def _batch_decoder() -> msgspec.json.Decoder[Any]:
    """Return an array decoder that stops at the first message over the limit.

    A list would be decoded to the end first, which takes a long time for millions of messages.
    """
    fields = [(f"message{n}", msgspec.Raw, msgspec.Raw()) for n in range(MAX_BATCH)]
    return msgspec.json.Decoder(
        msgspec.defstruct("Batch", fields, array_like=True, forbid_unknown_fields=True)
    )


def read_params(params: Params, type: type[T]) -> T:
    """Return the parameters as *type*; raises RpcError if they do not match."""
    if isinstance(params, type):
        return params
    try:
        found: T = _decoder(type).decode(params)  # type: ignore[arg-type]  # a type is hashable
        return found
    except msgspec.ValidationError as exc:
        raise RpcError(INVALID_PARAMS, f"Invalid params: {exc}") from None


def meta_of(request: Request) -> Meta | None:
    """Return the `_meta` of a request; raises RpcError, with the request's id."""
    params = request.params
    try:
        common = params if isinstance(params, ToolCall) else read_params(params, Common)
    except RpcError as error:
        error.id = request.id
        raise
    return None if common.meta is msgspec.UNSET else common.meta


def is_stateless(meta: Meta | None) -> bool:
    """Return True if the request names its own version, as all stateless requests do."""
    return meta is not None and meta.version is not msgspec.UNSET


@cache
def _decoder(type: object) -> msgspec.json.Decoder[Any]:
    """Return the cached decoder for a parameter type; creating one costs more than using it."""
    return msgspec.json.Decoder(type)


def _malformed(text: bytes, exc: Exception) -> RpcError:
    if isinstance(exc, InvalidJson):
        return RpcError(PARSE_ERROR, f"Parse error: {exc}")
    try:
        id = _decoder(_IdOnly).decode(text).id
    except msgspec.ValidationError:
        id = None
    except (ValueError, RecursionError):
        return RpcError(PARSE_ERROR, f"Parse error: {exc}")
    readable = isinstance(id, str) or is_integer(id)
    return RpcError(INVALID_REQUEST, f"Invalid request: {exc}", id=id if readable else None)


def result_frame(id: Id, result: bytes) -> bytes:
    return b"".join((b'{"jsonrpc":"2.0","id":', _encode(id), b',"result":', result, b"}"))


def large_result_frame(id: Id, pieces: tuple[bytes, ...]) -> tuple[bytes, ...]:
    return (b'{"jsonrpc":"2.0","id":%b,"result":' % _encode(id) + pieces[0], *pieces[1:], b"}")


def joined(frame: Frame) -> bytes:
    return frame if isinstance(frame, bytes) else b"".join(frame)


def error_frame(id: Id | None, error: RpcError) -> bytes:
    """Return an error frame; without a readable id it has no `id`, as the schema forbids `null`."""
    body: JsonObject = {"code": error.code, "message": error.message}
    if error.data is not None:
        body["data"] = error.data
    if id is None:
        return b'{"jsonrpc":"2.0","error":%b}' % _encode(body)
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (_encode(id), _encode(body))


def notification_frame(method: str, params: Json) -> bytes:
    return _encode({"jsonrpc": "2.0", "method": method, "params": params})


def request_frame(id: Id, method: str, params: Json) -> bytes:
    return _encode({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
