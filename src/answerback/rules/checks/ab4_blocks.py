"""AB4xx: a block's bytes, media type, URI and annotations are valid, and its text is text."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

from ...core.json_value import is_number
from ...core.media_types import (
    MEDIA_TYPE,
    decode_base64,
    detected_media_type,
    is_media_type_of,
    media_types_agree,
    normalized_base64,
)
from ...dialects.mcp_blocks import SCHEME
from ...dialects.reply_text import BUFFER_START, is_unencoded
from ..finding import (
    ENVELOPE,
    ENVELOPE_SUCCESS,
    MCP,
    MCP_IMAGE,
    PNG,
    Fault,
    Faults,
    Scope,
    blocks_result,
    rule,
    text_result,
)
from ..reply_view import MEDIA, ReplyView, block_at, parent_of, quoted

_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+)?(?:;[\w.+-]+=[^;,]*)*;base64,")
_AUDIENCE = {"user", "assistant"}
_BYTES_AS_TEXT = (
    "\x89PNG",
    "\ufffdPNG",
    "GIF89a",
    "GIF87a",
    "\xff\xd8\xff",
    "\ufffd\ufffd\ufffd\ufffd\x00\x10JFIF",
    "%PDF-1",
    "PK\x03\x04",
    "RIFF\x00",
    "b'\\x89PNG",
    'b"\\x89PNG',
    "b'\\xff\\xd8\\xff",
)
_BASE64_AS_TEXT = re.compile(
    r"(?:data:(?:image|audio)/[\w.+-]+;base64,|iVBORw0KGgo|/9j/4AAQ|R0lGODlh)[A-Za-z0-9+/=\s]{60,}"
)
_MAX_READABLE = 120  # Compact JSON of flat data is easy to read up to this length.
_BYTES_HINT = "send it as an image or audio block: its base64 in data, its type in mimeType"


def _normalize_base64(reply: dict[str, Any], pointer: str) -> None:
    holder, name = parent_of(reply, pointer)
    holder[name] = normalized_base64(holder[name]) or holder[name]


@rule(
    "AB401",
    scope=Scope(dialects=MCP, part="block", types=("image", "audio", "resource")),
    hint="encode the bytes with the standard alphabet and padding, without line breaks",
    bad=blocks_result({"type": "image", "data": "not base64!", "mimeType": "image/png"}),
    good=MCP_IMAGE,
    fix=_normalize_base64,
)
def bad_base64(reply: ReplyView, block: dict[str, Any], index: int) -> Faults:
    """A client cannot show bytes that it cannot decode, and strict clients reject the reply."""
    data, name = _base64_of(block)
    if not data or data.startswith("data:") or decode_base64(data) is not None:
        return ()
    return [Fault(f"/content/{index}/{name}", f"{name.rpartition('/')[2]} is not base64")]


def _base64_of(block: dict[str, Any]) -> tuple[str, str]:
    """Return the base64 in a block, and its pointer relative to the block."""
    resource = block.get("resource")
    if block["type"] in MEDIA:
        data, name = block.get("data"), "data"
    else:
        data, name = resource.get("blob") if isinstance(resource, dict) else "", "resource/blob"
    return (data, name) if isinstance(data, str) else ("", name)


def _set_mime(reply: dict[str, Any], pointer: str) -> None:
    holder, _ = parent_of(reply, pointer)
    data = holder.get("data", holder.get("blob"))
    holder["mimeType"] = detected_media_type(data) or holder["mimeType"]


@rule(
    "AB402",
    scope=Scope(dialects=MCP, part="block", types=("image", "audio", "resource")),
    hint="declare the media type of the bytes",
    bad=blocks_result({"type": "image", "data": PNG, "mimeType": "image/jpeg"}),
    good=MCP_IMAGE,
    fix=_set_mime,
)
def mime_does_not_match(reply: ReplyView, block: dict[str, Any], index: int) -> Faults:
    """Model providers reject an image whose bytes do not match the declared type."""
    data, name = _base64_of(block)
    if not data:
        return ()
    holder = block["resource"] if name == "resource/blob" else block
    declared, detected = holder.get("mimeType"), detected_media_type(data)
    if not isinstance(declared, str) or detected is None or media_types_agree(declared, detected):
        return ()
    at = name.replace("data", "mimeType").replace("blob", "mimeType")
    message = f"mimeType is {declared}, but the bytes are {detected}"
    return [Fault(f"/content/{index}/{at}", message)]


def _strip_data_url(reply: dict[str, Any], pointer: str) -> None:
    block = block_at(reply, pointer)
    url = _DATA_URL.match(block["data"])
    if url is not None:
        block["data"] = block["data"][url.end() :]
        block.setdefault("mimeType", url[1] or "application/octet-stream")


@rule(
    "AB403",
    scope=Scope(dialects=MCP, part="block", types=("image", "audio", "resource")),
    hint="put only what follows `base64,` in data",
    bad=blocks_result(
        {"type": "image", "data": f"data:image/png;base64,{PNG}", "mimeType": "image/png"}
    ),
    good=MCP_IMAGE,
    fix=_strip_data_url,
)
def data_url_in_data(reply: ReplyView, block: dict[str, Any], index: int) -> Faults:
    """`data` is only base64; a client that puts `data:…` in front of it ends up with a bad URL."""
    data, name = _base64_of(block)
    if not data.startswith("data:"):
        return ()
    return [Fault(f"/content/{index}/{name}", "a data URL in place of base64")]


@rule(
    "AB404",
    scope=Scope(dialects=MCP, part="block", types=("resource", "resource_link")),
    hint="write the scheme: file:///project/main.rs, https://…, or your own scheme",
    bad=blocks_result({"type": "resource_link", "uri": "/project/main.rs", "name": "main.rs"}),
    good=blocks_result(
        {"type": "resource_link", "uri": "file:///project/main.rs", "name": "main.rs"}
    ),
)
def uri_without_scheme(reply: ReplyView, block: dict[str, Any], index: int) -> Faults:
    """A URI begins with a scheme; without one, a client can neither open nor read the resource."""
    holder, at = block, "uri"
    if block["type"] == "resource":
        resource, at = block.get("resource"), "resource/uri"
        holder = resource if isinstance(resource, dict) else {}
    uri = holder.get("uri")
    if not isinstance(uri, str) or SCHEME.match(uri):
        return ()
    return [Fault(f"/content/{index}/{at}", f"{quoted(uri, 80)} has no scheme")]


@rule(
    "AB405",
    scope=Scope(dialects=MCP + ENVELOPE, part="block"),
    hint="audience: user, assistant; priority: 0 to 1; lastModified: 2025-05-03T14:30:00Z",
    bad=blocks_result({"type": "text", "text": "Important", "annotations": {"priority": 9}}),
    good=blocks_result({"type": "text", "text": "Important", "annotations": {"priority": 0.9}}),
)
def bad_annotations(reply: ReplyView, block: dict[str, Any], index: int) -> Faults:
    """Clients check annotations, and reject the whole reply if one is out of range."""
    annotations = block.get("annotations")
    if annotations is None:
        return ()
    at = f"/content/{index}/annotations"
    if not isinstance(annotations, dict):
        return [Fault(at, "annotations is not an object")]
    return [
        Fault(f"{at}/{name}", f"{name} is {quoted(annotations[name])}")
        for name, is_valid in _ANNOTATIONS.items()
        if not is_valid(annotations.get(name))
    ]


def _is_audience(value: Any) -> bool:
    return value is None or (
        isinstance(value, list)
        and all(isinstance(each, str) for each in value)
        and set(value) <= _AUDIENCE
    )


def _is_priority(value: Any) -> bool:
    return value is None or (is_number(value) and 0 <= value <= 1)


def _is_date(value: Any) -> bool:
    if value is None:
        return True
    try:
        datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return False
    return True


_ANNOTATIONS = {
    "audience": _is_audience,
    "priority": _is_priority,
    "lastModified": _is_date,
}


@rule(
    "AB406",
    scope=Scope(dialects=MCP, part="block", types=("image", "audio")),
    hint="an image needs an image/… type and audio an audio/… type; for others, use a resource",
    bad=blocks_result({"type": "image", "data": PNG, "mimeType": "png"}),
    good=MCP_IMAGE,
)
def mime_of_another_kind(reply: ReplyView, block: dict[str, Any], index: int) -> Faults:
    """Hosts use the media type to decide how to show a block, and drop any they cannot show."""
    mime, block_type = block.get("mimeType"), block["type"]
    if not isinstance(mime, str):
        return ()
    at = f"/content/{index}/mimeType"
    if not MEDIA_TYPE.fullmatch(mime):
        return [Fault(at, f"{quoted(mime)} is not a media type")]
    if is_media_type_of(block_type, mime):
        return ()
    return [Fault(at, f"the type of this {block_type} is {mime}")]


@rule(
    "AB407",
    scope=Scope(dialects=MCP, part="block", types=("image", "audio")),
    hint="leave the block out, and say in text why there is nothing to show",
    bad=blocks_result({"type": "image", "data": "", "mimeType": "image/png"}),
    good=MCP_IMAGE,
)
def empty_media(reply: ReplyView, block: dict[str, Any], index: int) -> Faults:
    """Model providers reject the whole conversation because of one empty image or audio block."""
    if block.get("data") != "":
        return ()
    return [Fault(f"/content/{index}/data", f"the {block['type']} has no bytes")]


@rule(
    "AB408",
    scope=Scope(dialects=MCP + ENVELOPE, part="text"),
    hint="encode the value itself as JSON; await what has to be awaited",
    bad=text_result("[object Object]"),
    good=text_result('{"temperature":22.5}'),
)
def value_not_encoded(reply: ReplyView, text: str, index: int) -> Faults:
    """This is how a program prints a value that it could not encode; the value itself is lost."""
    if text.startswith("{"):
        if text.startswith(BUFFER_START):
            return [Fault(f"/content/{index}/text", "the text is a Node.js Buffer", _BYTES_HINT)]
    elif is_unencoded(text):
        return [Fault(f"/content/{index}/text", f"the text is {quoted(text.strip())}")]
    return ()


@rule(
    "AB409",
    scope=Scope(dialects=MCP + ENVELOPE, part="text"),
    severity="warning",
    hint=_BYTES_HINT,
    bad=text_result("data:image/png;base64," + PNG),
    good=MCP_IMAGE,
)
def bytes_as_text(reply: ReplyView, text: str, index: int) -> Faults:
    """To a model, bytes in text are thousands of meaningless tokens, and it sees no image."""
    if text.startswith(_BYTES_AS_TEXT):
        return [Fault(f"/content/{index}/text", "the text is a file's bytes")]
    if len(text) > 80 and _BASE64_AS_TEXT.match(text) and _BASE64_AS_TEXT.fullmatch(text):
        return [Fault(f"/content/{index}/text", "the text is an image or audio in base64")]
    return ()


@rule(
    "AB410",
    scope=Scope(dialects=ENVELOPE),
    severity="note",
    hint="format the text for people to read; the data itself is still in data",
    bad={
        **ENVELOPE_SUCCESS,
        "content": [
            {"type": "text", "text": '{"instances":[{"id":"instance-1","status":"running"}]}'}
        ],
        "data": {"instances": [{"id": "instance-1", "status": "running"}]},
    },
    good=ENVELOPE_SUCCESS,
)
def raw_data_as_text(reply: ReplyView) -> Faults:
    """Content is for people, and compact JSON of nested data is hard to read."""
    return [
        Fault(f"/content/{index}/text", "the text is the data as compact JSON")
        for index, text, value in reply.json_texts
        if value == reply.data
        and "\n" not in text
        and (len(text) > _MAX_READABLE or any(map(_containers_in, _containers_in(value))))
    ]


def _containers_in(value: Any) -> list[Any]:
    members = value.values() if isinstance(value, dict) else value
    return [each for each in members if isinstance(each, dict | list)]
