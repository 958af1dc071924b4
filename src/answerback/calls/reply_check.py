"""Makes a reply from a tool's return value, and checks that it can be sent."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import cache
from typing import Any, TypeAlias, TypeVar

import msgspec

from ..core.content import (
    BLOCKS,
    Audio,
    Block,
    Embedded,
    Image,
    Link,
    Text,
    changed_block,
    content_of,
    is_block,
)
from ..core.log import logger
from ..core.reply import Error, Reply
from ..core.shape import EMPTY, Shape
from ..errors import UNKNOWN_TEXT, ToolError, words_of
from ..tools.return_type import ReturnType, shape_of_value
from ..tools.tool import Tool
from ..types.output import Output
from ..types.problems import InvalidOutput
from ..verdicts.forms import may_be_failure_line

T = TypeVar("T")
ReplyTo: TypeAlias = Callable[[Tool, Any], Reply[Any]]
"""Makes the checked reply for a function's return value."""
_Meta: Any = dict[str, Any] | None

_WITHOUT_DATA = (
    "content without the data that the return type declares; "
    "declare the block's class, or return success(data, content=[…])"
)
_EXCEPTION_AS_MESSAGE = (
    "the error message from %s is an exception and is not shown, reference %s; "
    "to show its text, pass str(exc)"
)
_STRUCT_META = type(msgspec.Struct)
_PRINTED_STARTS = ("undefined", "Promise {", "Embedded ", "Audio ", "Image ")
_SCALARS = frozenset({int, float, bool, type(None)})
# Text that starts with one of these may be JSON or a printed object, so it is inspected.
_SUSPECT_STARTS = ("{", "[", "<", "```", " ", "\n", "\t", "\r", '"{', '"[', *_PRINTED_STARTS)
_MEMBER_TYPES = {
    "content": list | tuple,
    "error": Error | None,
    "meta": dict,
    "timestamp": datetime,
}


def reply_to(tool: Tool, value: object) -> Reply[Any]:
    """Return the checked reply for *tool*'s return value; raises InvalidOutput."""
    # Few values are Structs, and `isinstance` with a Struct class is slow, so the value's class is
    # tested first.
    if isinstance(type(value), _STRUCT_META):
        if isinstance(value, Reply):
            return _checked(tool, value)
        if isinstance(value, BLOCKS):
            return _checked(tool, Reply(content=(value,)))
    returns = tool.returns
    is_judged = returns.finished and type(value) not in _SCALARS
    if is_judged and may_be_finished(returns, value):
        # Imported here, because few tools return finished replies.
        from .finished_reply import finished_reply

        if (reply := finished_reply(tool, value)) is not None:
            return _checked(tool, reply)
    if not returns.is_data or returns.nested_blocks != "none":
        return _reply_without_type(tool, value)
    try:
        encoded, data = tool.output.encode(value)
    except InvalidOutput as exc:
        if isinstance(value, ToolError):
            raise value from None
        _refuse_block(value)
        _keep_text(exc, value)
        raise
    return Reply(data=data, encoded=encoded)


def _refuse_block(value: object) -> None:
    if is_block(value):
        raise InvalidOutput("", _WITHOUT_DATA)


def may_be_finished(returns: ReturnType, value: object) -> bool:
    """Return False for nearly all data, which then needs no inspection."""
    if isinstance(value, dict):
        return not value.keys().isdisjoint(returns.marks)
    if isinstance(value, str):
        return _is_suspect_text(value)
    if isinstance(value, list):
        is_judged = returns.judges_lists or not returns.is_data
        return is_judged and bool(value) and type(value[0]) is dict
    return not returns.is_data


def _reply_without_type(tool: Tool, value: object) -> Reply[Any]:
    """Return the reply for a value that may be content as well as data."""
    returns = tool.returns
    if isinstance(value, ToolError):
        raise value
    if not returns.declared and (blocks := content_of(value, only=returns.blocks_only)) is not None:
        return _checked(tool, Reply(content=blocks))
    if returns.declared:
        _refuse_block(value)
    if returns.blocks_only:
        raise InvalidOutput("", f"expected content blocks, got {type(value).__name__}")
    try:
        encoded, data, content = _encode_data(tool.output, returns, value)
    except InvalidOutput as exc:
        _keep_text(exc, value)
        raise
    shape = _value_shape(tool, value, encoded)
    return Reply(content=content, data=data, encoded=encoded, shape=shape)


def _encode_data(
    output: Output, returns: ReturnType, value: object, content: tuple[Block, ...] = ()
) -> tuple[bytes, Any, tuple[Block, ...]]:
    """Return the JSON of *value*, the checked value, and *content* with the blocks in the value.

    Raises InvalidOutput.
    """
    if returns.nested_blocks == "none" or type(value) is str:
        return *output.encode(value), content
    if returns.nested_blocks == "possible":
        try:
            encoded, data = output.encode(value)
            # The JSON of every block, ours or the SDK's, has the first member; the JSON of the
            # SDK's resource contents has the second.
            if b'"annotations":' not in encoded and b'"_meta":' not in encoded:
                return encoded, data, content
        except InvalidOutput:
            # It may contain a block that has no JSON form, such as FastMCP's Image.
            pass
    value, content = _take_blocks(value, content)
    return *output.encode(value), checked_content(content)


def _take_blocks(value: object, content: tuple[Any, ...]) -> tuple[Any, tuple[Block, ...]]:
    """Return *value* without its blocks, and *content* plus those blocks, converted to ours."""
    # Imported here, because few tools return such blocks.
    from ..dialects.foreign_blocks import take_blocks

    return take_blocks(value, content)


def _keep_text(exc: InvalidOutput, value: object) -> None:
    """Keep text returned instead of data, for the log: it is usually an error message."""
    exc.returned_text = value if isinstance(value, str) else None


def _value_shape(tool: Tool, value: object, encoded: bytes) -> Shape | None:
    """Return the shape of data without a declared type."""
    if not tool.returns.by_value and not tool.returns.free_data:
        return None
    return tool.sent_shape(shape_of_value(value, encoded, tool.contract))


def checked_error(error: Error, owner: str) -> Error:
    """Return the error; members that cannot be sent are removed and logged.

    *owner* names what failed, such as `tool 'add'`.
    """
    message: object = error.message
    if isinstance(message, BaseException):
        # The exception's text is not for callers; words derived from the code replace it.
        shown = msgspec.structs.replace(error, message=words_of(_valid_text(error.code)))
        error, reference = with_reference(shown)
        logger().error(_EXCEPTION_AS_MESSAGE, owner, reference, exc_info=message)
    elif _is_suspect_text(message):
        # Words derived from the code replace empty text, a printed object or a complete result.
        from .finished_reply import text_in

        readable = text_in(error.message) or text_in(words_of(_valid_text(error.code)))
        error = msgspec.structs.replace(error, message=readable or UNKNOWN_TEXT)
    try:
        _through_json(error, Error, "error")
    except InvalidOutput as exc:
        message = "the error from %s has parts that cannot be encoded; they were dropped: %s"
        logger().error(message, owner, exc, exc_info=exc.__cause__)
        # Leave out only the members, and the members of details, that cannot be sent.
        given = msgspec.structs.asdict(error)
        kept: dict[str, Any] = {}
        for name in ("details", "retryable", "hint", "kind"):
            kept |= _sent(name, given[name])
        if "details" not in kept and isinstance(error.details, dict):
            parts = [_sent("details", {key: each}) for key, each in error.details.items()]
            details = {key: each for part in parts for key, each in part.get("details", {}).items()}
            kept["details"] = details or None
        return Error(_valid_text(error.code), _valid_text(error.message), **kept)
    return error


def with_reference(error: Error) -> tuple[Error, str]:
    """Return the error with a new reference, and the reference: log the hidden cause under it."""
    reference = os.urandom(6).hex()
    details = error.details
    if details is None or isinstance(details, dict):
        details = {"reference": reference, **(details or {})}
    message = f"{error.message} (reference {reference})"
    return msgspec.structs.replace(error, message=message, details=details), reference


def checked_content(blocks: Sequence[Any]) -> tuple[Block, ...]:
    """Convert blocks to ours, with the media types of their bytes; raise InvalidOutput."""
    own = _own_content(blocks)
    return tuple(_checked_block(block, f"content[{n}]") for n, block in enumerate(own))


def _own_content(blocks: Sequence[Any]) -> tuple[Block, ...]:
    """Convert blocks from any library to ours; raise InvalidOutput for any other value."""
    for index, block in enumerate(blocks):
        if not is_block(block):
            kind = type(block).__name__
            raise InvalidOutput(f"content[{index}]", f"expected a content block, got {kind}")
    if all(isinstance(block, BLOCKS) for block in blocks):
        return tuple(blocks)
    return _take_blocks(None, tuple(blocks))[1]


def _checked(tool: Tool, reply: Reply[Any]) -> Reply[Any]:
    """Check the types in a reply the tool made itself; msgspec checks them only in JSON."""
    members = msgspec.structs.asdict(reply)
    for name, kind in _MEMBER_TYPES.items():
        if not isinstance(members[name], kind):
            raise InvalidOutput(name, f"cannot be of type {type(members[name]).__name__}")
    if not all(isinstance(block, BLOCKS) for block in reply.content):
        reply = msgspec.structs.replace(reply, content=_own_content(reply.content))
    if tool.returns.finished and _is_suspect(tool.returns, reply):
        from .finished_reply import judged_reply

        reply = judged_reply(tool, reply)
    content = checked_content(reply.content)
    if reply.meta:
        _encode(reply.meta, "meta")
    if reply.error is not None:
        error = checked_error(reply.error, tool.owner)
        return msgspec.structs.replace(reply, content=content, error=error, data=msgspec.UNSET)
    encoded, data, content = _checked_data(tool, reply.data, content)
    shape = None if encoded is None else _value_shape(tool, reply.data, encoded)
    return msgspec.structs.replace(
        reply, content=content, data=data, encoded=encoded, shape=shape, contract=None
    )


def _is_suspect(returns: ReturnType, reply: Reply[Any]) -> bool:
    """Return whether the reply's data or text must be inspected."""
    if reply.has_data and may_be_finished(returns, reply.data):
        return True
    return any(isinstance(block, Text) and _is_suspect_text(block.text) for block in reply.content)


def _is_suspect_text(text: object) -> bool:
    """Return whether a text may be JSON, a printed object, or an exception's line."""
    if not isinstance(text, str):
        return False
    if text.startswith(_SUSPECT_STARTS) or not text.strip():
        return True
    return may_be_failure_line(text)


def _checked_data(
    tool: Tool, data: object, content: tuple[Block, ...]
) -> tuple[bytes | None, Any, tuple[Block, ...]]:
    if data is not msgspec.UNSET:
        output = _any_output() if tool.returns.free_data else tool.output
        return _encode_data(output, tool.returns, data, content)
    if not tool.returns.declared:
        return None, msgspec.UNSET, content
    if tool.returns.shape is EMPTY:
        return b"null", None, content
    raise InvalidOutput("", _WITHOUT_DATA)


def _checked_block(block: Block, path: str) -> Block:
    without: dict[str, Any] = {}
    if isinstance(block, Image | Audio):
        # The bytes need no check and may be large, so they are not encoded here.
        without["data"] = b""
    members = msgspec.structs.asdict(block)
    for name in ("meta", "content_meta"):
        if members.get(name) is not None:
            # Decoding a block would check host keys, which another server may have set.
            _through_json(members[name], _Meta, f"{path}.{name}")
            without[name] = None
    _through_json(changed_block(block, **without) if without else block, type(block), path)
    return block if isinstance(block, Text | Link) else _with_media_type(block, path)


def _with_media_type(block: Image | Audio | Embedded, path: str) -> Block:
    """Return the block with the media type of its bytes; raise InvalidOutput if none fits."""
    is_media = isinstance(block, Image | Audio)
    if isinstance(block, Image | Audio):
        payload = block.data
        if block.url is not None:
            return block
        if not payload:
            raise InvalidOutput(f"{path}.data", f"the {block.type} has no bytes")
    else:
        payload = block.blob or b""
    # Imported here, because few replies have bytes.
    from ..core.media_types import is_media_type_of, media_type_of, media_types_agree

    mime, detected = block.mime, media_type_of(payload)
    if mime is not None and detected is not None and not media_types_agree(mime, detected):
        mime = detected
    if is_media and not is_media_type_of(block.type, mime or ""):
        message = f"expected a media type such as {block.type}/…, got {mime!r}"
        raise InvalidOutput(f"{path}.mime", message)
    return block if mime == block.mime else changed_block(block, mime=mime)


def _through_json(value: object, kind: type[T], path: str) -> T:
    """Encode the value and decode it as *kind*; raises InvalidOutput."""
    encoded = _encode(value, path)
    try:
        return msgspec.json.decode(encoded, type=kind)
    except msgspec.ValidationError as exc:
        message, _, at = str(exc).partition(" - at `$")
        message = message.replace("`", "")
        raise InvalidOutput(path + at.rstrip("`"), message[:1].lower() + message[1:]) from None


def _sent(name: str, member: object) -> dict[str, Any]:
    """Return {name: value} as clients receive it; empty if the value cannot be sent."""
    with_one_member: dict[str, Any] = {name: member}
    try:
        received = _through_json(Error("", "", **with_one_member), Error, "error")
    except InvalidOutput:
        return {}
    return {name: getattr(received, name)}


def _valid_text(value: object) -> str:
    # Lone surrogates cannot be encoded.
    return str(value).encode("utf-8", "replace").decode()


def _encode(value: object, path: str) -> bytes:
    """Return the value as JSON; raises InvalidOutput with a path that starts with *path*."""
    try:
        return _any_output().encode(value)[0]
    except InvalidOutput as exc:
        raise exc.below(path) from exc.__cause__


@cache
def _any_output() -> Output:
    return Output(Any)
