"""Makes a reply from a tool's return value, and checks that it can be sent."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import cache
from typing import Any, TypeAlias, TypeVar

import msgspec

from ..core.content import BLOCKS, Audio, Block, Image, changed_block
from ..core.foreign_content import content_of, is_block, is_result
from ..core.log import logger
from ..core.reply import FINISHED_MARKS, Error, Reply
from ..core.shape import EMPTY, Shape
from ..tools.return_type import shape_of_value
from ..tools.tool import Tool
from ..types.output import Output
from ..types.problems import InvalidOutput

T = TypeVar("T")
ReplyTo: TypeAlias = Callable[[Tool, Any], Reply[Any]]
"""Makes the checked reply for a function's return value."""
_Meta: Any = dict[str, Any] | None

_WITHOUT_DATA = (
    "content without the data that the return type declares; "
    "declare the block's class, or return success(data, content=[…])"
)
_STRUCT_META = type(msgspec.Struct)
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
    if not tool.returns.is_data:
        return _reply_without_type(tool, value)
    try:
        encoded, data = tool.output.encode(value)
    except InvalidOutput:
        _refuse_block(value)
        raise
    return Reply(data=data, encoded=encoded)


def _refuse_block(value: object) -> None:
    if is_block(value):
        raise InvalidOutput("", _WITHOUT_DATA)


def _reply_without_type(tool: Tool, value: Any) -> Reply[Any]:
    """Return the reply for a value that may be content or a finished reply as well as data."""
    returns = tool.returns
    if not returns.declared and (blocks := content_of(value, only=returns.blocks_only)) is not None:
        return _checked(tool, Reply(content=blocks))
    if returns.declared:
        _refuse_block(value)
    if returns.blocks_only:
        raise InvalidOutput("", f"expected content blocks, got {type(value).__name__}")
    if returns.finished and _may_be_finished(value):
        # Imported here, because few tools return finished replies.
        from .finished_reply import finished_reply

        if (reply := finished_reply(tool, value)) is not None:
            return _checked(tool, reply)
    encoded, data, content = _encode_data(tool, value)
    shape = _value_shape(tool, value, encoded)
    return Reply(content=content, data=data, encoded=encoded, shape=shape)


def _may_be_finished(value: object) -> bool:
    if isinstance(value, dict):
        return not FINISHED_MARKS.isdisjoint(value)
    return is_result(value)


def _encode_data(
    tool: Tool, value: Any, content: tuple[Block, ...] = ()
) -> tuple[bytes, Any, tuple[Block, ...]]:
    """Return the JSON of *value*, the checked value, and *content* with the blocks in the value.

    Raises InvalidOutput.
    """
    if tool.returns.nested_blocks == "none" or type(value) is str:
        return *tool.output.encode(value), content
    if tool.returns.nested_blocks == "possible":
        try:
            encoded, data = tool.output.encode(value)
            # The JSON of every block has this member, ours and the SDK's.
            if b'"annotations":' not in encoded:
                return encoded, data, content
        except InvalidOutput:
            # It may have a block without a JSON form, such as FastMCP's Image.
            pass
    value, content = _take_blocks(value, content)
    return *tool.output.encode(value), checked_content(content)


def _take_blocks(value: object, content: tuple[Any, ...]) -> tuple[Any, tuple[Block, ...]]:
    """Return *value* without blocks, and our blocks for *content* and for those in the value."""
    # Imported here, because few tools return such blocks.
    from ..dialects.nested_blocks import take_blocks

    return take_blocks(value, content)


def _value_shape(tool: Tool, value: object, encoded: bytes) -> Shape | None:
    """Return the shape of data without a declared type."""
    if not tool.returns.by_value:
        return None
    return tool.sent_shape(shape_of_value(value, encoded, tool.contract))


def checked_error(error: Error, owner: str) -> Error:
    """Return the error; members that cannot be sent are removed and logged.

    *owner* names what failed, such as `tool 'add'`.
    """
    message: object = error.message
    if isinstance(message, BaseException):
        error = _without_exception(error, message, owner)
    try:
        _through_json(error, Error, "error")
    except InvalidOutput as exc:
        message = "the error of %s is sent in part, because some of it cannot be sent: %s"
        logger().error(message, owner, exc, exc_info=exc.__cause__)
        return _sendable_part(error)
    return error


def _without_exception(error: Error, exc: BaseException, owner: str) -> Error:
    """Return the error with a message made from its code: the text of *exc* is not for callers."""
    reference = os.urandom(6).hex()
    message = (
        "the message of the error of %s is an exception and is not shown, reference %s; "
        "to show its text, pass str(exc)"
    )
    logger().error(message, owner, reference, exc_info=exc)
    words = _valid_text(error.code).replace("_", " ").capitalize()
    details = {"reference": reference} if error.details is None else error.details
    shown = f"{words} (reference {reference})"
    return msgspec.structs.replace(error, message=shown, details=details)


def checked_content(blocks: Sequence[Any]) -> tuple[Block, ...]:
    """Return our blocks for *blocks*; raise InvalidOutput for one that cannot be sent."""
    for index, block in enumerate(blocks):
        if not is_block(block):
            kind = type(block).__name__
            raise InvalidOutput(f"content[{index}]", f"expected a content block, got {kind}")
    own = tuple(blocks)
    if not all(isinstance(block, BLOCKS) for block in own):
        own = _take_blocks(None, own)[1]
    for index, block in enumerate(own):
        _check_block(block, f"content[{index}]")
    return own


def _checked(tool: Tool, reply: Reply[Any]) -> Reply[Any]:
    """Check the types in a reply the tool made itself; msgspec checks them only in JSON."""
    members = msgspec.structs.asdict(reply)
    for name, kind in _MEMBER_TYPES.items():
        if not isinstance(members[name], kind):
            raise InvalidOutput(name, f"cannot be of type {type(members[name]).__name__}")
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


def _checked_data(
    tool: Tool, data: object, content: tuple[Block, ...]
) -> tuple[bytes | None, Any, tuple[Block, ...]]:
    if data is not msgspec.UNSET:
        return _encode_data(tool, data, content)
    if not tool.returns.declared:
        return None, msgspec.UNSET, content
    if tool.returns.shape is EMPTY:
        return b"null", None, content
    raise InvalidOutput("", _WITHOUT_DATA)


def _check_block(block: Block, path: str) -> None:
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


def _through_json(value: object, kind: type[T], path: str) -> T:
    """Encode the value and decode it as *kind*; raises InvalidOutput."""
    encoded = _encode(value, path)
    try:
        return msgspec.json.decode(encoded, type=kind)
    except msgspec.ValidationError as exc:
        message, _, at = str(exc).partition(" - at `$")
        message = message.replace("`", "")
        raise InvalidOutput(path + at.rstrip("`"), message[:1].lower() + message[1:]) from None


def _sendable_part(error: Error) -> Error:
    """Return the error without the members that cannot be sent."""
    kept: dict[str, Any] = {}
    given = msgspec.structs.asdict(error)
    for name in ("details", "retryable", "hint", "kind"):
        with_one_member = Error("", "", **{name: given[name]})
        try:
            kept[name] = msgspec.structs.asdict(_through_json(with_one_member, Error, "error"))[
                name
            ]
        except InvalidOutput:
            continue
    return Error(_valid_text(error.code), _valid_text(error.message), **kept)


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
