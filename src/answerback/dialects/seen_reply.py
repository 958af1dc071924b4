"""`SeenReply`: what a model sees of a reply in a modelled host, and what it does not see."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from ..core.content import Audio, Block, Image, Text
from ..core.reply import Reply
from ..errors import MalformedReply
from . import as_sent
from .common import ADDED, META_PREFIX, is_added
from .failure_text import is_failure_text
from .frameworks import FRAMEWORKS
from .hosts import (
    CHARACTERS_PER_TOKEN,
    HOSTS,
    CutByHost,
    Half,
    Host,
    Json,
    OutputPart,
    decoded,
    json_text,
)
from .mcp_blocks import read_block


class Loss(msgspec.Struct, frozen=True):
    """A part of a reply that a host does not show, and its pointer in the MCP result."""

    part: str
    """"text", "data", "image", "audio", "link", "resource", or "flag" for `isError`."""
    pointer: str


class SeenReply(msgspec.Struct, frozen=True, kw_only=True):
    """A reply as the model behind a host is shown it."""

    host: str
    """The modelled host."""
    half: Half
    """The half of the result that the host shows."""
    parts: tuple[Block, ...]
    """Texts, images and audio, in the order in which the model gets them."""
    failed: bool
    """Whether the model is told that the call failed."""
    lost: tuple[Loss, ...]
    """The parts that the host does not show."""
    cut: str
    """What is left of a reply that is too large for the host; empty if it is not."""

    @property
    def text(self) -> str:
        """The texts, one below the other."""
        return "\n".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def images(self) -> tuple[Image, ...]:
        """The images."""
        return tuple(part for part in self.parts if isinstance(part, Image))

    @property
    def tokens(self) -> int:
        """About how many tokens the text has; images are not counted."""
        return -(-len(self.text) // CHARACTERS_PER_TOKEN)

    @property
    def complete(self) -> bool:
        """Whether the model sees everything."""
        return not self.lost and not self.cut


def reply_seen_by(reply: Reply[Any], host: str, max_chars: int | None = None) -> SeenReply:
    """Return what *host* shows of a reply; one made by `read` is taken as it was received."""
    return seen_by(_received(reply) or as_sent(reply, "mcp"), host, max_chars)


def seen_by(result: Json, host: str, max_chars: int | None = None) -> SeenReply:
    """Return what *host*, or a framework, shows of an MCP result; raise ValueError if unknown.

    *max_chars* is the `anthropic/maxResultSizeChars` of the tool.
    """
    model = HOSTS.get(host) or FRAMEWORKS.get(host)
    if model is None:
        known = ", ".join([*HOSTS, *FRAMEWORKS])
        raise ValueError(f"no host or framework is called {host!r}; there are {known}")
    shown = model.show(result)
    cut = _cut(model, shown.parts, result, max_chars)
    media = [each for each in shown.parts if each.media is not None]
    parts = _blocks(shown.parts) if cut is None else (*map(Text, cut.texts), *_blocks(media))
    lost = list(_losses(result, shown.parts))
    is_failure = result.get("isError") is True
    if is_failure and not shown.failed and not _says_failure(result, shown.parts):
        lost.append(Loss("flag", "/isError"))
    return SeenReply(
        host=host,
        half=shown.half,
        parts=parts,
        failed=shown.failed,
        lost=tuple(lost),
        cut="" if cut is None else cut.note,
    )


def lost_blocks_and_data(result: Json, host: str) -> list[Loss]:
    """Return what *host* does not show of a result of any size, apart from the flag."""
    return list(_losses(result, HOSTS[host].show(result).parts))


def _received(reply: Reply[Any]) -> Json | None:
    """Return the MCP result that `read` read; None for anything else."""
    raw = reply.raw
    if isinstance(raw, dict) and "jsonrpc" in raw:
        raw = raw.get("result")
    return raw if isinstance(raw, dict) and isinstance(raw.get("content"), list) else None


def _cut(
    host: Host, parts: list[OutputPart], result: Json, max_chars: int | None
) -> CutByHost | None:
    if host.cut is None:
        return None
    return host.cut([each.text for each in parts if each.media is None], result, max_chars)


def _blocks(parts: list[OutputPart]) -> tuple[Block, ...]:
    return tuple(_block(each) for each in parts)


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


def _says_failure(result: Json, parts: list[OutputPart]) -> bool:
    """Return whether a text that is shown reads as an error message, such as `Error: no city`."""
    shown = _pointers(parts)
    content = result.get("content")
    return any(
        is_failure_text(str(block.get("text", "")))
        for index, block in enumerate(content if isinstance(content, list) else ())
        if isinstance(block, dict) and f"/content/{index}" in shown
    )


def _pointers(parts: list[OutputPart]) -> set[str]:
    return {pointer for each in parts for pointer in each.pointers}


def _losses(result: Json, parts: list[OutputPart]) -> Iterator[Loss]:
    shown = _pointers(parts)
    blocks = result.get("content")
    blocks = blocks if isinstance(blocks, list) else []
    data = result.get("structuredContent")
    copies = [] if data is None else _copies_of(data, result)
    values = [
        decoded(block.get("text"))
        for index, block in enumerate(blocks)
        if isinstance(block, dict) and f"/content/{index}" in shown
    ]
    text = "\n".join(each.text for each in parts)
    says_data = (
        "/structuredContent" in shown
        or any(value in copies for value in values)
        # A list may be shown as a text for each item.
        or values in copies
        or (data is not None and _says_values(_with_media(text, parts), data))
    )
    for index, block in enumerate(blocks):
        at = f"/content/{index}"
        if not isinstance(block, dict) or at in shown or not _is_for_model(block):
            continue
        # Such a block only repeats others.
        if is_added(block):
            continue
        if not _is_said(block, text, copies if says_data else []):
            yield Loss(_PARTS.get(str(block.get("type")), "resource"), at)
    if data is not None and not says_data:
        yield Loss("data", "/structuredContent")


_WORD = re.compile(r"[A-Z]?[^\W_A-Z]+|[A-Z]+")
_MAX_WORDS_IN = 100_000
"""The words of longer texts, in characters, are not compared: that takes long."""
_MAX_VALUES = 10_000
"""Larger data, or data that contains itself, is not looked for in a text."""
_PARTS = {"text": "text", "image": "image", "audio": "audio", "resource_link": "link"}


def _copies_of(data: Any, result: Json) -> list[Any]:
    """Return the values that say the same as the data, also without the member that we added."""
    copies = [data]
    meta = result.get("_meta")
    added = meta.get(ADDED) if isinstance(meta, dict) else None
    if isinstance(data, dict) and isinstance(added, str):
        copies.append({name: each for name, each in data.items() if name != added})
    # Many servers send the value of a single member as the text.
    inner = [
        next(iter(each.values())) for each in copies if isinstance(each, dict) and len(each) == 1
    ]
    return copies + inner


def _with_media(text: str, parts: list[OutputPart]) -> str:
    """Return the text with the bytes of the images that are shown, which the data may repeat."""
    media = [str(each.media.get("data")) for each in parts if each.media is not None]
    return "\n".join([text, *media])


def _says_values(shown: str, data: Any) -> bool:
    """Return whether a text has all strings and numbers of the data, as text for people does."""
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


def _is_said(block: Json, shown: str, copies: list[Any]) -> bool:
    """Return whether the text that is shown says what a block says, or names the block."""
    match block.get("type"):
        case "text":
            text = block.get("text")
            return decoded(text) in copies or _contains(shown, text) or _has_words(shown, text)
        case "image" | "audio":
            alt = _extras(block).get("alt")
            is_named = _contains(shown, block.get("mimeType"))
            is_named = is_named and (alt is None or _contains(shown, alt))
            return is_named or _contains(shown, block.get("data"))
        case "resource_link":
            return _contains(shown, block.get("uri"))
        case "resource":
            resource = block.get("resource")
            found = resource if isinstance(resource, dict) else {}
            return _contains(shown, found.get("text") or found.get("uri"))
    return False


def _has_words(shown: str, text: Any) -> bool:
    """Return whether all words of a text are shown, as those of a text made from the data are."""
    if not isinstance(text, str) or len(text) + len(shown) > _MAX_WORDS_IN:
        return False
    return _words(text) <= _words(shown)


def _words(text: str) -> set[str]:
    """Return the words of a text or of JSON; a name such as `createdAt` has two."""
    return {word.casefold() for word in _WORD.findall(text)}


def _extras(block: Json) -> Json:
    meta = block.get("_meta")
    found = meta.get(META_PREFIX + str(block.get("type"))) if isinstance(meta, dict) else None
    return found if isinstance(found, dict) else {}


def _contains(shown: str, text: Any) -> bool:
    """Return whether a text is shown, as it is or in a string of JSON."""
    if not isinstance(text, str):
        return False
    return text.strip() in shown or json_text(text.strip())[1:-1] in shown
