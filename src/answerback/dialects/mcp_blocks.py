"""The content blocks in MCP's form, each way, and what each version can say of them.

What MCP has no member for stands in the block's `_meta` under our prefix.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ..content import Annotations, Audio, Block, Embedded, Image, Link, Text
from ..versions import Version
from .common import OURS, MalformedReply, encode, given, made, our_meta, own_meta, plain

MEDIA: dict[str, type[Image] | type[Audio]] = {"image": Image, "audio": Audio}
AUDIO_URI = "urn:answerback:audio"
"""What a sound is called where it can only be sent as a resource."""


def project_block(block: Block, version: Version) -> Block:
    """The block as *version* can say it, and as the other end will have it."""
    match block:
        case Image() | Audio() if block.url is not None and not version.links:
            block = _in_words(_media_name(block, block.url), block.url, block)
        case Audio() if not version.audio:
            block = Embedded(
                AUDIO_URI, blob=block.data, mime=block.mime, annotations=block.annotations
            )
        case Link() if not version.links:
            block = _in_words(block.title or block.name, block.uri, block, block.description)
        case _:
            pass
    return _project_members(block, version)


def project_meta(meta: dict[str, Any] | None) -> dict[str, Any] | None:
    """The author's `_meta` of a block; an empty one says nothing."""
    return plain(own_meta(meta)) or None


def project_annotations(annotations: Annotations | None, version: Version) -> Annotations | None:
    if annotations is None:
        return None
    annotations = msgspec.convert(msgspec.to_builtins(annotations), Annotations)
    if not version.annotation_dates:
        annotations = msgspec.structs.replace(annotations, last_modified=None)
    return annotations


def write_block(block: Block) -> dict[str, Any]:
    """The block in MCP's form; it must be one the version can say."""
    match block:
        case Text():
            members: dict[str, Any] = {"type": "text", "text": block.text}
            extras: dict[str, Any] | None = None
        case Image() | Audio():
            members = _write_media(block)
            extras = _media_extras(block)
        case Link():
            members = _write_link(block)
            extras = _link_extras(block)
        case Embedded():
            members = {"type": "resource", "resource": _write_resource(block)}
            extras = None
    meta = own_meta(block.meta)
    if extras is not None:
        meta[OURS + _noun(block).lower()] = extras
    return members | given(annotations=block.annotations, _meta=meta or None)


def read_block(found: Any) -> Block:
    """The block that *found* is; of a kind we do not know, its JSON as text."""
    if not isinstance(found, dict):
        raise MalformedReply(f"a content block must be an object, not {type(found).__name__}")
    match found.get("type"):
        case "text":
            return made(Text, {"text": found.get("text")}, found)
        case "image" | "audio" as noun:
            members = {"data": found.get("data"), "mime": found.get("mimeType")}
            return made(MEDIA[noun], members | _looks(found, noun), found)
        case "resource_link":
            return _read_link(found)
        case "resource":
            return _read_resource(found)
    text = found.get("text")
    known = isinstance(text, str)
    return made(Text, {"text": text if known else encode(found).decode()}, found)


def _in_words(name: str, uri: str, block: Block, more: str | None = None) -> Text:
    return Text(f"{name}: {uri}" + (f"\n{more}" if more else ""), block.annotations)


def _noun(block: Block) -> str:
    return type(block).__name__


def _project_members(block: Block, version: Version) -> Block:
    annotations = project_annotations(block.annotations, version)
    changes: dict[str, Any] = {"annotations": annotations, "meta": None}
    if version.block_meta:
        changes["meta"] = project_meta(block.meta)
        if isinstance(block, Link):
            changes["metadata"] = plain(block.metadata)
    elif isinstance(block, Image | Audio):
        changes |= {"alt": None, "width": None, "height": None, "caption": None}
    return msgspec.structs.replace(block, **changes)


def _write_media(block: Image | Audio) -> dict[str, Any]:
    if block.url is None:
        return {"type": _noun(block).lower(), "data": block.data, "mimeType": block.mime}
    # MCP has no image or audio by address; a link is the nearest it can say.
    members = {"type": "resource_link", "uri": block.url, "name": _media_name(block, block.url)}
    return members | given(mimeType=block.mime or None)


def _media_name(block: Image | Audio, url: str) -> str:
    # The end of a data: URL is its bytes, which are not sent twice.
    end = "" if url.startswith("data:") else url.rpartition("/")[2]
    return block.alt or block.caption or end or _noun(block)


def _media_extras(block: Image | Audio) -> dict[str, Any] | None:
    """How it looks. Beside an address they are never left out: they tell it from a link."""
    looks = given(alt=block.alt, width=block.width, height=block.height, caption=block.caption)
    return None if block.url is None and not looks else looks


def _write_link(block: Link) -> dict[str, Any]:
    members = {"type": "resource_link", "uri": block.uri, "name": block.name}
    more = given(title=block.title, description=block.description, mimeType=block.mime)
    return members | more


def _link_extras(block: Link) -> dict[str, Any] | None:
    kind = None if block.kind == "url" else block.kind
    return given(kind=kind, metadata=block.metadata) or None


def _write_resource(block: Embedded) -> dict[str, Any]:
    members = {"uri": block.uri, **given(title=block.title, mimeType=block.mime)}
    return members | given(text=block.text, blob=block.blob)


def _looks(found: dict[str, Any], noun: str) -> dict[str, Any]:
    ours = our_meta(found.get("_meta"), noun)
    return {name: ours.get(name) for name in ("alt", "width", "height", "caption")}


def _read_link(found: dict[str, Any]) -> Block:
    uri = found.get("uri")
    mime = found.get("mimeType")
    meta = found.get("_meta")
    for noun, kind in MEDIA.items():
        if isinstance(meta, dict) and OURS + noun in meta:
            return made(kind, {"url": uri, "mime": mime} | _looks(found, noun), found)
    ours = our_meta(meta, "link")
    members = {name: found.get(name) for name in ("title", "description")}
    members |= {name: ours.get(name) for name in ("kind", "metadata")}
    return made(Link, {"uri": uri, "name": found.get("name", uri), "mime": mime} | members, found)


def _read_resource(found: dict[str, Any]) -> Block:
    resource = found.get("resource")
    if not isinstance(resource, dict):
        raise MalformedReply("a resource block must have a resource")
    members = {name: resource.get(name) for name in ("uri", "text", "blob", "title")}
    return made(Embedded, members | {"mime": resource.get("mimeType")}, found)
