"""Decodes the JSON in text, SDK models and HTTP responses that hold a reply.

Knows nothing about the meaning of a reply's members.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from ..core.content import BLOCKS, Embedded
from ..core.limits import DEFAULT_RECEIVED, MAX_REPAIRED_BYTES, ReceivedLimits
from ..core.reply import Error, Received, Reply
from ..dialects import problem, rest
from ..dialects.common import kind_for_status, without_added
from ..dialects.mcp_blocks import write_block
from ..dialects.status_and_headers import ERROR_CODE, PROBLEM, HttpReply
from ..errors import UNKNOWN_ERROR, MalformedReply, ToolError
from ..http1.http_connection import EventDecoder
from ..rules.validation import decode_json
from ..types.json_text import MAX_DEPTH, has_more_marks, is_too_deep, with_whole_characters
from ..verdicts.forms import is_json_rpc, received_dialect, result_in_mcp_names

_TOOL_ERRORS = ("ToolError", "ToolException", "ResourceError", "PromptError")
"""FastMCP, SDK and LangChain exceptions whose text is the server's message."""


class TooLarge(MalformedReply):
    """The reply is larger than the caller allows."""


class NotJson(MalformedReply):
    """The text should be JSON but is not."""


def source_of(result: Any, limits: ReceivedLimits) -> Any:
    """Return decoded JSON, text that is not JSON as a str, or an HttpReply.

    Raises MalformedReply for anything else.
    """
    match result:
        case None:
            raise MalformedReply("the reply is None")
        case str() | bytes() | bytearray() | memoryview():
            return decode_text(result, limits)
        case dict():
            return _with_plain_blocks(result)
        case HttpReply():
            _check_size(result.body, limits.bytes)
            return result
        case [list() as blocks, dict() | None as structured] if isinstance(result, tuple):
            # Some versions of the SDK's `call_tool` return such pairs.
            content = [_plain(block) for block in blocks]
            more = {} if structured is None else {"structuredContent": structured}
            return {"content": content, **more}
        case list() | tuple():
            items = [_plain(each) for each in result]
            # FastMCP's `read_resource` returns the contents without the result around them.
            is_resource = bool(result) and all(map(_is_resource_model, result))
            return {"contents": items} if is_resource else items
        case bool() | int() | float():
            return result
    return _from_object(result, limits)


def decode_text(text: str | bytes | bytearray | memoryview, limits: ReceivedLimits) -> Any:
    """Return the JSON object or array in *text*, or the text as a str."""
    _check_size(text, limits.bytes)
    if not isinstance(text, str):
        try:
            text = bytes(text).decode("utf-8-sig")
        except UnicodeDecodeError as exc:
            raise NotJson(f"the reply is not UTF-8 (byte {exc.start})") from None
    if not text or text.isspace():
        raise MalformedReply("the reply is empty")
    start = text.lstrip()[:1]
    if start not in ("{", "["):
        return text
    try:
        return load_json(text, limits.values)
    except NotJson:
        # A log line may begin with a bracket without being JSON.
        if start == "{":
            raise
        return text


def load_json(text: str, max_values: int = DEFAULT_RECEIVED.values) -> Any:
    """Decode JSON, even with NaN or lone surrogates in it; raise NotJson or TooLarge."""
    try:
        encoded = text.encode()
        if has_more_marks(encoded, max_values):
            raise TooLarge(f"the JSON has more than {max_values} values")
        if is_too_deep(encoded):
            raise NotJson(f"the JSON is nested deeper than {MAX_DEPTH} levels")
        return decode_json(text)
    except MalformedReply:
        raise
    except (ValueError, RecursionError) as exc:
        if len(text) <= MAX_REPAIRED_BYTES and (repaired := with_whole_characters(text)) != text:
            return load_json(repaired, max_values)
        raise NotJson(f"not JSON: {exc}") from None


def _check_size(text: str | bytes | bytearray | memoryview, max_bytes: int) -> None:
    if len(text) > max_bytes:
        raise TooLarge(f"the reply has {len(text)} bytes; at most {max_bytes} are read")


def _from_object(result: Any, limits: ReceivedLimits) -> Any:
    if isinstance(result, BaseException):
        # Clients raise this error when the server fails.
        if isinstance(result, ToolError):
            error = msgspec.to_builtins(Error.of(result))
            text = {"type": "text", "text": str(error["message"])}
            return {"content": [text], "isError": True, "_meta": {"answerback/error": error}}
        error = _plain(getattr(result, "error", None))
        if isinstance(error, dict):
            return {"jsonrpc": "2.0", "error": error}
        if any(kind.__name__ in _TOOL_ERRORS for kind in type(result).__mro__):
            return {"content": [{"type": "text", "text": str(result)}], "isError": True}
        if isinstance(result, MalformedReply):
            raise result
        raise MalformedReply(f"cannot read a reply from the exception {type(result).__name__}")
    if hasattr(result, "status_code") and hasattr(result, "headers"):
        return source_of(_from_response(result), limits)
    if hasattr(result, "structured_content") and not hasattr(result, "model_dump"):
        return _from_parsed_result(result)
    plain = _plain(result)
    if plain is result:
        raise MalformedReply(f"cannot read a reply from a {type(result).__name__} object")
    return result_in_mcp_names(_with_plain_blocks(plain)) if isinstance(plain, dict) else plain


def _is_resource_model(value: Any) -> bool:
    is_model = hasattr(value, "model_dump") and hasattr(value, "uri")
    return is_model and (hasattr(value, "text") or hasattr(value, "blob"))


def _plain(value: Any) -> Any:
    """Return the JSON of a model, a block or a dataclass; return other values unchanged."""
    if type(value) is dict:
        return value
    if isinstance(value, BLOCKS):
        return msgspec.to_builtins(write_block(value))
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", by_alias=True, exclude_none=True)
    if isinstance(value, msgspec.Struct) or hasattr(value, "__dataclass_fields__"):
        return msgspec.to_builtins(value)
    return dict(value) if isinstance(value, Mapping) and not isinstance(value, dict) else value


def _from_parsed_result(result: Any) -> dict[str, Any]:
    """Return the result that FastMCP's client parsed; its `data` comes from the same JSON."""
    structured = result.structured_content
    meta = dict(getattr(result, "meta", None) or {})
    data = without_added(structured, meta)
    if isinstance(data, dict) and data.keys() == {"result"}:
        parsed = getattr(result, "data", None)
        if parsed is not None and _plain(parsed) == data["result"]:
            meta.setdefault("fastmcp", {"wrap_result": True})
    found: dict[str, Any] = {"content": [_plain(block) for block in result.content or ()]}
    if structured is not None:
        found["structuredContent"] = structured
    found["isError"] = getattr(result, "is_error", False)
    return found | ({"_meta": meta} if meta else {})


def _from_response(response: Any) -> HttpReply:
    """Convert an httpx, requests, Django or Flask response."""
    headers = {str(name): str(value) for name, value in response.headers.items()}
    try:
        body = response.content if hasattr(response, "content") else response.data
    except Exception as exc:
        problem = f"the response body was not read: {type(exc).__name__}"
        raise MalformedReply(problem) from exc
    if not isinstance(body, bytes):
        raise MalformedReply(f"the response body is {type(body).__name__}, not bytes")
    by_name = {name.lower(): value for name, value in headers.items()}
    media_type = by_name.get("content-type", "")
    return HttpReply(int(response.status_code), body, media_type, tuple(headers.items()))


def _with_plain_blocks(found: dict[str, Any]) -> dict[str, Any]:
    content = found.get("content")
    if not isinstance(content, list | tuple):
        return found
    if isinstance(content, list) and all(isinstance(each, dict) for each in content):
        return found
    return {**found, "content": [_plain(block) for block in content]}


Read = Callable[[Any], tuple[Reply[Any], tuple[Any, ...]]]
EVENT_STREAM = "text/event-stream"
_MAX_LOCATION = 200


def read_response(
    response: HttpReply, read_json: Read, max_values: int
) -> tuple[Reply[Any], tuple[Any, ...]]:
    """Read a response; *read_json* reads its JSON. Raises MalformedReply."""
    essence = response.media_type.partition(";")[0].strip().lower()
    is_failure = response.status >= 400 or response.header(ERROR_CODE) is not None
    if essence == PROBLEM:
        return problem.read(response), ()
    if essence == EVENT_STREAM and response.status < 400:
        found = response_in_events(response.body.decode("utf-8", "replace"), max_values)
        if found is None:
            raise MalformedReply("the event stream ended without a response")
        return read_json(found)
    if 300 <= response.status < 400:
        location = response.header("Location")
        where = "" if location is None else f"; it redirects to {location[:_MAX_LOCATION]!r}"
        raise MalformedReply(f"the server responded with {response.status} and no reply{where}")
    found = _json_of(response, essence, max_values)
    if found is not msgspec.UNSET and response.header(rest.FORM) is None:
        is_reply = is_json_rpc(found) or received_dialect(found) in ("mcp", "envelope", "problem")
        if is_reply or not is_failure:
            reply, findings = read_json(found)
            if not is_failure:
                return reply, findings
            if not reply.ok:
                return _with_code(reply, response), findings
    try:
        reply = rest.read(response)
    except MalformedReply:
        if essence == "application/json" or essence.endswith("+json"):
            raise
        uri = response.header("Content-Location") or "about:blank"
        return Reply(content=(Embedded(uri, blob=response.body, mime=essence or None),)), ()
    place = Received(None, "body") if reply.has_data else None
    return msgspec.structs.replace(reply, received=place), ()


def _with_code(reply: Reply[Any], response: HttpReply) -> Reply[Any]:
    """Return a failure with the code from the header or the status, unless the body has a code.

    A server's custom code borrows the response's status.
    """
    error, stated = reply.error, rest.read(response).error
    if error is None or stated is None:
        return reply
    code = stated.code if error.code == UNKNOWN_ERROR else error.code
    kind = error.kind or kind_for_status(code, response.status)
    hint = error.hint or stated.hint
    changed = msgspec.structs.replace(error, code=code, kind=kind, hint=hint)
    return msgspec.structs.replace(reply, error=changed)


def _json_of(response: HttpReply, essence: str, max_values: int) -> Any:
    """Return the decoded body if it is a JSON object or array, or else UNSET."""
    is_json = essence in ("", "application/json") or essence.endswith("+json")
    if not is_json or response.body.lstrip()[:1] not in (b"{", b"["):
        return msgspec.UNSET
    try:
        return load_json(response.body.decode(), max_values)
    except (NotJson, UnicodeDecodeError) as exc:
        if response.status >= 400:
            return msgspec.UNSET
        raise NotJson(f"the response body is not JSON: {exc}") from None


def response_in_events(stream: str, max_values: int) -> Any:
    """Return the JSON-RPC response in an event stream, or None if there is none.

    Notifications may precede it.
    """
    found: Any = None
    events = stream.encode("utf-8", "replace") + b"\n\n"
    for event in EventDecoder(limit=len(events)).feed(events):
        try:
            message = load_json(event.data.decode(), max_values)
        except NotJson:
            continue
        if isinstance(message, dict) and not {"result", "error"}.isdisjoint(message):
            found = message
    return found
