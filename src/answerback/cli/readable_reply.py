"""Renders a reply as text for a person at a terminal.

This is a separate module because `call` imports it only for terminals, never for a pipe.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ..core.content import Audio, Block, Embedded, Image, Link, Text
from ..core.reply import Error, Reply
from ..core.shape import Shape
from ..dialects.mcp_blocks import write_block
from ..dialects.readable import render, render_line
from ..server.process import Stdout
from .program import printable_line, write_json, write_stdout

_ADVICE = "save it with --output FILE"


def reply_text(reply: Reply[Any], shape: Shape) -> str:
    """Return the reply's content blocks, then its data."""
    parts = [block_text(block) for block in reply.content]
    is_empty = shape.wrapping == "empty"
    if reply.data is not msgspec.UNSET and not (parts and is_empty):
        data = msgspec.json.decode(reply.encoded or msgspec.json.encode(reply.data))
        parts.append(render({} if is_empty else data))
    return "\n\n".join(parts or [render({})])


def error_text(error: Error, hint: str | None = None) -> str:
    """Return the message and the code on the first line, with further lines and the hint below."""
    head, message = "Invalid arguments", error.message
    if "\n" in message and message.startswith(f"{head}: "):
        # With several invalid arguments, each has its own line.
        message = f"{head}\n{message.removeprefix(f'{head}: ')}"
    first, *more = render(message).split("\n")
    lines = [f"error: {first} ({render_line(error.code)})", *(f"  {line}" for line in more)]
    if hint := error.hint or hint:
        lines.append(f"hint: {render(hint)}".replace("\n", "\n  "))
    return "\n".join(lines)


def block_text(block: Block) -> str:
    match block:
        case Text(text=text):
            return render(text)
        case Image(url=str(url)) | Audio(url=str(url)):
            return render_line(f"{block.alt or block.caption or type(block).__name__}: {url}")
        case Image() | Audio():
            return render_line(f"{block.mime}, {len(block.data)} bytes; {_ADVICE}")
        case Link():
            return render_line(f"{block.title or block.name}: {block.uri}")
        case Embedded(text=str(text)):
            return render(text)
        case Embedded():
            return render_line(f"{block.uri}, {len(block.blob or b'')} bytes; {_ADVICE}")


def print_prompt(reply: Reply[Any], out: Stdout) -> int:
    """Print a prompt's messages; each is a block, with its role in the reply's meta."""
    messages = list(zip(reply.meta["roles"], reply.content, strict=True))
    if out.is_terminal:
        texts = [f"{printable_line(role)}:\n{block_text(block)}" for role, block in messages]
        write_stdout(out, ("\n\n".join(texts) + "\n").encode())
        return 0
    shown = [{"role": role, "content": write_block(block)} for role, block in messages]
    description = reply.meta["description"]
    members = {"description": description} if description else {}
    write_json(out, msgspec.json.encode({**members, "messages": shown}))
    return 0
