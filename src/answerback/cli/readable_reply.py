"""A reply as a person reads it on a terminal."""

from __future__ import annotations

from typing import Any

import msgspec

from ..content import Audio, Block, Embedded, Image, Link, Text
from ..dialects.readable import render
from ..reply import Error, Reply
from ..shape import EMPTY, Shape


def readable(reply: Reply[Any], shape: Shape) -> str:
    """What the tool said in its own words, then its data."""
    lone = len(reply.content) == 1 and reply.data is msgspec.UNSET
    parts = [_block(block, lone) for block in reply.content]
    if reply.data is not msgspec.UNSET and not (parts and shape == EMPTY):
        plain = msgspec.json.decode(reply.encoded or msgspec.json.encode(reply.data))
        parts.append(render({} if shape == EMPTY else plain))
    return "\n\n".join(parts or [render({})])


def readable_error(error: Error, hint: str | None = None) -> str:
    """The message with its code in the first line, what else there is to it below."""
    first, *more = render(_message(error)).split("\n")
    lines = [f"error: {first} ({error.code})", *(f"  {line}" for line in more)]
    if hint := error.hint or hint:
        lines.append(f"hint: {render(hint)}")
    return "\n".join(lines)


def _message(error: Error) -> str:
    """The error's own; several problems stand in lines of their own, under what they are."""
    head = "Invalid arguments"
    if "\n" in error.message and error.message.startswith(f"{head}: "):
        return f"{head}\n{error.message.removeprefix(f'{head}: ')}"
    return error.message


def _block(block: Block, lone: bool) -> str:
    match block:
        case Text(text=text):
            return render(text)
        case Image(url=str(url)) | Audio(url=str(url)):
            return render(f"{block.alt or block.caption or type(block).__name__}: {url}")
        case Image() | Audio():
            # Beside other content the bytes are part of the JSON.
            advice = "; pipe it to a file" if lone else ""
            return render(f"{block.mime}, {len(block.data)} bytes{advice}")
        case Link():
            return render(f"{block.title or block.name}: {block.uri}")
        case Embedded(text=str(text)):
            return render(text)
        case Embedded():
            return render(f"{block.uri}, {len(block.blob or b'')} bytes")
