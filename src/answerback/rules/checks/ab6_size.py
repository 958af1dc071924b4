"""AB6xx: what a reply costs those who read it."""

from __future__ import annotations

from typing import Any

from ..examples import MCP_DATA, MCP_IMAGE, PNG, said, shown
from ..finding import ENVELOPE, MCP, About, Fault, Faults, Scope, rule
from ..reply_view import Subject

TOKENS = 25_000
"""What Claude Code takes from a tool before it cuts the reply off."""
BYTES_PER_TOKEN = 4
MESSAGE = 10 * 1024 * 1024
"""What the TypeScript client reads over stdio before it gives up."""
_SMALL = 40  # A short text may well stand in a reply twice.
_ENOUGH = 400  # Characters that two payloads have in common only if they are the same.


def _drop_second(found: dict[str, Any], pointer: str) -> None:
    if pointer.startswith("/content/"):
        index = int(pointer.split("/")[2])
        if found["content"][index] in found["content"][:index]:
            del found["content"][index]


@rule(
    "AB601",
    About(
        scope=Scope(dialects=MCP + ENVELOPE),
        severity="warning",
        hint="send it once: bytes as a block, and their name or size in the data",
        bad=shown(
            {"type": "image", "data": PNG, "mimeType": "image/png"},
            {"type": "text", "text": f'{{"screenshot":"{PNG}"}}'},
        ),
        good=MCP_IMAGE,
        fix=_drop_second,
    ),
)
def payload_sent_twice(it: Subject) -> Faults:
    """The model pays for it twice, and a picture as text costs more than the picture."""
    if len(it.blocks) < 2 and not it.media:
        return ()
    return [*_bytes_again(it), *_text_again(it)]


def _bytes_again(it: Subject) -> list[Fault]:
    faults, seen = [], set()
    for index, data in it.media:
        if len(data) < _SMALL:
            continue
        if data in seen:
            faults.append(Fault(f"/content/{index}", "the same bytes stand in an earlier block"))
        elif data[:_ENOUGH] in it.raw:
            message = "the bytes of this block stand in the text or the data too"
            faults.append(Fault(f"/content/{index}", message))
        seen.add(data)
    return faults


def _text_again(it: Subject) -> list[Fault]:
    values = {index: value for index, _, value in it.parsed}
    faults, seen = [], []  # type: tuple[list[Fault], list[Any]]
    for index, text in it.texts:
        said = values.get(index, text)
        if len(text) >= _SMALL:
            if said in seen:
                faults.append(Fault(f"/content/{index}", "an earlier block says the same"))
            seen.append(said)
    return faults


@rule(
    "AB602",
    About(
        scope=Scope(dialects=MCP + ENVELOPE),
        severity="warning",
        hint="send a page at a time, or a summary and a link to the rest",
        bad=lambda: said("a line of a very long file\n" * 4_000),
        good=said("a line of a very long file\n" * 40 + "… 3,960 more lines; ask for offset=40"),
    ),
)
def too_many_tokens(it: Subject) -> Faults:
    """Hosts cut a reply off at a limit, and what was cut off is not even JSON any more."""
    if len(it.raw) <= TOKENS * BYTES_PER_TOKEN:
        return ()
    size = sum(len(text) for _, text in it.texts)
    if size > TOKENS * BYTES_PER_TOKEN:
        return [_too_many("/content", size)]
    if it.dialect == "mcp" and len(it.raw) - size > TOKENS * BYTES_PER_TOKEN:
        return [_too_many("/structuredContent" if it.data else "", len(it.raw) - size)]
    return ()


def _too_many(pointer: str, size: int) -> Fault:
    tokens = size // BYTES_PER_TOKEN
    return Fault(pointer, f"about {tokens:,} tokens, where hosts take {TOKENS:,}")


@rule(
    "AB603",
    About(
        scope=Scope(dialects=MCP),
        severity="warning",
        hint="send a resource_link, which a client reads when it needs it",
        bad=lambda: shown(
            {"type": "image", "data": "AAAA" * (MESSAGE // 4), "mimeType": "image/bmp"}
        ),
        good=MCP_DATA,
    ),
)
def message_too_large(it: Subject) -> Faults:
    """The TypeScript client gives up on a message of more than 10 MiB, and on the connection."""
    size = len(it.raw)
    for _, data in it.media:
        size += len(data)
    return [Fault("", f"{size / 1024 / 1024:.1f} MiB in one message")] if size > MESSAGE else ()
