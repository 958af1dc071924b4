"""AB6xx: the size of a reply, in tokens and in bytes."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from ...dialects.hosts import json_text
from ..finding import (
    ENVELOPE,
    MCP,
    MCP_DATA,
    MCP_IMAGE,
    PNG,
    Example,
    Fault,
    Faults,
    Scope,
    blocks_result,
    rule,
    text_result,
)
from ..reply_view import ReplyView

TOKENS = 25_000
"""The number of tokens at which Claude Code cuts off a reply."""
BYTES_PER_TOKEN = 4
MESSAGE = 10 * 1024 * 1024
"""The size in bytes of the largest message that the TypeScript client reads over stdio."""
_SMALL = 40  # Shorter text may well appear twice in a reply.
_encode = msgspec.json.Encoder(order="deterministic").encode
_COMPARED = 400  # Two payloads that share their first 400 characters are treated as the same.


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
    """The payload uses up tokens twice, and an image as text uses more than the image itself."""
    if len(reply.blocks) < 2 and not reply.media:
        return ()
    faults: list[Fault] = []
    seen: set[str] = set()
    for index, data in reply.media:
        if len(data) < _SMALL:
            continue
        if data in seen:
            faults.append(Fault(f"/content/{index}", "an earlier block has the same bytes"))
        elif data[:_COMPARED] in reply.json_text:
            message = "the text or the data also contains this block's bytes"
            faults.append(Fault(f"/content/{index}", message))
        seen.add(data)
    values = {index: value for index, _, value in reply.json_texts}
    texts: set[str | bytes] = set()
    for index, text in reply.texts:
        if len(text) >= _SMALL:
            # Decoded objects are not hashable.
            value = _encode(values[index]) if index in values else text
            if value in texts:
                faults.append(Fault(f"/content/{index}", "an earlier block says the same thing"))
            texts.add(value)
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
    """Hosts cut off a reply at a limit, and what remains is no longer valid JSON."""
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
    return Fault(pointer, f"about {tokens:,} tokens; hosts accept {TOKENS:,}")


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
    """The TypeScript client drops the connection if a message is larger than 10 MiB."""
    size = len(reply.json_text)
    for _, data in reply.media:
        size += len(data)
    return [Fault("", f"{size / 1024 / 1024:.1f} MiB in one message")] if size > MESSAGE else ()


@rule(
    "AB604",
    scope=Scope(dialects=MCP, when="success", plain_replies="none"),
    severity="warning",
    hint="send fewer items and say how to get the rest, or declare a larger size",
    bad=Example(text_result("a line of a long file\n" * 100), max_chars=2_000),
    good=Example(text_result("a line of a long file\n" * 10), max_chars=2_000),
)
def over_budget(reply: ReplyView) -> Faults:
    """A host that relies on a tool's declared size saves larger replies to a file, and shows the
    model only the beginning."""
    budget = reply.context.max_chars
    if budget is None:
        return ()
    faults = []
    size = sum(len(text) for _, text in reply.texts)
    if size > budget:
        faults.append(_over("/content", size, budget))
    if reply.data is not msgspec.UNSET and (size := len(json_text(reply.data))) > budget:
        faults.append(_over("/structuredContent", size, budget))
    return faults


def _over(pointer: str, size: int, budget: int) -> Fault:
    return Fault(pointer, f"{size:,} characters; the tool declares {budget:,}")


@rule(
    "AB605",
    scope=Scope(dialects=MCP, plain_replies="none"),
    severity="warning",
    hint="say in the text and in the data how many there are and how to get the rest",
    bad=text_result(
        '{"names":["Ada"]}',
        structuredContent={"names": ["Ada"]},
        _meta={
            "answerback/cut": [{"path": "/names", "returned": 1, "total": 7253, "unit": "items"}]
        },
    ),
    good=text_result(
        '{"names":["Ada"]}\n1 of 7,253 names; ask for offset=1',
        _meta={
            "answerback/cut": [{"path": "/names", "returned": 1, "total": 7253, "unit": "items"}]
        },
    ),
)
def unsaid_cut(reply: ReplyView) -> Faults:
    """A model does not see `_meta`, and mistakes a part for the whole if nothing else says so."""
    meta = reply.json.get("_meta")
    cuts = meta.get("answerback/cut") if isinstance(meta, dict) else None
    if not isinstance(cuts, list):
        return ()
    texts = [text for _, text in reply.texts]
    if reply.data is not msgspec.UNSET:
        texts.append(json_text(reply.data))
    # A page contains the cursor for the next one.
    is_page = isinstance(reply.data, dict) and isinstance(reply.data.get("next"), str)
    faults = []
    for index, cut in enumerate(cuts):
        if not isinstance(cut, dict):
            continue
        if is_page and reply.data.get("returned") == cut.get("returned"):
            continue
        if not any(_says(text, cut.get("total")) for text in texts):
            count = f"{cut.get('returned')} of {cut.get('total')} {cut.get('unit', 'items')}"
            where = cut.get("path") or "the data"
            message = f"only _meta says that the reply has {count} of {where}"
            faults.append(Fault(f"/_meta/answerback~1cut/{index}", message))
    return faults


def _says(text: str, total: Any) -> bool:
    """Return whether the text contains the number, with or without commas."""
    if not isinstance(total, int):
        return False
    return re.search(rf"(?<![\d.,])({total}|{total:,})(?![\d])", text) is not None
