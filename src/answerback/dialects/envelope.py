"""The envelope: `success, timestamp, content, data | error`, and blocks of its own kind.

A block's bytes become a `data:` URL. What the envelope has no member for stands beside
its members (`title`, `mimeType`, `annotations`, `_meta`, `meta`), only when there is any.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ..content import Audio, Block, Embedded, Image, Link, Text
from ..contract import STANDARD, Contract
from ..reply import Error, Reply
from ..shape import BARE, Shape
from ..versions import LATEST_LEGACY, Version
from .common import (
    OURS,
    MalformedReply,
    decoded_object,
    encode,
    encoded_data,
    given,
    made,
    moment_of,
    own_meta,
    plain,
    plain_data,
    project_error,
    read_error,
    utc,
    write_error,
)
from .contract_text import filled, message_in
from .mcp_blocks import MEDIA, project_block

FILLED_IN = OURS + "filled-in"
"""In a block's `_meta`: it has an `altText` only because the envelope asks for one."""
ADDRESS = OURS + "address"
"""In a block's `_meta`: the `data:` URL is the author's own, not bytes of ours."""
BASE64 = ";base64,"


def write(
    reply: Reply[Any], shape: Shape, contract: Contract, version: Version = LATEST_LEGACY
) -> bytes:
    """The envelope as compact JSON; no version changes it."""
    envelope: dict[str, Any] = {
        "success": reply.ok,
        "timestamp": utc(reply.timestamp),
        "content": [write_block(block) for block in filled(reply, shape, contract)],
    }
    if reply.error is not None:
        envelope["error"] = write_error(reply.error)
    elif reply.data is not msgspec.UNSET:
        envelope["data"] = msgspec.Raw(shape.wrap(encoded_data(reply)))
    return encode(envelope | given(meta=own_meta(reply.meta) or None))


def read(
    envelope: bytes | str | dict[str, Any], shape: Shape = BARE, contract: Contract = STANDARD
) -> Reply[Any]:
    """The reply that *envelope* holds, whoever wrote it; raises MalformedReply."""
    found = decoded_object(envelope, "an envelope")
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
        meta=own_meta(found.get("meta")),
        timestamp=moment_of(found.get("timestamp")),
    )


def project(
    reply: Reply[Any], shape: Shape, contract: Contract, version: Version = LATEST_LEGACY
) -> Reply[Any]:
    """All of the reply, as plain JSON and with the texts of the contract."""
    content = filled(reply, shape, contract)
    return Reply(
        content=tuple(project_block(block, LATEST_LEGACY) for block in content),
        data=plain_data(reply, shape) if reply.error is None else msgspec.UNSET,
        error=None if reply.error is None else project_error(reply.error),
        meta=plain(own_meta(reply.meta)),
        timestamp=utc(reply.timestamp),
    )


def write_block(block: Block) -> dict[str, Any]:
    """The block in the envelope's form."""
    ours: dict[str, Any] = {}
    match block:
        case Text():
            members: dict[str, Any] = {"type": "text", "text": block.text}
        case Image() | Audio():
            members, ours = _write_media(block)
        case Link():
            members = _write_link(block)
        case Embedded():
            members = _write_embedded(block)
    meta = own_meta(block.meta) | ours
    return members | given(annotations=block.annotations, _meta=meta or None)


def read_block(found: Any) -> Block:
    """The block that *found* is; of a kind we do not know, its JSON as text."""
    if not isinstance(found, dict):
        raise MalformedReply(f"a content item must be an object, not {type(found).__name__}")
    match found.get("type"):
        case "text":
            return made(Text, {"text": found.get("text")}, found)
        case "image" | "audio" as noun:
            return _read_media(found, noun)
        case "resource":
            return _read_resource(found)
    text = found.get("text")
    known = isinstance(text, str)
    return made(Text, {"text": text if known else encode(found).decode()}, found)


def _write_media(block: Image | Audio) -> tuple[dict[str, Any], dict[str, Any]]:
    noun = type(block).__name__
    members, ours = {"type": noun.lower()}, {}
    if block.url is None:
        from binascii import b2a_base64

        payload = b2a_base64(block.data, newline=False).decode()
        members["url"] = f"data:{block.mime}{BASE64}{payload}"
    else:
        members |= {"url": block.url, **given(mimeType=block.mime or None)}
        if block.url.startswith("data:"):
            ours[ADDRESS] = True
    alt = block.alt
    if alt is None and isinstance(block, Image):
        alt = block.caption or noun
        ours[FILLED_IN] = True
    looks = given(altText=alt, width=block.width, height=block.height, caption=block.caption)
    return members | looks, ours


def _read_media(found: dict[str, Any], noun: str) -> Block:
    meta = found.get("_meta")
    ours = meta if isinstance(meta, dict) else {}
    members = {name: found.get(name) for name in ("width", "height", "caption")}
    members["alt"] = None if ours.get(FILLED_IN) else found.get("altText")
    url = found.get("url")
    if not isinstance(url, str):
        raise MalformedReply(f"{noun} item must have a url")
    if url.startswith("data:") and BASE64 in url and ADDRESS not in ours:
        mime, _, payload = url.removeprefix("data:").rpartition(BASE64)
        members |= {"data": payload, "mime": mime}
    else:
        members |= {"url": url, "mime": found.get("mimeType")}
    return made(MEDIA[noun], members, found)


def _write_link(block: Link) -> dict[str, Any]:
    members = {"resourceType": block.kind, "identifier": block.uri, "name": block.name}
    more = given(
        description=block.description,
        metadata=block.metadata,
        title=block.title,
        mimeType=block.mime,
    )
    return {"type": "resource", **members, **more}


def _write_embedded(block: Embedded) -> dict[str, Any]:
    name = block.title or block.uri.rpartition("/")[2] or block.uri
    members = {"resourceType": "embedded", "identifier": block.uri, "name": name}
    body = given(text=block.text, blob=block.blob, mimeType=block.mime)
    # A link may call itself embedded and have such metadata too; it is never marked so.
    marked = {"metadata": body, **given(title=block.title), "embedded": True}
    return {"type": "resource", **members, **marked}


def _read_resource(found: dict[str, Any]) -> Block:
    members = {"uri": found.get("identifier"), "title": found.get("title")}
    metadata = found.get("metadata")
    if found.get("embedded") is True and isinstance(metadata, dict):
        body = {name: metadata.get(name) for name in ("text", "blob")}
        return made(Embedded, members | body | {"mime": metadata.get("mimeType")}, found)
    members |= {"kind": found.get("resourceType"), "mime": found.get("mimeType")}
    members |= {name: found.get(name) for name in ("name", "description", "metadata")}
    return made(Link, members, found)


def _read_error(found: dict[str, Any], content: tuple[Block, ...], contract: Contract) -> Error:
    text = next((block.text for block in content if isinstance(block, Text)), None)
    told = found.get("message") or (text and message_in(text, contract.error_text))
    error = found.get("error")
    if isinstance(error, str):
        told = error
    fallback = told if isinstance(told, str) else "Unknown error"
    return project_error(read_error(given(**error) if isinstance(error, dict) else {}, fallback))
