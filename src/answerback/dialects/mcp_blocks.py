"""Writes and reads MCP's content blocks, and limits them to a protocol version.

A member that MCP does not define is written to the block's `_meta`, under our prefix.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import msgspec

from ..core.content import (
    Annotations,
    Audio,
    Block,
    Embedded,
    Image,
    Link,
    Meta,
    Text,
    changed_block,
)
from ..core.versions import Version
from ..errors import MalformedReply
from .common import (
    META_PREFIX,
    answerback_meta,
    as_received,
    author_meta,
    build_block,
    encode,
    without_none,
)

MEDIA: dict[str, type[Image] | type[Audio]] = {"image": Image, "audio": Audio}
_MEDIA_MEMBERS = ("alt", "width", "height", "caption")
"""The members of an image or audio block that MCP does not define."""
AUDIO_URI = "urn:answerback:audio"
"""An audio block's URI in versions that can only send audio as a resource."""
SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
"""The start of a URI; a single letter is a Windows drive."""
_URN = "urn:answerback:"
"""The prefix of a resource's URI if the author's identifier is not a URI."""


def project_block(block: Block, version: Version) -> Block:
    """Return the block as *version* can express it and as a client receives it."""
    match block:
        case Image() | Audio() if block.url is not None and not version.links:
            block = _link_as_text(_media_name(block, block.url), block.url, block)
        case Audio() if not version.audio:
            block = Embedded(
                AUDIO_URI, blob=block.data, mime=block.mime, annotations=block.annotations
            )
        case Link() if not version.links:
            block = _link_as_text(block.title or block.name, block.uri, block, block.description)
        case _:
            pass
    is_plain = block.annotations is None and block.meta is None
    if is_plain and (type(block) is Text or (type(block) is Link and block.metadata is None)):
        return block
    annotations = project_annotations(block.annotations, version)
    changes: dict[str, Any] = {"annotations": annotations, "meta": None}
    if isinstance(block, Embedded):
        content_meta = block.content_meta if version.block_meta else None
        changes["content_meta"] = project_meta(content_meta)
    if version.block_meta:
        changes["meta"] = project_meta(block.meta)
        if isinstance(block, Link):
            changes["metadata"] = as_received(block.metadata)
    elif isinstance(block, Image | Audio):
        changes |= dict.fromkeys(_MEDIA_MEMBERS)
    return changed_block(block, **changes)


def project_meta(meta: Meta) -> dict[str, Any] | None:
    """Return a block's author-supplied `_meta` as a client receives it, or None if it is empty."""
    return as_received(author_meta(meta)) or None


def project_annotations(annotations: Annotations | None, version: Version) -> Annotations | None:
    if annotations is None:
        return None
    annotations = msgspec.convert(msgspec.to_builtins(annotations), Annotations)
    if not version.annotation_dates:
        annotations = msgspec.structs.replace(annotations, last_modified=None)
    return annotations


def write_blocks(blocks: Iterable[Block], version: Version) -> list[dict[str, Any]]:
    """Return the blocks as MCP JSON, each as *version* can express it."""
    return [write_block(project_block(block, version)) for block in blocks]


def write_block(block: Block) -> dict[str, Any]:
    """Return the block as MCP JSON; it must already have been projected to the version."""
    match block:
        case Text():
            members: dict[str, Any] = {"type": "text", "text": block.text}
            extras: dict[str, Any] | None = None
        case Image() | Audio():
            media_type = _type_name(block).lower()
            if block.url is None:
                members = {"type": media_type, "data": block.data, "mimeType": block.mime}
            else:
                # MCP has no image or audio blocks with a URL, so this one is sent as a link.
                uri, name = _to_uri(block.url, media_type), _media_name(block, block.url)
                members = {"type": "resource_link", "uri": uri, "name": name}
                members |= without_none(mimeType=block.mime or None)
            extras = without_none(**{name: getattr(block, name) for name in _MEDIA_MEMBERS})
            # A block with a URL always gets them, even if they are empty: without them it would
            # be read back as a link.
            if block.url is None and not extras:
                extras = None
        case Link():
            uri = _to_uri(block.uri, block.kind)
            members = {"type": "resource_link", "uri": uri, "name": block.name}
            members |= without_none(
                title=block.title, description=block.description, mimeType=block.mime
            )
            kind = None if block.kind == "url" else block.kind
            extras = without_none(kind=kind, metadata=block.metadata) or None
        case Embedded():
            resource = {"uri": _to_uri(block.uri, "resource")}
            resource |= without_none(title=block.title, mimeType=block.mime)
            content_meta = author_meta(block.content_meta) or None
            resource |= without_none(text=block.text, blob=block.blob, _meta=content_meta)
            members = {"type": "resource", "resource": resource}
            extras = None
    if block.annotations is not None:
        members["annotations"] = block.annotations
    meta = {} if block.meta is None else author_meta(block.meta)
    if extras is not None:
        meta[META_PREFIX + _type_name(block).lower()] = extras
    return members | {"_meta": meta} if meta else members


def read_block(found: Any) -> Block:
    """Read a block; an unknown type becomes a text block with the block's text or JSON."""
    if not isinstance(found, dict):
        raise MalformedReply(f"a content block must be an object, not {type(found).__name__}")
    match found.get("type"):
        case "text":
            return build_block(Text, {"text": found.get("text")}, found)
        case "image" | "audio" as media_type:
            members = {"data": found.get("data"), "mime": found.get("mimeType")}
            members |= _media_members(found, media_type)
            return build_block(MEDIA[media_type], members, found)
        case "resource_link":
            return _read_link(found)
        case "resource":
            resource = found.get("resource")
            if not isinstance(resource, dict):
                raise MalformedReply("a resource block must have a resource")
            members = {name: resource.get(name) for name in ("text", "blob", "title")}
            members |= {"uri": _from_uri(resource.get("uri")), "mime": resource.get("mimeType")}
            block = build_block(Embedded, members, found)
            return changed_block(block, content_meta=author_meta(resource.get("_meta")) or None)
    text = found.get("text")
    if not isinstance(text, str):
        text = encode(_without_meta(found)).decode()
    return build_block(Text, {"text": text}, found)


def _without_meta(value: Any) -> Any:
    """Return a block's JSON without its metadata, which is not for models."""
    if isinstance(value, dict):
        return {name: _without_meta(each) for name, each in value.items() if name != "_meta"}
    return list(map(_without_meta, value)) if isinstance(value, list) else value


def _link_as_text(name: str, uri: str, block: Block, description: str | None = None) -> Text:
    text = f"{name}: {uri}" + (f"\n{description}" if description else "")
    return Text(text, annotations=block.annotations)


def _type_name(block: Block) -> str:
    return type(block).__name__


def _to_uri(identifier: str, kind: str) -> str:
    """Return *identifier* if it is a URI, or else a URN, because MCP allows only URIs."""
    if SCHEME.match(identifier):
        return identifier
    from urllib.parse import quote

    return f"{_URN}{quote(kind, safe='')}:{quote(identifier)}"


def _from_uri(uri: Any) -> Any:
    """Return the identifier that `_to_uri` turned into a URN."""
    if not isinstance(uri, str) or not uri.startswith(_URN):
        return uri
    from urllib.parse import unquote

    _, is_ours, identifier = uri.removeprefix(_URN).partition(":")
    return unquote(identifier) if is_ours else uri


def _media_name(block: Image | Audio, url: str) -> str:
    # A data: URL ends with the bytes, which must not be sent a second time as the name.
    filename = "" if url.startswith("data:") else url.rpartition("/")[2]
    return block.alt or block.caption or filename or _type_name(block)


def _media_members(found: dict[str, Any], media_type: str) -> dict[str, Any]:
    extras = answerback_meta(found.get("_meta"), media_type)
    return {name: extras.get(name) for name in _MEDIA_MEMBERS}


def _read_link(found: dict[str, Any]) -> Block:
    uri = _from_uri(found.get("uri"))
    mime = found.get("mimeType")
    meta = found.get("_meta")
    for media_type, kind in MEDIA.items():
        if isinstance(meta, dict) and META_PREFIX + media_type in meta:
            media = {"url": uri, "mime": mime} | _media_members(found, media_type)
            return build_block(kind, media, found)
    extras = answerback_meta(meta, "link")
    members = {"uri": uri, "name": found.get("name", uri), "mime": mime}
    members |= {name: found.get(name) for name in ("title", "description")}
    members |= {name: extras.get(name) for name in ("kind", "metadata")}
    return build_block(Link, members, found)
