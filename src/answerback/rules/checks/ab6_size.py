"""AB6xx: the size of a reply, in tokens and in bytes."""

from __future__ import annotations

from typing import Any

import msgspec

from ..examples import MCP_DATA, MCP_IMAGE, PNG, blocks_result, text_result
from ..finding import ENVELOPE, MCP, Fault, Faults, Scope, rule
from ..reply_view import ReplyView

TOKENS = 25_000
"""The number of tokens at which Claude Code cuts off a reply."""
BYTES_PER_TOKEN = 4
MESSAGE = 10 * 1024 * 1024
"""The size in bytes of the largest message that the TypeScript client reads over stdio."""
_SMALL = 40  # A shorter text may well stand in a reply twice.
_encode = msgspec.json.Encoder(order="deterministic").encode
_COMPARED = 400  # Two payloads that begin with the same 400 characters are the same.


def _drop_repeated_block(reply: dict[str, Any], pointer: str) -> None:
    if pointer.startswith("/content/"):
        index = int(pointer.split("/")[2])
        if reply["content"][index] in reply["content"][:index]:
            del reply["content"][index]


@rule(
    "AB601",
    scope=Scope(dialects=MCP + ENVELOPE, plain_replies="none"),
    severity="warning",
    hint="send it once: bytes as a block, and their name or size in the data",
    bad=blocks_result(
        {"type": "image", "data": PNG, "mimeType": "image/png"},
        {"type": "text", "text": f'{{"screenshot":"{PNG}"}}'},
    ),
    good=MCP_IMAGE,
    fix=_drop_repeated_block,
)
def payload_sent_twice(reply: ReplyView) -> Faults:
    """The model pays for the payload twice, and an image as text costs more than the image."""
    if len(reply.blocks) < 2 and not reply.media:
        return ()
    return [*_repeated_media(reply), *_repeated_texts(reply)]


def _repeated_media(reply: ReplyView) -> list[Fault]:
    faults, seen = [], set()
    for index, data in reply.media:
        if len(data) < _SMALL:
            continue
        if data in seen:
            faults.append(Fault(f"/content/{index}", "an earlier block has the same bytes"))
        elif data[:_COMPARED] in reply.json_text:
            message = "the text or the data has the bytes of this block too"
            faults.append(Fault(f"/content/{index}", message))
        seen.add(data)
    return faults


def _repeated_texts(reply: ReplyView) -> list[Fault]:
    values = {index: value for index, _, value in reply.json_texts}
    faults: list[Fault] = []
    seen: set[str | bytes] = set()
    for index, text in reply.texts:
        if len(text) >= _SMALL:
            # A set cannot hold the decoded objects.
            value = _encode(values[index]) if index in values else text
            if value in seen:
                faults.append(Fault(f"/content/{index}", "an earlier block says the same"))
            seen.add(value)
    return faults


@rule(
    "AB602",
    scope=Scope(dialects=MCP + ENVELOPE, plain_replies="none"),
    severity="warning",
    hint="send a page at a time, or a summary and a link to the rest",
    bad=lambda: text_result("a line of a very long file\n" * 4_000),
    good=text_result("a line of a very long file\n" * 40 + "… 3,960 more lines; ask for offset=40"),
)
def too_many_tokens(reply: ReplyView) -> Faults:
    """Hosts cut off a reply at a limit, and the part that is left is no longer valid JSON."""
    if len(reply.json_text) <= TOKENS * BYTES_PER_TOKEN:
        return ()
    size = sum(len(text) for _, text in reply.texts)
    if size > TOKENS * BYTES_PER_TOKEN:
        return [_too_many("/content", size)]
    if reply.dialect == "mcp" and len(reply.json_text) - size > TOKENS * BYTES_PER_TOKEN:
        return [_too_many("/structuredContent" if reply.data else "", len(reply.json_text) - size)]
    return ()


def _too_many(pointer: str, size: int) -> Fault:
    tokens = size // BYTES_PER_TOKEN
    return Fault(pointer, f"about {tokens:,} tokens, where hosts take {TOKENS:,}")


@rule(
    "AB603",
    scope=Scope(dialects=MCP, plain_replies="none"),
    severity="warning",
    hint="send a resource_link, which a client reads when it needs it",
    bad=lambda: blocks_result(
        {"type": "image", "data": "AAAA" * (MESSAGE // 4), "mimeType": "image/bmp"}
    ),
    good=MCP_DATA,
)
def message_too_large(reply: ReplyView) -> Faults:
    """The TypeScript client drops the connection on a message of more than 10 MiB."""
    size = len(reply.json_text)
    for _, data in reply.media:
        size += len(data)
    return [Fault("", f"{size / 1024 / 1024:.1f} MiB in one message")] if size > MESSAGE else ()
