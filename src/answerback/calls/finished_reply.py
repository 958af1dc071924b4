"""Reads a finished reply that a tool returned as a dict, an object or JSON text.

An MCP result, an envelope or an error object counts as the reply it describes, so that a failure is
not sent as the data of a success. `dialects.returned_value` recognises it; the dialects read it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import msgspec

from ..core.content import Block, Text, is_block
from ..core.log import logger
from ..core.reply import Error, Reply
from ..core.shape import RESULT
from ..dialects import MalformedReply, envelope, mcp, mcp_blocks
from ..dialects.foreign_blocks import complete_block, own_block, with_blocks_as_content
from ..dialects.reply_text import BUFFER_START, is_unencoded, message_from_text
from ..dialects.returned_value import judge
from ..errors import UNKNOWN_ERROR, UNKNOWN_TEXT
from ..tools.current_call import CURRENT
from ..tools.tool import Tool
from ..types.annotation_reader import is_object
from ..types.output import Output
from ..types.problems import InvalidOutput
from ..types.unencodable import nan_to_none
from ..verdicts.forms import finished_dialect
from ..verdicts.judge import json_in_text, judge_json
from .reply_check import may_be_finished, with_reference
from .wrapping import complete_envelope

if TYPE_CHECKING:
    from ..core.json_value import Json, JsonObject
    from ..core.metadata import Place

_MAX_DEPTH = 5
_KNOWN_MEMBERS = (
    *("success", "timestamp", "content", "data", "error", "message", "meta"),
    *("isError", "structuredContent", "_meta", "resultType"),
)


def finished_reply(tool: Tool, value: object, *, is_inner: bool = False) -> Reply[Any] | None:
    """Return the reply that *value* describes; None if it is data.

    *is_inner* says that the value is a reply's data, of which the declared class says nothing.

    Raises InvalidOutput for a finished reply that cannot be written as JSON.
    """
    if isinstance(value, str):
        refuse_unencoded(value)
    verdict, found = judge(value)
    if verdict == "data" and found.get("error"):
        # The error decides under `direct`; elsewhere, members that repeat arguments are not data.
        is_failure = tool.contract.error_decides or judge(value, _arguments())[0] == "failure"
        verdict = "failure" if is_failure else "data"
    form = tool.returns.form if found and not is_inner else None
    if verdict == "data" and form != "reply":
        return None
    if verdict == "reply" and form == "flagged":
        return None
    failed = verdict == "failure"
    if tool.settings.nan == "null":
        found = nan_to_none(found)
    reply = _read(tool, found, failed=failed)
    if isinstance(value, str) and value.lstrip().startswith("Traceback (most"):
        logger().error(
            "tool %r returned a traceback, of which callers see the last line:\n%s",
            tool.name,
            value,
        )
    if not tool.logged_finished:
        tool.logged_finished = True
        message = (
            "tool %r returned a %s, which is sent as the reply and not as data; to send it as "
            "data, write values=Values(returns='value')"
        )
        # Not a warning: `call` and CGI run one call per process, and would print it every time.
        why = judge_json(found).why or "it says so"
        kind = f"failure ({why})" if failed else "finished reply"
        logger().info(message, tool.name, kind)
    if not tool.logged_meta:
        _log_wrong_meta(tool, reply)
    if reply.error is not None and reply.error.message == UNKNOWN_TEXT:
        reply = msgspec.structs.replace(reply, error=_referred(tool, reply.error, found))
    # Leave out text that the contract derives from the error or the data anyway.
    content = reply.content
    if reply.error is not None:
        content = _without_message(content, reply.error)
    elif tool.contract.text not in ("own", "readable"):
        content = tuple(block for block in content if not _is_json_of(block, reply.data))
    return msgspec.structs.replace(reply, content=content)


def _arguments() -> JsonObject:
    """Return the arguments of the call that runs now, as the caller sent them."""
    call = CURRENT.get(None)
    found = None if call is None else json_in_text(call.arguments.decode("utf-8", "replace"))
    return found if isinstance(found, dict) else {}


def _read(tool: Tool, found: JsonObject, *, failed: bool) -> Reply[Any]:
    found = with_blocks_as_content(found)
    if isinstance(content := found.get("content"), list | tuple):
        found = {**found, "content": [complete_block(block) for block in content]}
    try:
        if finished_dialect(found) == "mcp":
            return mcp.read(_plain(found, mcp_blocks.write_block), contract=tool.contract)
        return _read_envelope(tool, found, failed=failed)
    except MalformedReply:
        if failed:
            # Only the code and the message of such a failure are reliable.
            error = complete_envelope(found, failed=True)["error"]
            return Reply(error=Error(error["code"], error["message"]))
    # Read it as an envelope; its malformed blocks are sent as text.
    return _read_envelope(tool, found, failed=False)


def judged_reply(tool: Tool, reply: Reply[Any], depth: int = 0) -> Reply[Any]:
    """Return the reply contained in the data or text: a failure, or a complete result in JSON.

    Raises InvalidOutput for a printed object, such as `<coroutine object …>`.
    """
    if depth == _MAX_DEPTH:
        raise InvalidOutput("content", "results in text are nested too deeply")
    if reply.error is None and may_be_finished(tool.returns, reply.data):
        inner = finished_reply(tool, reply.data, is_inner=True)
        if inner is not None:
            outer = msgspec.structs.replace(reply, data=msgspec.UNSET)
            content = (*reply.content, *inner.content)
            return judged_reply(tool, _joined(outer, inner, content), depth + 1)
    for index, block in enumerate(reply.content):
        if not isinstance(block, Text) or not isinstance(block.text, str):
            continue
        refuse_unencoded(block.text, f"content[{index}].text")
        inner = finished_reply(tool, block.text, is_inner=True)
        if inner is not None and (reply.ok or inner.ok):
            others = (*reply.content[:index], *inner.content, *reply.content[index + 1 :])
            return judged_reply(tool, _joined(reply, inner, others), depth + 1)
    return reply


def _joined(outer: Reply[Any], inner: Reply[Any], content: tuple[Block, ...]) -> Reply[Any]:
    """Return the outer reply with the inner reply's error, data and metadata."""
    return msgspec.structs.replace(
        outer,
        content=content,
        data=inner.data if inner.has_data else outer.data,
        error=outer.error or inner.error,
        meta={**inner.meta, **outer.meta},
    )


def text_in(message: str) -> str:
    """Return an error's message: the text of a complete result, or nothing for a printed object."""
    if is_unencoded(message) or message.startswith(BUFFER_START):
        return ""
    found = judge(message)[1]
    if not found.get("content"):
        return message.strip() and message
    texts = [each.get("text") for each in found["content"] if isinstance(each, dict)]
    return " ".join(text for text in texts if isinstance(text, str)).strip()


def refuse_unencoded(text: str, path: str = "") -> None:
    """Raise InvalidOutput for text such as `<coroutine object f at 0x7f>`."""
    if is_unencoded(text) or text.startswith(BUFFER_START):
        shown = text.strip()[:40]
        raise InvalidOutput(path, f"{shown!r} is a printed object; return its value, or await it")


def _referred(tool: Tool, error: Error, value: JsonObject) -> Error:
    """Return the error for a failure without text, with a reference to the log."""
    stated = value.get("error")
    message = stated.get("message") if isinstance(stated, dict) else None
    if isinstance(message, BaseException):
        # The reply check replaces the message, and logs the exception.
        return msgspec.structs.replace(error, message=cast("str", message))
    shown, reference = with_reference(error)
    text = "tool %r returned a failure without a message, reference %s; its members are: %s"
    logger().error(text, tool.name, reference, ", ".join(map(str, value)))
    return shown


def _read_envelope(tool: Tool, value: JsonObject, *, failed: bool) -> Reply[Any]:
    found = dict(value)
    if isinstance(exc := found.get("error"), BaseException):
        # The reply check replaces the message, and logs the exception.
        return Reply(error=Error(UNKNOWN_ERROR, cast("str", exc)))
    if not isinstance(found.get("content", []), list | tuple):
        found.setdefault("message", found.pop("content"))
    complete = _plain(complete_envelope(found, failed=failed), envelope.write_block)
    reply = envelope.read(complete)
    others = {name: each for name, each in complete.items() if name not in _KNOWN_MEMBERS}
    if reply.error is not None:
        others |= {"data": complete["data"]} if complete.get("data") else {}
        error = reply.error
        if error.details is None:
            # All members that an error has no field for.
            more = {
                name: each
                for name, each in complete["error"].items()
                if name not in Error.__struct_fields__ and each not in (None, error.message)
            }
            error = msgspec.structs.replace(error, details=more | others or None)
        return Reply(
            content=_without_message(reply.content, error),
            error=error,
            meta=reply.meta,
            timestamp=reply.timestamp,
        )
    message = found.get("message")
    texts = (Text(message),) if message and isinstance(message, str) else ()
    data = reply.data
    if not (tool.returns.declared and is_object(tool.returns.data_type)):
        # `wrap` adds an object, because the envelope requires one.
        data = RESULT.unwrap(data)
    return msgspec.structs.replace(
        reply,
        content=reply.content if found.get("content") else texts,
        data=data,
        meta=others | reply.meta,
    )


def _without_message(content: tuple[Block, ...], error: Error) -> tuple[Block, ...]:
    match content:
        case (Text(text=text, annotations=None, meta=None), *rest):
            message = message_from_text(str(error.message), "prefixed")
            if message_from_text(text, "prefixed") == message:
                return tuple(rest)
    return content


def _is_json_of(block: Block, data: Json) -> bool:
    match block:
        case Text(text=text, annotations=None, meta=None) if data is not msgspec.UNSET:
            try:
                return bool(msgspec.json.decode(text) == data)
            except ValueError:
                return False
    return False


def _plain(value: JsonObject, write_block: Any) -> JsonObject:
    """Return the JSON values of *value*; blocks in its content are written as objects."""
    blocks = value.get("content") or ()
    if any(map(is_block, blocks)):
        written = [write_block(own_block(each)) if is_block(each) else each for each in blocks]
        value = {**value, "content": written}
    plain: JsonObject = Output(Any).encode(value)[1]
    return plain


def _refuse(message: str) -> None:
    raise ValueError(message)


def _log_wrong_meta(tool: Tool, reply: Reply[Any]) -> None:
    """Log the first wrong host key, but send the reply: it may come from another server."""
    given: list[tuple[Any, Place, str]] = [(reply.meta, "result", "_meta")] if reply.meta else []
    for n, block in enumerate(reply.content):
        if block.meta:
            given.append((block.meta, "block", f"content[{n}]._meta"))
    if not given:
        return
    from ..core.metadata import check_meta

    for meta, place, path in given:
        try:
            check_meta(meta, place, path, misspelt=_refuse)
        except (TypeError, ValueError) as error:
            tool.logged_meta = True
            message = "tool %r returned a finished reply with metadata that hosts will not find: %s"
            logger().warning(message, tool.name, error)
            return
