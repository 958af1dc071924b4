"""Makes a reply of what a tool gave back, and lets nothing leave that would not be valid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from .content import BLOCKS, Audio, Block, Image, Text
from .reply import Error, Reply
from .tool import Tool
from .types.problems import InvalidOutput


def reply_to(tool: Tool, value: Any) -> Reply[Any]:
    """The checked reply for what *tool* gave back; raises InvalidOutput."""
    if isinstance(value, Reply):
        return _checked(tool, value)
    if (blocks := _blocks(value)) is not None:
        return _checked(tool, Reply(content=blocks))
    if tool.returns.blocks_only:
        if isinstance(value, list | tuple) and not value:
            return Reply()
        raise InvalidOutput("", f"expected content blocks, got {type(value).__name__}")
    encoded, data = tool.output.encode(value)
    return Reply(data=data, encoded=encoded)


def checked_error(error: Error) -> tuple[Error, Exception | None]:
    """The error as it can be sent; what cannot be sent of it is left out, and told."""
    try:
        _encode_strictly(error)
    except InvalidOutput as exc:
        message = str(error.message).encode("utf-8", "replace").decode()
        return msgspec.structs.replace(error, message=message, details=None, hint=None), exc
    return error, None


def check_content(blocks: Sequence[Block]) -> None:
    """Raises InvalidOutput for a block that could not be sent."""
    for index, block in enumerate(blocks):
        _check_block(block, f"content[{index}]")


def _checked(tool: Tool, reply: Reply[Any]) -> Reply[Any]:
    check_content(reply.content)
    if reply.meta:
        _encode_strictly(reply.meta, "meta")
    if reply.error is not None:
        return msgspec.structs.replace(reply, error=checked_error(reply.error)[0])
    if reply.data is msgspec.UNSET:
        if tool.returns.declared:
            raise InvalidOutput("", f"expected {tool.returns.data}, got a reply without data")
        return reply
    encoded, data = tool.output.encode(reply.data)
    return msgspec.structs.replace(reply, data=data, encoded=encoded)


def _blocks(value: Any) -> tuple[Block, ...] | None:
    """The blocks that *value* is, or is a list of; beside blocks, a string is text."""
    if isinstance(value, BLOCKS):
        return (value,)
    if not isinstance(value, list | tuple) or not any(isinstance(item, BLOCKS) for item in value):
        return None
    blocks = tuple(Text(item) if isinstance(item, str) else item for item in value)
    return blocks if all(isinstance(block, BLOCKS) for block in blocks) else None


def _check_block(block: Any, path: str) -> None:
    """Structs are not checked as they are built, so a block is checked as it will be sent."""
    if not isinstance(block, BLOCKS):
        raise InvalidOutput(path, f"expected a content block, got {type(block).__name__}")
    # Bytes are bytes already, and may be many: they are not sent through JSON for a check.
    light = msgspec.structs.replace(block, data=b"") if isinstance(block, Image | Audio) else block
    try:
        msgspec.json.decode(_encode_strictly(light, path), type=type(block))
    except msgspec.ValidationError as exc:
        raise InvalidOutput(path, str(exc)) from None


def _encode_strictly(value: Any, path: str = "") -> bytes:
    from .types.output import Output

    try:
        return Output(Any).encode(value)[0]
    except InvalidOutput as exc:
        raise InvalidOutput(f"{path}.{exc.path}".strip("."), exc.message) from None
