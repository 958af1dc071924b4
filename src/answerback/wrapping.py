"""Makes any function answer with a valid envelope, whatever it gives back or raises."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from datetime import UTC, datetime
from functools import cache, wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeAlias

import msgspec

from .content import BLOCKS, Text
from .contract import ENVELOPE
from .dialects import MalformedReply, envelope, mcp_blocks
from .dialects.common import to_utc
from .dialects.contract_text import DONE, PREFIX
from .errors import INVALID_OUTPUT, TOOL_EXECUTION_ERROR, UNKNOWN_ERROR, ToolError
from .reply import Error, Reply
from .shape import BARE, RESULT
from .types.problems import InvalidOutput

if TYPE_CHECKING:
    from .types.output import Output

P = ParamSpec("P")
Envelope: TypeAlias = dict[str, Any]

# What the envelope asks of its own kinds of content; of other kinds it asks nothing.
REQUIRED = {
    "text": ("text",),
    "image": ("url", "altText"),
    "resource": ("resourceType", "identifier", "name"),
}


def wrap(fn: Callable[P, Any]) -> Callable[P, Coroutine[Any, Any, Envelope]]:
    """An async function that takes what *fn* takes and gives an envelope, whatever *fn* does.

    What is an envelope already is only completed. An unexpected exception is masked: the
    caller reads a reference, and the log has the traceback under it.
    """

    @wraps(fn)
    async def answer(*args: P.args, **kwargs: P.kwargs) -> Envelope:
        try:
            result = fn(*args, **kwargs)
            if isinstance(result, Awaitable):
                result = await result
            return _plain(_envelope(result))
        # A tool that calls sys.exit() ends its call, not the program.
        except (Exception, SystemExit) as exc:  # noqa: BLE001 -- nothing may pass
            return _failed_call(fn, exc)

    return answer


def _failed_call(fn: Callable[..., Any], exc: BaseException) -> Envelope:
    try:
        error = _told(fn, exc)
    # What an author's error says of itself is the author's code, and may fail too.
    except Exception as worse:  # noqa: BLE001 -- nothing may pass
        error, exc = None, worse
    return _plain(_written(Reply(error=error or _masked(fn, exc))))


def _told(fn: Callable[..., Any], exc: BaseException) -> Error | None:
    """What the caller may know of it."""
    from .calls.reply_check import checked_error

    match exc:
        case ToolError():
            return checked_error(Error.of(exc), _name(fn))
        case InvalidOutput():
            _log(fn, f"gave back what cannot be sent: {exc}", exc.__cause__)
            return Error(INVALID_OUTPUT, f"Invalid output: {exc}")
    return None


def _envelope(result: Any) -> Envelope:
    match result:
        case Reply():
            return _written(result)
        case {"content": [*_]} | {"success": bool()}:
            return _completed(dict(result))
        case None:
            return _written(Reply())
        case [*items] if items and all(isinstance(item, BLOCKS) for item in items):
            return _written(Reply(content=tuple(items)))
        case _ if isinstance(result, BLOCKS):
            return _written(Reply(content=(result,)))
        case _:
            return _written(Reply(data=result))


def _written(reply: Reply[Any]) -> Envelope:
    _strict({"content": reply.content, "meta": reply.meta, "error": reply.error})
    if reply.data is None:
        reply = msgspec.structs.replace(reply, data=msgspec.UNSET)
    shape = BARE
    if reply.data is not msgspec.UNSET:
        encoded, data = _strict(reply.data)
        # There may be no annotation to tell, and the envelope wants an object.
        shape = BARE if isinstance(data, dict) else RESULT
        reply = msgspec.structs.replace(reply, data=data, encoded=encoded)
    return _completed(msgspec.json.decode(envelope.write(reply, shape, ENVELOPE)))


def _completed(found: Envelope) -> Envelope:
    """*found* with whatever an envelope must have; what it has is kept."""
    content = [_item(item) for item in found.get("content") or ()]
    data = found.get("data")
    more = {key: value for key, value in found.items() if key not in ("data", "error")}
    if data is not None:
        more["data"] = data if isinstance(data, dict) else {"result": data}
    if _failed(found):
        more["error"] = _error(found, content)
        text = PREFIX + more["error"]["message"]
    else:
        text = _success_text(data, found.get("message"))
    more["content"] = content or [envelope.write_block(Text(text))]
    settled = {"success": "error" not in more, "timestamp": _stamp(found.get("timestamp"))}
    return settled | {key: value for key, value in more.items() if key not in settled}


def _failed(found: Envelope) -> bool:
    """An error beside `success: true` is an error: a failure is never told as a success."""
    success = found.get("success")
    told = not success if isinstance(success, bool) else bool(found.get("isError"))
    return told or bool(found.get("error"))


def _success_text(data: Any, message: Any) -> str:
    if data not in (None, False, 0, ""):
        return msgspec.json.format(_strict(data)[0], indent=2).decode()
    return message if message and isinstance(message, str) else DONE


def _error(found: Envelope, content: list[Envelope]) -> Envelope:
    error = found.get("error")
    members = dict(error) if isinstance(error, dict) else {"message": error}
    texts = [item["text"].removeprefix(PREFIX) for item in content if item["type"] == "text"]
    told = (members.get("message"), found.get("message"), *texts[:1], "Unknown error")
    members["message"] = next(text for text in told if text and isinstance(text, str))
    if not isinstance(members.get("code"), str):
        members["code"] = UNKNOWN_ERROR
    details = members.pop("details", None)
    if details is not None:
        members["details"] = details if isinstance(details, dict) else {"details": details}
    return members


def _stamp(stamp: Any) -> Any:
    try:
        return to_utc(stamp if isinstance(stamp, datetime) else datetime.fromisoformat(stamp))
    except (TypeError, ValueError):
        return datetime.now(UTC)


def _item(item: Any) -> Envelope:
    """A content item that is valid as it is, or the nearest to it that is."""
    if isinstance(item, BLOCKS):
        return envelope.write_block(item)
    plain = _strict(item)[1]
    if isinstance(plain, dict) and _is_valid(plain):
        return plain
    for read in (envelope.read_block, mcp_blocks.read_block):
        try:
            return envelope.write_block(read(plain))
        except MalformedReply:
            continue
    text = plain if isinstance(plain, str) else _strict(plain)[0].decode()
    return envelope.write_block(Text(text))


def _is_valid(item: Envelope) -> bool:
    kind = item.get("type")
    required = REQUIRED.get(kind, ()) if isinstance(kind, str) else ("type",)
    return all(isinstance(item.get(name), str) for name in required)


def _masked(fn: Callable[..., Any], exc: BaseException) -> Error:
    import os

    reference = os.urandom(6).hex()
    _log(fn, f"failed, reference {reference}", exc)
    message = f"{ENVELOPE.masked} (reference {reference})"
    return Error(TOOL_EXECUTION_ERROR, message, {"reference": reference})


def _log(fn: Callable[..., Any], what: str, exc: BaseException | None) -> None:
    import logging

    logging.getLogger("answerback").error("tool %r %s", _name(fn), what, exc_info=exc)


def _name(fn: Callable[..., Any]) -> str:
    return getattr(fn, "__qualname__", repr(fn))


def _strict(value: Any) -> tuple[bytes, Any]:
    """The JSON of *value* and that JSON as plain values; raises InvalidOutput."""
    return _anything().encode(value)


def _plain(found: Envelope) -> Envelope:
    envelope: Envelope = _strict(found)[1]
    return envelope


@cache
def _anything() -> Output:
    from .types.output import Output

    return Output(Any)
