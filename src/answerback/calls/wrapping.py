"""wrap: makes any function return a valid envelope, whatever it returns or raises."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from datetime import UTC, date, datetime
from functools import cache, partial, wraps
from inspect import signature
from typing import Any, Literal, NamedTuple, ParamSpec, TypeAlias, cast, get_args, overload

import msgspec

from ..contract import ENVELOPE
from ..core.content import Text, content_of, is_block, is_result
from ..core.reply import Reply
from ..core.shape import BARE, RESULT
from ..dialects import MalformedReply, envelope, mcp_blocks
from ..dialects.common import to_utc, without_none
from ..dialects.foreign_blocks import (
    complete_block,
    own_block,
    result_object,
    take_blocks,
    with_blocks_as_content,
)
from ..dialects.reply_text import DONE, PREFIX
from ..dialects.returned_value import judge
from ..errors import CODES, UNKNOWN_ERROR, UNKNOWN_TEXT, ToolError
from ..types.output import Output
from ..types.unencodable import nan_to_none, with_nan_as_null

P = ParamSpec("P")
Envelope: TypeAlias = dict[str, Any]
Nan = Literal["refuse", "null"]
Wrapped: TypeAlias = Callable[P, Coroutine[Any, Any, Envelope]]

# The members that the envelope requires for each content type; other types are not checked.
_REQUIRED = {
    "text": ("text",),
    "image": ("url", "altText"),
    "resource": ("resourceType", "identifier", "name"),
}
_LISTED_ERRORS = frozenset({"errors", "errorMessages"})
# Members that may hold an error object's message if it has no `message`.
_MESSAGE_MEMBERS = ("detail", "msg", "reason", "description", "error_description", "title")


@overload
def wrap(fn: Callable[P, Any], /, *, nan: Nan | None = None) -> Wrapped[P]: ...
@overload
def wrap(*, nan: Nan | None = None) -> Callable[[Callable[P, Any]], Wrapped[P]]: ...
def wrap(fn: Any = None, /, *, nan: Nan | None = None) -> Any:
    """Return an async function with *fn*'s parameters that returns an envelope.

    If *fn* returns an envelope, missing members are added. An unexpected exception is masked: the
    caller's message has a reference, and the log has the traceback under that reference. With
    nan="null", NaN and infinities become null; without *nan*, the App that the function is
    registered with decides, and elsewhere such a float is an error.
    """
    if nan not in (None, *get_args(Nan)):
        raise TypeError(f"nan={nan!r} should be 'refuse' or 'null'")
    return partial(_wrapped, nan=nan) if fn is None else _wrapped(fn, nan)


def _wrapped(fn: Callable[P, Any], nan: Nan | None) -> Wrapped[P]:
    fn_of_one = cast("Callable[[dict[str, Any]], Any]", fn)

    @wraps(fn)
    async def call(*args: P.args, **kwargs: P.kwargs) -> Envelope:
        try:
            # Like `toolFn(args || {})`: a function that takes one object may be called without it.
            result = fn(*args, **kwargs) if args or kwargs or not _takes_one(fn) else fn_of_one({})
            if isinstance(result, Awaitable):
                result = await result
            if is_result(result):
                result = _envelope_members(result_object(result))
            if nan == "null":
                result = _with_null(result)
            return _to_json_values(_envelope_from_result(result))
        # SystemExit is caught too: sys.exit() in a tool must end the call, not the program.
        except (Exception, SystemExit) as exc:  # noqa: BLE001 -- every failure is an envelope
            # Imported at the first failure: functions that succeed do not need the package.
            from .failures import error_for

            error = error_for(exc, getattr(fn, "__qualname__", repr(fn)), ENVELOPE.masked)
            return _to_json_values(_envelope_from_reply(Reply(error=error)))

    call.__dict__["made_by_wrap"] = WrappedFunction(fn, call, nan)
    return call


def _takes_one(fn: Callable[..., Any]) -> bool:
    """Return whether the function needs exactly one positional argument."""
    needed = [
        each
        for each in signature(fn).parameters.values()
        if each.default is each.empty and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
    ]
    return len(needed) == 1 and needed[0].kind is not needed[0].KEYWORD_ONLY


class WrappedFunction(NamedTuple):
    """A function wrapped by `wrap`; an App serves the original function.

    A decorator around *made* copies this attribute, so an App compares *made* with its argument.
    """

    fn: Callable[..., Any]
    made: Callable[..., Any]
    nan: Nan | None


def _envelope_members(result: Envelope) -> Envelope:
    """Return an MCP result's members under the envelope's names."""
    names = {"structuredContent": "data", "_meta": "meta"}
    renamed = {names.get(name, name): each for name, each in result.items() if name != "isError"}
    return {**renamed, "success": not result.get("isError")}


def _with_null(result: object) -> Any:
    """Return the result with NaN and infinities replaced by null, except in blocks."""
    match result:
        case Reply(data=data):
            if data is msgspec.UNSET:
                return result
            return msgspec.structs.replace(result, data=_values_with_null(data))
        case dict():
            return {
                key: each if key == "content" else _values_with_null(each)
                for key, each in result.items()
            }
    if content_of(result) is not None:
        return result
    return _values_with_null(result)


def _values_with_null(value: object) -> Any:
    if take_blocks(value)[0] is not value:
        return nan_to_none(value)
    return _any_output(nan_is_null=True).encode(value)[1]


def _envelope_from_result(result: Any) -> Envelope:
    if (blocks := content_of(result)) is not None:
        return _envelope_from_reply(Reply(content=blocks))
    match result:
        case Reply():
            return _envelope_from_reply(result)
        case ToolError():
            raise result
        case None:
            return _envelope_from_reply(Reply())
    verdict, found = judge(result)
    if verdict == "failure":
        return complete_envelope(found, failed=True)
    match found:
        case {"error": error} if error:
            # It may be data about an error, so it does not belong in the envelope's own member.
            return _envelope_from_reply(Reply(data=result))
        case {"content": [*_]} | {"success": bool()}:
            return complete_envelope(found)
    return _envelope_from_reply(Reply(data=result))


def _envelope_from_reply(reply: Reply[Any]) -> Envelope:
    data, content = take_blocks(reply.data, reply.content)
    reply = msgspec.structs.replace(reply, data=data, content=content)
    _encode_strictly({"content": reply.content, "meta": reply.meta, "error": reply.error})
    if reply.data is None:
        reply = msgspec.structs.replace(reply, data=msgspec.UNSET)
    shape = BARE
    if reply.data is not msgspec.UNSET:
        encoded, data = _encode_strictly(reply.data)
        # The function may have no annotation, so the value decides; the envelope's data must
        # be an object.
        shape = BARE if isinstance(data, dict) else RESULT
        reply = msgspec.structs.replace(reply, data=data, encoded=encoded)
    written = msgspec.json.decode(envelope.write(reply, shape, ENVELOPE))
    return complete_envelope(written, failed=not reply.ok)


def complete_envelope(found: Envelope, *, failed: bool = False) -> Envelope:
    """Return *found* with the members that an envelope must have; its own members are kept."""
    found = with_blocks_as_content(found)
    content = [_content_item(item) for item in found.get("content") or ()]
    data = found.get("data")
    more = {key: value for key, value in found.items() if key not in ("data", "error")}
    if data is not None:
        more["data"] = data if isinstance(data, dict) else {"result": data}
    if failed:
        more["error"] = _complete_error(found, content)
        text = PREFIX + more["error"]["message"]
    elif data not in (None, False, 0, ""):
        text = msgspec.json.format(_encode_strictly(data)[0], indent=2).decode()
    else:
        message = found.get("message")
        text = message if message and isinstance(message, str) else DONE
    more["content"] = content or [envelope.write_block(Text(text))]
    first = {"success": not failed, "timestamp": _timestamp(found.get("timestamp"))}
    return first | {key: value for key, value in more.items() if key not in first}


def _complete_error(found: Envelope, content: list[Envelope]) -> Envelope:
    if not _LISTED_ERRORS.isdisjoint(found):
        # Imported here, because only such objects need it.
        from ..reading.foreign_errors import object_error

        found = found | {"error": without_none(**msgspec.structs.asdict(object_error(found)))}
    error = found.get("error")
    members = dict(error) if isinstance(error, dict) else {"message": error}
    texts = [item["text"].removeprefix(PREFIX) for item in content if item["type"] == "text"]
    named = (each.get(name) for each in (members, found) for name in _MESSAGE_MEMBERS)
    messages = (members.get("message"), found.get("message"), *texts[:1], *named, UNKNOWN_TEXT)
    members["message"] = next(text for text in messages if text and isinstance(text, str))
    details = members.pop("details", None)
    stated = found.get("code")
    if "code" not in members and isinstance(stated, str) and stated in CODES:
        members["code"] = stated
    if not isinstance(code := members.get("code"), str):
        members["code"] = UNKNOWN_ERROR
        # Such as an HTTP status, which becomes the details if there are none.
        details = {"code": code} if details is None and code is not None else details
    if details is not None:
        members["details"] = details if isinstance(details, dict) else {"details": details}
    return members


def _timestamp(found: object) -> datetime:
    """Return the envelope's timestamp in UTC, or the current time if it has no readable one."""
    try:
        match found:
            case datetime():
                return to_utc(found)
            case date():
                return datetime(found.year, found.month, found.day, tzinfo=UTC)
            case int() | float() if not isinstance(found, bool):
                # Seconds until the year 5138, and JavaScript's milliseconds since 1973.
                return datetime.fromtimestamp(found / 1000 if abs(found) > 1e11 else found, UTC)
            case str() if found[:1].isalpha():
                # An HTTP date; few results have one.
                from email.utils import parsedate_to_datetime

                return to_utc(parsedate_to_datetime(found))
            case str():
                return to_utc(datetime.fromisoformat(found))
    except (ValueError, OverflowError, OSError):
        pass
    return datetime.now(UTC)


def _content_item(item: object) -> Envelope:
    """Return a valid content item for *item*: itself, another form of it, or its text."""
    if is_block(item):
        return envelope.write_block(own_block(item))
    plain = complete_block(_encode_strictly(item)[1])
    if isinstance(plain, dict):
        kind = plain.get("type")
        required = _REQUIRED.get(kind, ()) if isinstance(kind, str) else ("type",)
        if all(isinstance(plain.get(name), str) for name in required):
            return plain
    for read in (envelope.read_block, mcp_blocks.read_block):
        try:
            return envelope.write_block(read(plain))
        except MalformedReply:
            continue
    text = plain if isinstance(plain, str) else _encode_strictly(plain)[0].decode()
    return envelope.write_block(Text(text))


def _encode_strictly(value: object) -> tuple[bytes, Any]:
    """Return the JSON of *value*, and that JSON decoded; raises InvalidOutput."""
    return _any_output().encode(value)


def _to_json_values(found: Envelope) -> Envelope:
    envelope: Envelope = _encode_strictly(found)[1]
    return envelope


@cache
def _any_output(*, nan_is_null: bool = False) -> Output:
    return Output(with_nan_as_null(Any) if nan_is_null else Any)
