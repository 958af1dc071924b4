"""Prints the messages of a prompt: text on a terminal, MCP's JSON to a pipe."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ..core.content import Block
from ..dialects.mcp_blocks import write_block
from ..server.standard_streams import Stdout
from .program import printable_line, write_json, write_stdout
from .readable_reply import block_text


def print_prompt(
    roles: Sequence[str], blocks: Sequence[Block], description: str, out: Stdout
) -> int:
    messages = list(zip(roles, blocks, strict=True))
    if out.is_terminal:
        texts = [f"{printable_line(role)}:\n{block_text(block)}" for role, block in messages]
        write_stdout(out, ("\n\n".join(texts) + "\n").encode())
        return 0
    shown = [{"role": role, "content": write_block(block)} for role, block in messages]
    members = {"description": description} if description else {}
    write_json(out, msgspec.json.encode({**members, "messages": shown}))
    return 0
