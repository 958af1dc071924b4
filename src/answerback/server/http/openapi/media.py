"""The media types of the responses: those of the dialects, and those of images and audio."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, get_origin

import msgspec

from ....contract import Contract, Dialect
from ....core.content import Audio, Image, block_class
from ....dialects.accept import MEDIA_TYPES
from ....dialects.status_and_headers import JSON, PROBLEM
from ....tools.tool import Tool

Schema = dict[str, Any]


class MediaTypes(msgspec.Struct, frozen=True):
    """The media types of the document, each with its dialect."""

    success: dict[str, Dialect]
    error: dict[str, Dialect]


def media_types(contract: Contract, *, dialects: bool) -> MediaTypes:
    """Return the contract's own media type, and with *dialects* those of the others too.

    The dialect `problem` is for errors only, and is never sent as plain JSON.
    """
    success: dict[str, Dialect] = {JSON: contract.http}
    error: dict[str, Dialect] = {PROBLEM: "problem"} if contract.http == "problem" else success
    if dialects:
        others = {name: each for name, each in MEDIA_TYPES.items() if each != contract.http}
        error = error | others
        success = success | {name: each for name, each in others.items() if each != "problem"}
    return MediaTypes(success, error)


def with_media_ranges(tool: Tool, content: Schema) -> Schema:
    """Return *content* with the ranges of the bytes that the tool may send.

    They come first for a tool that is annotated to return one image or audio block: many
    generated clients use the first media type only, and bytes are sent unless the client
    prefers JSON.
    """
    ranges: Schema = {media: {} for media in _media_ranges(tool)}
    annotation = tool.signature.returns
    if tool.returns.blocks_only and _is_one_media_block(annotation):
        return ranges | content
    return content | ranges


def _media_ranges(tool: Tool) -> list[str]:
    kinds = {Image: "image/*", Audio: "audio/*"}
    if not tool.returns.blocks_only:
        return list(kinds.values())
    declared = list(_classes_in(tool.signature.returns))
    return [
        media
        for block, media in kinds.items()
        if any(block_class(each) is block for each in declared)
    ]


def _is_one_media_block(annotation: Any) -> bool:
    if isinstance(annotation, type):
        return block_class(annotation) in (Image, Audio)
    if get_origin(annotation) in (list, tuple, Sequence):
        return False
    return all(map(_is_one_media_block, annotation.__args__))


def _classes_in(annotation: object) -> Iterator[type]:
    """Yield the classes that an annotation names, at any depth."""
    if isinstance(annotation, type):
        yield annotation
    for inner in getattr(annotation, "__args__", ()):
        yield from _classes_in(inner)
