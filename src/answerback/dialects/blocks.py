"""The content blocks in MCP's form, each way, and what each version can say of them.

What MCP has no member for stands in the block's `_meta` under our prefix.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ..content import Annotations, Audio, Block, Embedded, Image, Link, Text
from ..versions import Version
from .plain import (
    OURS,
    MalformedReply,
    decoded_bytes,
    encode,
    given,
    our_meta,
    own_meta,
    plain,
    read_annotations,
)

AUDIO_URI = "urn:answerback:audio"
"""What a sound is called where it can only be sent as a resource."""


def project_block(block: Block, version: Version) -> Block:
    """The block as *version* can say it, and as the other end will have it."""
    match block:
        case Image() | Audio() if block.url is not None and not version.links:
            block = _in_words(block.alt or block.caption or _noun(block), block.url, block)
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


def project_annotations(annotations: Annotations | None) -> Annotations | None:
    if annotations is None:
        return None
    return msgspec.convert(msgspec.to_builtins(annotations), Annotations)


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
    annotations = read_annotations(found.get("annotations"))
    meta = own_meta(found.get("_meta")) or None
    try:
        match found:
            case {"type": "text", "text": str(text)}:
                return Text(text, annotations, meta)
            case {"type": "image" | "audio", "data": data, "mimeType": str(mime)}:
                made = Image if found["type"] == "image" else Audio
                more = {} | our_meta(found.get("_meta"), found["type"])
                content = decoded_bytes(data, f"{found['type']} data")
                return made(content, mime, annotations=annotations, meta=meta, **_looks(more))
            case {"type": "resource_link", "uri": str(uri)}:
                return _read_link(found, uri, annotations, meta)
            case {"type": "resource", "resource": {"uri": str(uri), **resource}}:
                return _read_resource(uri, resource, annotations, meta)
    except (TypeError, ValueError) as exc:
        raise MalformedReply(f"a content block is out of order: {exc}") from None
    return _read_unknown(found, annotations, meta)


def _in_words(name: str, uri: str, block: Block, more: str | None = None) -> Text:
    return Text(f"{name}: {uri}" + (f"\n{more}" if more else ""), block.annotations)


def _noun(block: Block) -> str:
    return type(block).__name__


def _project_members(block: Block, version: Version) -> Block:
    annotations = project_annotations(block.annotations)
    if annotations is not None and not version.annotation_dates:
        annotations = msgspec.structs.replace(annotations, last_modified=None)
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
    name = block.alt or block.caption or block.url.rpartition("/")[2] or block.url
    link = {"type": "resource_link", "uri": block.url, "name": name}
    return link | given(mimeType=block.mime or None)


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


def _looks(found: dict[str, Any]) -> dict[str, Any]:
    return {name: found[name] for name in ("alt", "width", "height", "caption") if name in found}


def _read_link(
    found: dict[str, Any], uri: str, annotations: Annotations | None, meta: dict[str, Any] | None
) -> Block:
    ours = found.get("_meta")
    for noun, made in (("image", Image), ("audio", Audio)):
        if isinstance(ours, dict) and OURS + noun in ours:
            looks = _looks(our_meta(ours, noun))
            mime = found.get("mimeType", "")
            return made(mime=mime, url=uri, annotations=annotations, meta=meta, **looks)
    members = {
        "name": found.get("name", uri),
        "title": found.get("title"),
        "description": found.get("description"),
        "mime": found.get("mimeType"),
        **our_meta(ours, "link"),
    }
    link: Link = msgspec.convert({"uri": uri, **members}, Link)
    return msgspec.structs.replace(link, annotations=annotations, meta=meta)


def _read_resource(
    uri: str,
    resource: dict[str, Any],
    annotations: Annotations | None,
    meta: dict[str, Any] | None,
) -> Block:
    text = resource.get("text")
    blob = None if text is not None else decoded_bytes(resource.get("blob"), "a resource's blob")
    mime, title = resource.get("mimeType"), resource.get("title")
    return Embedded(uri, text, blob, mime, title, annotations, meta)


def _read_unknown(
    found: dict[str, Any], annotations: Annotations | None, meta: dict[str, Any] | None
) -> Text:
    if found.get("type") in ("text", "image", "audio", "resource", "resource_link"):
        raise MalformedReply(f"a {found['type']} block lacks what makes it one: {_keys(found)}")
    text = found.get("text")
    return Text(text if isinstance(text, str) else encode(found).decode(), annotations, meta)


def _keys(found: dict[str, Any]) -> str:
    return f"it has {', '.join(map(repr, found))}"
