"""The parts of a reply that a model gets: a text, images and documents, and whether it failed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeGuard

import msgspec

from ..content import Audio, Block, Embedded, Image, Link, Text
from ..dialects.common import encoded_data
from ..dialects.contract_text import DONE
from ..dialects.mcp import read
from ..reply import Error, Reply
from ..types.json_text import ENCODER
from .provider_rules import ProviderRules


class ReplyParts(msgspec.Struct, frozen=True):
    """The text of a reply, its images and documents that the provider takes, and its failure."""

    text: str
    images: tuple[Image, ...] = ()
    documents: tuple[Embedded, ...] = ()
    failed: bool = False
    data: Any = msgspec.UNSET
    """The structured data, if it is all that the text says."""


def as_reply(result: Any) -> Reply[Any]:
    """Return *result* as a Reply: a Reply, a tool result of MCP as a dict, or an SDK's object."""
    if isinstance(result, Reply):
        return result
    if isinstance(result, str):
        return Reply(content=(Text(result),))
    if hasattr(result, "model_dump"):
        result = result.model_dump(by_alias=True, mode="json", exclude_none=True)
    if not isinstance(result, Mapping):
        raise TypeError(f"{result!r:.200} is no reply; give a Reply or the result of a tool")
    return read(dict(result))


def parts_for(result: Any, rules: ProviderRules) -> ReplyParts:
    """Return the parts of a reply that the provider takes; a text tells of the others.

    Blocks that are for the user alone are left out.
    """
    reply = as_reply(result)
    content = [each for each in reply.content if _is_for_model(each)]
    images = tuple(each for each in content if _is_taken_image(each, rules))
    documents = tuple(each for each in content if _is_taken_document(each, rules))
    if reply.error is not None:
        texts = _with_error(reply.error, _texts(content, rules))
        return ReplyParts("\n".join(texts), images, documents, failed=True)
    texts = _texts(content, rules)
    if reply.data is msgspec.UNSET:
        return ReplyParts("\n".join(texts) or DONE, images, documents)
    encoded = encoded_data(reply)
    data = msgspec.json.decode(encoded)
    own = data if isinstance(data, str) else encoded.decode()
    texts = [each for each in texts if not _says(each, data)]
    only_data = data if not texts else msgspec.UNSET
    return ReplyParts("\n".join([*texts, own]), images, documents, data=only_data)


def _with_error(error: Error, texts: list[str]) -> list[str]:
    """Return the texts of a failure with what they lack: its message, its details and its hint."""
    if not any(str(error.message) in text for text in texts):
        texts = [str(error.message), *texts]
    if error.details is not None and not any(_says(text, error.details) for text in texts):
        texts = [*texts, f"Details: {ENCODER.encode(error.details).decode()}"]
    if error.hint and not any(error.hint in text for text in texts):
        texts = [*texts, f"Hint: {error.hint}"]
    return texts


def _texts(content: list[Block], rules: ProviderRules) -> list[str]:
    return [text for each in content if (text := _text(each, rules))]


def _text(block: Block, rules: ProviderRules) -> str:
    match block:
        case Text():
            return block.text
        case Link():
            about = f" ({block.description})" if block.description else ""
            return f"{block.name}: {block.uri}{about}"
        case Embedded(text=str() as text):
            return f"{block.uri}:\n{text}"
        case Embedded():
            taken = _is_taken_document(block, rules)
            return "" if taken else _untaken(block.uri, block.mime, block.blob or b"")
        case Image() if _is_taken_image(block, rules):
            return block.alt or ""
        case Image() | Audio() if block.url is not None:
            return f"{block.alt or block.type}: {block.url}"
    return _untaken(block.type, block.mime, block.data)


def _untaken(name: str, mime: str | None, data: bytes) -> str:
    return f"[{name}: {mime or 'unknown type'}, {len(data)} bytes, not shown]"


def _is_for_model(block: Block) -> bool:
    audience = block.annotations.audience if block.annotations else None
    return not audience or "assistant" in audience


def _is_taken_image(block: Block, rules: ProviderRules) -> TypeGuard[Image]:
    if not isinstance(block, Image):
        return False
    # Gemini reads no images from the web.
    return rules.provider != "gemini" if block.url is not None else block.mime in rules.images


def _is_taken_document(block: Block, rules: ProviderRules) -> TypeGuard[Embedded]:
    return isinstance(block, Embedded) and block.blob is not None and block.mime in rules.documents


def _says(text: str, data: Any) -> bool:
    """Return whether a text is the data, as itself or as JSON, wrapped or not."""
    if text == data:
        return True
    try:
        found = msgspec.json.decode(text)
    except (ValueError, RecursionError):
        return False
    return found in (data, {"result": data})
