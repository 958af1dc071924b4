"""Makes a reply of what a tool gave back, and lets nothing leave that would not be valid."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import cache
from typing import Any, TypeVar

import msgspec

from ..content import BLOCKS, Audio, Block, Image, Text
from ..reply import Error, Reply
from ..shape import EMPTY
from ..tools.tool import Tool
from ..types.output import Output
from ..types.problems import InvalidOutput

T = TypeVar("T")

_STRUCTS = type(msgspec.Struct)
_MEMBERS = {
    "content": list | tuple,
    "error": Error | None,
    "meta": dict,
    "timestamp": datetime,
}


def reply_to(tool: Tool, value: Any) -> Reply[Any]:
    """The checked reply for what *tool* gave back; raises InvalidOutput."""
    # Few values are Structs, and to ask a Struct's class whether one is its own takes long.
    if isinstance(type(value), _STRUCTS):
        if isinstance(value, Reply):
            return _checked(tool, value)
        if isinstance(value, BLOCKS):
            return _checked(tool, Reply(content=(value,)))
    returns = tool.returns
    if not returns.declared and (blocks := _blocks(value, alone=returns.blocks_only)) is not None:
        return _checked(tool, Reply(content=blocks))
    if returns.blocks_only:
        raise InvalidOutput("", f"expected content blocks, got {type(value).__name__}")
    encoded, data = tool.output.encode(value)
    return Reply(data=data, encoded=encoded)


def checked_error(error: Error, name: str) -> Error:
    """The error of the tool *name* as it can be sent; what cannot be is left out, and logged."""
    try:
        _as_sent(error, Error, "error")
    except InvalidOutput as exc:
        import logging

        told = "tool %r failed in a way that cannot be sent whole: %s"
        logging.getLogger("answerback").error(told, name, exc, exc_info=exc.__cause__)
        return _mended(error)
    return error


def check_content(blocks: Sequence[Block]) -> None:
    """Raises InvalidOutput for a block that could not be sent."""
    for index, block in enumerate(blocks):
        _check_block(block, f"content[{index}]")


def _checked(tool: Tool, reply: Reply[Any]) -> Reply[Any]:
    """Structs are not checked as they are built, so a reply is checked as it will be sent."""
    for name, kind in _MEMBERS.items():
        member = getattr(reply, name)
        if not isinstance(member, kind):
            raise InvalidOutput(name, f"cannot be of type {type(member).__name__}")
    check_content(reply.content)
    if reply.meta:
        _encode_strictly(reply.meta, "meta")
    content = tuple(reply.content)
    if reply.error is not None:
        error = checked_error(reply.error, tool.name)
        return msgspec.structs.replace(reply, content=content, error=error, data=msgspec.UNSET)
    encoded, data = _checked_data(tool, reply.data)
    return msgspec.structs.replace(reply, content=content, data=data, encoded=encoded)


def _checked_data(tool: Tool, data: Any) -> tuple[bytes | None, Any]:
    if data is not msgspec.UNSET:
        return tool.output.encode(data)
    if not tool.returns.declared:
        return None, msgspec.UNSET
    if tool.shape is EMPTY:
        return b"null", None
    raise InvalidOutput("", "a reply without the data that the return type declares")


def _blocks(value: Any, *, alone: bool) -> tuple[Block, ...] | None:
    """The blocks of a list; beside blocks, or if there are blocks *alone*, a string is text."""
    if not isinstance(value, list | tuple):
        return None
    if not all(isinstance(item, (str, *BLOCKS)) for item in value):
        return None
    if not alone and not any(isinstance(item, BLOCKS) for item in value):
        return None
    return tuple(Text(item) if isinstance(item, str) else item for item in value)


def _check_block(block: Any, path: str) -> None:
    if not isinstance(block, BLOCKS):
        raise InvalidOutput(path, f"expected a content block, got {type(block).__name__}")
    # Bytes are bytes already, and may be many: they are not sent through JSON for a check.
    light = msgspec.structs.replace(block, data=b"") if isinstance(block, Image | Audio) else block
    _as_sent(light, type(block), path)


def _as_sent(value: Any, kind: type[T], path: str) -> T:
    """The value as its JSON reads back."""
    encoded = _encode_strictly(value, path)
    try:
        return msgspec.json.decode(encoded, type=kind)
    except msgspec.ValidationError as exc:
        message, _, at = str(exc).partition(" - at `$")
        message = message.replace("`", "")
        raise InvalidOutput(path + at.rstrip("`"), message[:1].lower() + message[1:]) from None


def _mended(error: Error) -> Error:
    """All that can be sent of the error."""
    kept: dict[str, Any] = {}
    for name in ("details", "retryable", "hint", "kind"):
        alone = Error("", "", **{name: getattr(error, name)})
        try:
            kept[name] = getattr(_as_sent(alone, Error, "error"), name)
        except InvalidOutput:
            continue
    return Error(_text(error.code), _text(error.message), **kept)


def _text(value: Any) -> str:
    return str(value).encode("utf-8", "replace").decode()


def _encode_strictly(value: Any, path: str) -> bytes:
    try:
        return _any_output().encode(value)[0]
    except InvalidOutput as exc:
        raise exc.below(path) from exc.__cause__


@cache
def _any_output() -> Output:
    return Output(Any)
