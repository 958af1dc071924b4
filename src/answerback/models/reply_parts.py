"""The parts of a reply that a model gets: text, images and documents, and whether it failed.

`dialects.model_text` decides what a model may see; this module knows what a provider takes.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ..core.content import Block, Embedded, Image
from ..core.reply import Reply
from ..dialects.common import encoded_data
from ..dialects.model_text import ModelView, Part, describe, view_for_model
from ..reading import read
from .provider_rules import ProviderRules


class ReplyParts(msgspec.Struct, frozen=True):
    """A reply's text, the images and documents that the provider takes, and its failure."""

    text: str
    """All texts; a result without one is described in it."""
    sequence: tuple[Part, ...] = ()
    """The texts, images and documents in their order."""
    failed: bool = False
    data: Any = msgspec.UNSET
    """The structured data, if the text says nothing else."""

    @property
    def images(self) -> list[Image]:
        return [part for part in self.sequence if isinstance(part, Image)]

    @property
    def documents(self) -> list[Embedded]:
        return [part for part in self.sequence if isinstance(part, Embedded)]


class TextOptions(msgspec.Struct, frozen=True):
    """A text's maximum number of characters, and whether it is put between markers."""

    budget: int | None = None
    untrusted: bool = False


def parts_for(result: Any, rules: ProviderRules, options: TextOptions) -> ReplyParts:
    """Return the parts of a reply that the provider takes; a text describes the others.

    *result* is whatever `read` reads.
    """
    reply = read(result)
    has_media = reply.error is None or rules.media_in_errors

    def takes(block: Block) -> bool:
        return has_media and _is_taken(block, rules)

    view = view_for_model(reply, options.budget, untrusted=options.untrusted, takes=takes)
    media = [describe(part) for part in view.parts if not isinstance(part, str)]
    text = view.text if view.texts else "\n".join(media)
    data = _only_data(reply, view, options)
    return ReplyParts(text, tuple(view.sequence), failed=not reply.ok, data=data)


def _only_data(reply: Reply[Any], view: ModelView, options: TextOptions) -> Any:
    """Return the data if the only text is the whole data, unchanged or as JSON, else UNSET."""
    if not reply.ok or not reply.has_data or options.untrusted or len(view.texts) != 1:
        return msgspec.UNSET
    [text] = view.texts
    try:
        data = msgspec.json.decode(encoded_data(reply))
        is_whole = text == data or msgspec.json.decode(text) == data
    except (TypeError, ValueError, RecursionError):
        return msgspec.UNSET
    return data if is_whole else msgspec.UNSET


def _is_taken(block: Block, rules: ProviderRules) -> bool:
    if isinstance(block, Embedded):
        return block.blob is not None and block.mime in rules.documents
    if not isinstance(block, Image):
        return False
    # Gemini reads no images from the web.
    return rules.provider != "gemini" if block.url is not None else block.mime in rules.images
