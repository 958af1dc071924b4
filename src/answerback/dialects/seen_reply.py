"""`SeenReply`: the parts of a reply that a model sees in a modelled host, and those it misses."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from ..core.content import Audio, Block, Image, Text
from ..core.reply import Reply
from ..errors import MalformedReply
from ..verdicts.texts import is_failure_text
from . import as_sent
from .common import META_PREFIX, is_added, without_added
from .hosts import (
    CHARACTERS_PER_TOKEN,
    FRAMEWORKS,
    HOSTS,
    Half,
    Json,
    OutputPart,
    content_blocks,
    decoded,
    is_failed,
    json_text,
    resource_in,
)
from .mcp_blocks import read_block


class Loss(msgspec.Struct, frozen=True):
    """A part of a reply that a host does not show, and a pointer to it in the MCP result."""

    part: str
    """"text", "data", "image", "audio", "link", "resource", or "flag" for `isError`."""
    pointer: str


class SeenReply(msgspec.Struct, frozen=True, kw_only=True):
    """A reply as a host shows it to its model."""

    host: str
    """The modelled host."""
    half: Half
    """The half of the result that the host shows."""
    parts: tuple[Block, ...]
    """Text, images and audio, in the order in which the model receives them."""
    failed: bool
    """Whether the model is told that the call failed."""
    lost: tuple[Loss, ...]
    """The parts that the host does not show."""
    cut: str
    """What is left of a reply that is too large for the host; empty if it is not too large."""

    @property
    def text(self) -> str:
        """The text parts, joined with line breaks."""
        return "\n".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def images(self) -> tuple[Image, ...]:
        """The images."""
        return tuple(part for part in self.parts if isinstance(part, Image))

    @property
    def tokens(self) -> int:
        """Roughly how many tokens the text has; images are not counted."""
        return -(-len(self.text) // CHARACTERS_PER_TOKEN)

    @property
    def complete(self) -> bool:
        """Whether the model sees everything."""
        return not self.lost and not self.cut


def reply_seen_by(reply: Reply[Any], host: str, max_chars: int | None = None) -> SeenReply:
    """Return how *host* shows a reply; a reply made by `read` is shown as it was received."""
    raw = reply.raw
    if isinstance(raw, dict) and "jsonrpc" in raw:
        raw = raw.get("result")
    is_result = isinstance(raw, dict) and isinstance(raw.get("content"), list)
    return seen_by(raw if is_result else as_sent(reply, "mcp"), host, max_chars)


def seen_by(result: Json, host: str, max_chars: int | None = None) -> SeenReply:
    """Return how a host or framework shows an MCP result; raise ValueError if *host* is unknown.

    *max_chars* is the tool's `anthropic/maxResultSizeChars`.
    """
    model = HOSTS.get(host) or FRAMEWORKS.get(host)
    if model is None:
        known = ", ".join([*HOSTS, *FRAMEWORKS])
        raise ValueError(f"no host or framework is called {host!r}; choose from {known}")
    shown = model.show(result)
    parts, note = [_block(each) for each in shown.parts], ""
    if model.cut is not None:
        texts = [each.text for each in shown.parts if each.media is None]
        if (cut := model.cut(texts, result, max_chars)) is not None:
            media = [_block(each) for each in shown.parts if each.media is not None]
            parts, note = [*map(Text, cut.texts), *media], cut.note
    lost = list(_losses(result, shown.parts))
    if is_failed(result) and not shown.failed:
        pointers = _pointers(shown.parts)
        seen = (
            str(block.get("text", "")) for at, block in content_blocks(result) if at in pointers
        )
        # Text such as `Error: no city` says that the call failed.
        if not any(map(is_failure_text, seen)):
            lost.append(Loss("flag", "/isError"))
    return SeenReply(
        host=host,
        half=shown.half,
        parts=tuple(parts),
        failed=shown.failed,
        lost=tuple(lost),
        cut=note,
    )


def lost_blocks_and_data(result: Json, host: str) -> list[Loss]:
    """Return the parts of a result that *host* hides, whatever its size, except for the flag."""
    return list(_losses(result, HOSTS[host].show(result).parts))


def _block(part: OutputPart) -> Block:
    if part.media is None:
        return Text(part.text)
    kind = Image if str(part.media.get("mimeType", "")).startswith("image/") else Audio
    if part.media.get("type") == "resource_link":
        return kind(url=str(part.media.get("uri")))
    try:
        return read_block(part.media)
    except MalformedReply as exc:
        return Text(f"[{exc}]")


def _pointers(parts: list[OutputPart]) -> set[str]:
    return {pointer for each in parts for pointer in each.pointers}


def _losses(result: Json, parts: list[OutputPart]) -> Iterator[Loss]:
    shown = _pointers(parts)
    data = result.get("structuredContent")
    copies = [] if data is None else _copies_of(data, result)
    values = [decoded(block.get("text")) for at, block in content_blocks(result) if at in shown]
    text = "\n".join(each.text for each in parts)
    # The data may repeat the bytes of a shown image.
    media = [str(each.media.get("data")) for each in parts if each.media is not None]
    says_data = (
        "/structuredContent" in shown
        or any(value in copies for value in values)
        # A list may be shown as one text block per item.
        or values in copies
        or (data is not None and _says_values("\n".join([text, *media]), data))
    )
    for at, block in content_blocks(result):
        # An added block only repeats others.
        if at in shown or not _is_for_model(block) or is_added(block):
            continue
        if not _is_repeated(block, text, copies if says_data else []):
            yield Loss(_PARTS.get(str(block.get("type")), "resource"), at)
    if data is not None and not says_data:
        yield Loss("data", "/structuredContent")


_WORD = re.compile(r"[A-Z]?[^\W_A-Z]+|[A-Z]+")
_MAX_WORDS_IN = 100_000
"""Longer text is not compared word by word, because that would be slow."""
_MAX_VALUES = 10_000
"""Larger data, or data that contains itself, is not searched for in text."""
_PARTS = {"text": "text", "image": "image", "audio": "audio", "resource_link": "link"}


def _copies_of(data: Any, result: Json) -> list[Any]:
    """Return values that repeat the data, including one without the member that we added."""
    copies = [data]
    if (without := without_added(data, result.get("_meta"))) is not data:
        copies.append(without)
    # Many servers send a single member's value as the text.
    inner = [
        next(iter(each.values())) for each in copies if isinstance(each, dict) and len(each) == 1
    ]
    return copies + inner


def _says_values(shown: str, data: Any) -> bool:
    """Return whether text contains all the data's strings and numbers, as prose about it would."""
    waiting = [data]
    for _ in range(_MAX_VALUES):
        if not waiting:
            return True
        match waiting.pop():
            case dict() as members:
                waiting += members.values()
            case list() as items:
                waiting += items
            case bool() | None:
                pass
            case str() | int() | float() as value:
                if str(value).strip() not in shown:
                    return False
    return False


def _is_for_model(block: Json) -> bool:
    annotations = block.get("annotations")
    audience = annotations.get("audience") if isinstance(annotations, dict) else None
    return not isinstance(audience, list) or "assistant" in audience


def _is_repeated(block: Json, shown: str, copies: list[Any]) -> bool:
    """Return whether the shown text repeats or names a block."""
    match block.get("type"):
        case "text":
            text = block.get("text")
            return decoded(text) in copies or _contains(shown, text) or _has_words(shown, text)
        case "image" | "audio" as kind:
            meta = block.get("_meta")
            extras = meta.get(f"{META_PREFIX}{kind}") if isinstance(meta, dict) else None
            alt = extras.get("alt") if isinstance(extras, dict) else None
            is_named = _contains(shown, block.get("mimeType"))
            is_named = is_named and (alt is None or _contains(shown, alt))
            return is_named or _contains(shown, block.get("data"))
        case "resource_link":
            return _contains(shown, block.get("uri"))
        case "resource":
            resource = resource_in(block)
            return _contains(shown, resource.get("text") or resource.get("uri"))
    return False


def _has_words(shown: str, text: Any) -> bool:
    """Return whether all words in the text are shown, perhaps because it was made from the data."""
    if not isinstance(text, str) or len(text) + len(shown) > _MAX_WORDS_IN:
        return False
    return _words(text) <= _words(shown)


def _words(text: str) -> set[str]:
    """Return the words in text or JSON; a name such as `createdAt` counts as two."""
    return {word.casefold() for word in _WORD.findall(text)}


def _contains(shown: str, text: Any) -> bool:
    """Return whether the text is shown, either unchanged or inside a JSON string."""
    if not isinstance(text, str):
        return False
    return text.strip() in shown or json_text(text.strip())[1:-1] in shown
