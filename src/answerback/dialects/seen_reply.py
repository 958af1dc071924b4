"""`SeenReply`: what a model sees of a reply in a modelled host, and what it does not see."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from ..core.content import Audio, Block, Image, Text
from ..core.reply import Reply
from ..errors import MalformedReply
from . import as_sent
from .common import META_PREFIX, encode
from .hosts import CHARACTERS_PER_TOKEN, HOSTS, Cut, Half, Host, Json, OutputPart
from .mcp_blocks import read_block

ADDED = META_PREFIX + "added"
"""The key in `_meta` that names the member of the data which repeats the content."""


class Loss(msgspec.Struct, frozen=True):
    """A part of a reply that a host does not show, and its pointer in the MCP result."""

    part: str
    """"text", "data", "image", "audio", "link", "resource", or "flag" for `isError`."""
    pointer: str


class SeenReply(msgspec.Struct, frozen=True, kw_only=True):
    """A reply as the model behind a host is shown it."""

    host: str
    half: Half
    """The half of the result that the host shows."""
    parts: tuple[Block, ...]
    """Texts, images and audio, in the order in which the model gets them."""
    failed: bool
    """Whether the model is told that the call failed."""
    lost: tuple[Loss, ...]
    cut: str
    """What is left of a reply that is too large for the host; empty if it is not."""

    @property
    def text(self) -> str:
        return "\n".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def images(self) -> tuple[Image, ...]:
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
    """Return what *host* shows of an MCP result; raise ValueError for an unknown host.

    *max_chars* is the `anthropic/maxResultSizeChars` of the tool.
    """
    if host not in HOSTS:
        raise ValueError(f"no host is called {host!r}; there are {', '.join(HOSTS)}")
    model = HOSTS[host]
    shown = model.show(result)
    cut = _cut(model, shown.parts, result, max_chars)
    media = [each for each in shown.parts if each.media is not None]
    parts = _blocks(shown.parts) if cut is None else (*map(Text, cut.texts), *_blocks(media))
    lost = list(_losses(result, shown.parts))
    if result.get("isError") is True and not shown.failed:
        lost.append(Loss("flag", "/isError"))
    return SeenReply(
        host=host,
        half=shown.half,
        parts=parts,
        failed=shown.failed,
        lost=tuple(lost),
        cut="" if cut is None else cut.note,
    )


def _received(reply: Reply[Any]) -> Json | None:
    """Return the MCP result that `read` read; None for anything else."""
    raw = reply.raw
    if isinstance(raw, dict) and "jsonrpc" in raw:
        raw = raw.get("result")
    return raw if isinstance(raw, dict) and isinstance(raw.get("content"), list) else None


def _cut(host: Host, parts: list[OutputPart], result: Json, max_chars: int | None) -> Cut | None:
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


def _losses(result: Json, parts: list[OutputPart]) -> Iterator[Loss]:
    shown = {pointer for each in parts for pointer in each.pointers}
    text = "\n".join(each.text for each in parts)
    data = result.get("structuredContent")
    says_data = "/structuredContent" in shown
    copies = [] if data is None else _copies_of(data, result)
    content = result.get("content")
    for index, block in enumerate(content if isinstance(content, list) else ()):
        at = f"/content/{index}"
        if not isinstance(block, dict) or at in shown:
            is_copy = isinstance(block, dict) and _decoded(block.get("text")) in copies
            says_data = says_data or is_copy
        elif _is_for_model(block) and not _is_said(block, text, copies if says_data else []):
            yield Loss(_PARTS.get(str(block.get("type")), "resource"), at)
    if data is not None and not says_data:
        yield Loss("data", "/structuredContent")


_PARTS = {"text": "text", "image": "image", "audio": "audio", "resource_link": "link"}


def _copies_of(data: Any, result: Json) -> list[Any]:
    """Return the values that say the same as the data, also without the member that we added."""
    copies = [data]
    meta = result.get("_meta")
    added = meta.get(ADDED) if isinstance(meta, dict) else None
    if isinstance(data, dict) and isinstance(added, str):
        copies.append({name: each for name, each in data.items() if name != added})
    inner = [
        each["result"] for each in copies if isinstance(each, dict) and each.keys() == {"result"}
    ]
    return copies + inner


def _decoded(text: Any) -> Any:
    if not isinstance(text, str) or not text.lstrip().startswith(("{", "[")):
        return text
    try:
        return msgspec.json.decode(text)
    except (ValueError, RecursionError):
        return text


def _is_for_model(block: Json) -> bool:
    annotations = block.get("annotations")
    audience = annotations.get("audience") if isinstance(annotations, dict) else None
    return not isinstance(audience, list) or "assistant" in audience


def _is_said(block: Json, shown: str, copies: list[Any]) -> bool:
    """Return whether the text that is shown says what a block says, or names the block."""
    match block.get("type"):
        case "text":
            text = block.get("text")
            return _decoded(text) in copies or _contains(shown, text)
        case "image" | "audio":
            alt = _extras(block).get("alt")
            named = block.get("mimeType")
            return _contains(shown, named) and (alt is None or _contains(shown, alt))
        case "resource_link":
            return _contains(shown, block.get("uri"))
        case "resource":
            resource = block.get("resource")
            found = resource if isinstance(resource, dict) else {}
            return _contains(shown, found.get("text") or found.get("uri"))
    return False


def _extras(block: Json) -> Json:
    meta = block.get("_meta")
    found = meta.get(META_PREFIX + str(block.get("type"))) if isinstance(meta, dict) else None
    return found if isinstance(found, dict) else {}


def _contains(shown: str, text: Any) -> bool:
    """Return whether a text is shown, as it is or in a string of JSON."""
    if not isinstance(text, str):
        return False
    return text.strip() in shown or encode(text.strip()).decode()[1:-1] in shown
