"""Makes a reply from a tool's return value, and checks that it can be sent."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import cache
from typing import Any, TypeAlias, TypeVar

import msgspec

from ..core.content import BLOCKS, Audio, Block, Image, Text, changed_block
from ..core.log import logger
from ..core.reply import FINISHED_MARKS, Error, Reply
from ..core.shape import EMPTY, Shape
from ..tools.return_type import is_result_class, shape_of_value
from ..tools.tool import Tool
from ..types.output import Output
from ..types.problems import InvalidOutput

T = TypeVar("T")
ReplyTo: TypeAlias = Callable[[Tool, Any], Reply[Any]]
"""Makes the checked reply for a function's return value."""
_Meta: Any = dict[str, Any] | None

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
    except InvalidOutput as exc:
        _keep_text(exc, value)
        raise
    return Reply(data=data, encoded=encoded)


def _reply_without_type(tool: Tool, value: Any) -> Reply[Any]:
    """Return the reply for a value that may be content or a finished reply as well as data."""
    returns = tool.returns
    if not returns.declared and (blocks := _blocks(value, only=returns.blocks_only)) is not None:
        return _checked(tool, Reply(content=blocks))
    if returns.blocks_only:
        raise InvalidOutput("", f"expected content blocks, got {type(value).__name__}")
    if returns.finished and is_result_class(type(value)):
        value = value.model_dump(by_alias=True, mode="json", exclude_none=True)
    if returns.finished and isinstance(value, dict) and not FINISHED_MARKS.isdisjoint(value):
        # Imported here, because few tools return finished replies.
        from .finished_reply import finished_reply

        if (reply := finished_reply(tool, value)) is not None:
            return _checked(tool, reply)
    try:
        encoded, data = tool.output.encode(value)
    except InvalidOutput as exc:
        _keep_text(exc, value)
        raise
    return Reply(data=data, encoded=encoded, shape=_value_shape(tool, value, encoded))


def _keep_text(exc: InvalidOutput, value: object) -> None:
    """Keep a text that was returned instead of data, for the log: usually it is an error's."""
    exc.returned_text = value if isinstance(value, str) else None


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


def check_content(blocks: Sequence[Block]) -> None:
    """Raise InvalidOutput for a block that cannot be sent."""
    for index, block in enumerate(blocks):
        _check_block(block, f"content[{index}]")


def _checked(tool: Tool, reply: Reply[Any]) -> Reply[Any]:
    """Check the types in a reply the tool made itself; msgspec checks them only in JSON."""
    members = msgspec.structs.asdict(reply)
    for name, kind in _MEMBER_TYPES.items():
        if not isinstance(members[name], kind):
            raise InvalidOutput(name, f"cannot be of type {type(members[name]).__name__}")
    check_content(reply.content)
    if reply.meta:
        _encode(reply.meta, "meta")
    content = tuple(reply.content)
    if reply.error is not None:
        error = checked_error(reply.error, tool.owner)
        return msgspec.structs.replace(reply, content=content, error=error, data=msgspec.UNSET)
    encoded, data = _checked_data(tool, reply.data)
    shape = None if encoded is None else _value_shape(tool, reply.data, encoded)
    return msgspec.structs.replace(
        reply, content=content, data=data, encoded=encoded, shape=shape, contract=None
    )


def _checked_data(tool: Tool, data: object) -> tuple[bytes | None, Any]:
    if data is not msgspec.UNSET:
        return tool.output.encode(data)
    if not tool.returns.declared:
        return None, msgspec.UNSET
    if tool.returns.shape is EMPTY:
        return b"null", None
    raise InvalidOutput("", "a reply without the data that the return type declares")


def _blocks(value: object, *, only: bool) -> tuple[Block, ...] | None:
    """Return the content blocks in a list, or None if it is a list of something else.

    Strings become text blocks if *only* blocks are declared, or if there is a block too.
    """
    if not isinstance(value, list | tuple):
        return None
    if not all(isinstance(item, (str, *BLOCKS)) for item in value):
        return None
    if not only and not any(isinstance(item, BLOCKS) for item in value):
        return None
    return tuple(Text(item) if isinstance(item, str) else item for item in value)


def _check_block(block: object, path: str) -> None:
    if not isinstance(block, BLOCKS):
        raise InvalidOutput(path, f"expected a content block, got {type(block).__name__}")
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
