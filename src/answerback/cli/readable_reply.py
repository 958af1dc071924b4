"""Renders a reply as text for a person at a terminal.

A separate module, because `call` imports it only for terminals, never for a pipe.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ..core.content import Audio, Block, Embedded, Image, Link, Text
from ..core.reply import Error, Reply
from ..core.shape import Shape
from ..dialects.readable import render, render_line


def reply_text(reply: Reply[Any], shape: Shape) -> str:
    """Return the reply's content blocks, then its data."""
    is_only_block = len(reply.content) == 1 and reply.data is msgspec.UNSET
    parts = [_block_text(block, is_only_block) for block in reply.content]
    is_empty = shape.wrapping == "empty"
    if reply.data is not msgspec.UNSET and not (parts and is_empty):
        data = msgspec.json.decode(reply.encoded or msgspec.json.encode(reply.data))
        parts.append(render({} if is_empty else data))
    return "\n\n".join(parts or [render({})])


def error_text(error: Error, hint: str | None = None) -> str:
    """Return the message and the code in the first line, further lines and the hint below."""
    first, *more = render(_message(error)).split("\n")
    lines = [f"error: {first} ({render_line(error.code)})", *(f"  {line}" for line in more)]
    if hint := error.hint or hint:
        lines.append(f"hint: {render(hint)}".replace("\n", "\n  "))
    return "\n".join(lines)


def _message(error: Error) -> str:
    """Return the error's message; several invalid arguments get a line each."""
    head = "Invalid arguments"
    if "\n" in error.message and error.message.startswith(f"{head}: "):
        return f"{head}\n{error.message.removeprefix(f'{head}: ')}"
    return error.message


def _block_text(block: Block, is_only_block: bool) -> str:
    match block:
        case Text(text=text):
            return render(text)
        case Image(url=str(url)) | Audio(url=str(url)):
            return render_line(f"{block.alt or block.caption or type(block).__name__}: {url}")
        case Image() | Audio():
            # With other content beside it, a pipe gets JSON and not just the bytes.
            advice = "; pipe it to a file" if is_only_block else ""
            return render_line(f"{block.mime}, {len(block.data)} bytes{advice}")
        case Link():
            return render_line(f"{block.title or block.name}: {block.uri}")
        case Embedded(text=str(text)):
            return render(text)
        case Embedded():
            return render_line(f"{block.uri}, {len(block.blob or b'')} bytes")
