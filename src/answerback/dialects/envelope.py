"""The envelope dialect: `success, timestamp, content, data | error`, with its own blocks.

A block's bytes become a `data:` URL. Values that have no member in the convention's envelope are
written as additional members (`title`, `mimeType`, `annotations`, `_meta`, `meta`).
"""

from __future__ import annotations

from typing import Any

import msgspec

from ..contract import STANDARD, Contract
from ..core.content import Audio, Block, Embedded, Image, Link, Text, changed_block
from ..core.reply import Error, Reply
from ..core.shape import BARE, Shape
from ..core.versions import Version
from ..errors import UNKNOWN_TEXT, MalformedReply
from .common import (
    META_PREFIX,
    author_meta,
    build_block,
    decode_object,
    details_from_object,
    encode,
    encoded_data,
    project_error,
    read_error,
    read_timestamp,
    to_utc,
    without_none,
    write_error,
)
from .mcp_blocks import MEDIA
from .reply_text import content_with_text, message_from_text

ALT_TEXT_ADDED = META_PREFIX + "filled-in"
"""In a block's `_meta`: the `altText` was added only because the envelope requires one."""
URL_OF_AUTHOR = META_PREFIX + "address"
"""In a block's `_meta`: the `data:` URL is the author's own and was not made from bytes."""
BASE64 = ";base64,"


def write(
    reply: Reply[Any], shape: Shape, contract: Contract, version: Version | None = None
) -> bytes:
    """Return the envelope as compact JSON; it does not depend on the version."""
    envelope: dict[str, Any] = {
        "success": reply.ok,
        "timestamp": to_utc(reply.timestamp),
        "content": [write_block(block) for block in content_with_text(reply, shape, contract)],
    }
    if reply.error is not None:
        envelope["error"] = write_error(reply.error)
    elif reply.data is not msgspec.UNSET:
        envelope["data"] = msgspec.Raw(shape.wrap(encoded_data(reply)))
    return encode(envelope | without_none(meta=author_meta(reply.meta) or None))


def read(
    envelope: bytes | str | dict[str, Any], shape: Shape = BARE, contract: Contract = STANDARD
) -> Reply[Any]:
    """Read an envelope written by Answerback or another server; raise MalformedReply."""
    found = decode_object(envelope, "an envelope")
    ok = found.get("success", found.get("error") is None)
    if not isinstance(ok, bool):
        raise MalformedReply(f"success must be true or false, not {ok!r}")
    blocks = found.get("content", [])
    if not isinstance(blocks, list):
        raise MalformedReply("content must be a list")
    content = tuple(read_block(block) for block in blocks)
    return Reply(
        content=content,
        data=shape.unwrap(found["data"]) if ok and "data" in found else msgspec.UNSET,
        error=None if ok else _read_error(found, content, contract),
        meta=author_meta(found.get("meta")),
        timestamp=read_timestamp(found.get("timestamp")),
    )


def write_block(block: Block) -> dict[str, Any]:
    """Return the block as the envelope's JSON."""
    # Marks in `_meta` that `read_block` needs to restore the block.
    marks: dict[str, Any] = {}
    match block:
        case Text():
            members: dict[str, Any] = {"type": "text", "text": block.text}
        case Image() | Audio():
            name = type(block).__name__
            members = {"type": name.lower()}
            if block.url is None:
                from binascii import b2a_base64

                payload = b2a_base64(block.data, newline=False).decode()
                members["url"] = f"data:{block.mime}{BASE64}{payload}"
            else:
                members |= {"url": block.url, **without_none(mimeType=block.mime or None)}
                if block.url.startswith("data:"):
                    marks[URL_OF_AUTHOR] = True
            alt = block.alt
            if alt is None and isinstance(block, Image):
                alt = block.caption or name
                marks[ALT_TEXT_ADDED] = True
            members |= without_none(
                altText=alt, width=block.width, height=block.height, caption=block.caption
            )
        case Link():
            members = {"type": "resource", "resourceType": block.kind}
            members |= {"identifier": block.uri, "name": block.name}
            members |= without_none(
                description=block.description,
                metadata=block.metadata,
                title=block.title,
                mimeType=block.mime,
            )
        case Embedded():
            name = block.title or block.uri.rpartition("/")[2] or block.uri
            content_meta = author_meta(block.content_meta) or None
            body = without_none(
                text=block.text, blob=block.blob, mimeType=block.mime, _meta=content_meta
            )
            members = {"type": "resource", "resourceType": "embedded"}
            members |= {"identifier": block.uri, "name": name, "metadata": body}
            # A link may also have the resourceType "embedded" and such metadata, so a block with
            # a body is marked by a member that links never have.
            members |= {**without_none(title=block.title), "embedded": True}
    meta = author_meta(block.meta) | marks
    return members | without_none(annotations=block.annotations, _meta=meta or None)


def read_block(found: Any) -> Block:
    """Read a block; an unknown type becomes a text block with the block's text or JSON."""
    if not isinstance(found, dict):
        raise MalformedReply(f"a content item must be an object, not {type(found).__name__}")
    match found.get("type"):
        case "text":
            return build_block(Text, {"text": found.get("text")}, found)
        case "image" | "audio" as media_type:
            meta = found.get("_meta")
            marks = meta if isinstance(meta, dict) else {}
            members = {name: found.get(name) for name in ("width", "height", "caption")}
            members["alt"] = None if marks.get(ALT_TEXT_ADDED) else found.get("altText")
            url = found.get("url")
            if not isinstance(url, str):
                raise MalformedReply(f"{media_type} item must have a url")
            if url.startswith("data:") and BASE64 in url and URL_OF_AUTHOR not in marks:
                mime, _, payload = url.removeprefix("data:").rpartition(BASE64)
                members |= {"data": payload, "mime": mime}
            else:
                members |= {"url": url, "mime": found.get("mimeType")}
            return build_block(MEDIA[media_type], members, found)
        case "resource":
            members = {"uri": found.get("identifier"), "title": found.get("title")}
            metadata = found.get("metadata")
            if found.get("embedded") is True and isinstance(metadata, dict):
                members |= {name: metadata.get(name) for name in ("text", "blob")}
                members["mime"] = metadata.get("mimeType")
                block = build_block(Embedded, members, found)
                return changed_block(block, content_meta=author_meta(metadata.get("_meta")) or None)
            members |= {"kind": found.get("resourceType"), "mime": found.get("mimeType")}
            members |= {name: found.get(name) for name in ("name", "description", "metadata")}
            return build_block(Link, members, found)
    text = found.get("text")
    return build_block(
        Text, {"text": text if isinstance(text, str) else encode(found).decode()}, found
    )


def _read_error(found: dict[str, Any], content: tuple[Block, ...], contract: Contract) -> Error:
    text = next((block.text for block in content if isinstance(block, Text)), None)
    message = found.get("message") or (text and message_from_text(text, contract.error_text))
    error = found.get("error")
    if isinstance(error, str):
        message = error
    members = without_none(**error) if isinstance(error, dict) else {}
    read = read_error(members, message if isinstance(message, str) else UNKNOWN_TEXT)
    details = details_from_object(read.details)
    return project_error(msgspec.structs.replace(read, details=details))
