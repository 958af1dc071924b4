"""The rest dialect: a success is its data, an error is `{"error": "message"}`.

It does not carry meta, the timestamp, content alongside data, or an error's details or
retryable. A long hint is truncated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from ..contract import STANDARD, Contract
from ..core.content import Audio, Image, Text
from ..core.reply import Error, Reply
from ..core.shape import BARE, Shape
from ..errors import UNKNOWN_ERROR, MalformedReply, code_for_status
from .status_and_headers import (
    ERROR_CODE,
    ERROR_HINT,
    JSON,
    HttpReply,
    header_text,
    is_header_token,
    json_reply,
)

if TYPE_CHECKING:
    from ..core.versions import Version

_encode = msgspec.json.Encoder().encode
FORM = "X-Answerback-Form"
"""The header for a body that is not data: `content` (blocks), `image` or `audio` (bytes)."""
OCTETS = "application/octet-stream"


def write(
    reply: Reply[Any], shape: Shape, contract: Contract, version: Version | None = None
) -> HttpReply:
    """Return the reply for HTTP; it does not depend on the contract or the version."""
    if reply.error is not None:
        written = json_reply(reply, _encode({"error": reply.error.message}))
        hint = header_text(reply.error.hint) if reply.error.hint else ""
        if not hint:
            return written
        return msgspec.structs.replace(written, headers=(*written.headers, (ERROR_HINT, hint)))
    if reply.data is not msgspec.UNSET:
        encoded = _encode(reply.data) if reply.encoded is None else reply.encoded
        return HttpReply(200, shape.wrap(encoded), JSON)
    match reply.content:
        case (Image(url=None) | Audio(url=None) as media,):
            headers = ((FORM, _media_kind(media)), ("X-Content-Type-Options", "nosniff"))
            return HttpReply(200, media.data, safe_mime(media), headers)
    return write_content(reply)


def write_content(reply: Reply[Any]) -> HttpReply:
    """Return a success without data as `{"content": […]}`."""
    from ..core.versions import LATEST_STATEFUL
    from .mcp_blocks import write_blocks
    from .reply_text import DONE

    content = reply.content or (Text(DONE),)
    blocks = write_blocks(content, LATEST_STATEFUL)
    return HttpReply(200, _encode({"content": blocks}), JSON, ((FORM, "content"),))


def read(http_reply: HttpReply, shape: Shape = BARE, contract: Contract = STANDARD) -> Reply[Any]:
    """Read a reply written by Answerback or another server; raise MalformedReply."""
    # Imported here, because a server only writes replies.
    from .common import decode_json

    if http_reply.status >= 400 or http_reply.header(ERROR_CODE):
        return Reply(error=_read_error(http_reply))
    essence = http_reply.media_type.partition(";")[0].strip().lower()
    form = http_reply.header(FORM) or essence.partition("/")[0]
    if form in ("image", "audio"):
        kind = Image if form == "image" else Audio
        mime = http_reply.media_type if "/" in http_reply.media_type else OCTETS
        return Reply(content=(kind(http_reply.body, mime),))
    if not http_reply.body:
        return Reply()
    if form == "text":
        return Reply(content=(Text(http_reply.body.decode("utf-8", "replace")),))
    if essence != JSON and not essence.endswith("+json"):
        raise MalformedReply(f"cannot read a reply from {http_reply.media_type!r}")
    found = decode_json(http_reply.body, "the body")
    if form != "content":
        return Reply(data=shape.unwrap(found))
    from .mcp_blocks import read_block

    match found:
        case {"content": list(blocks)}:
            return Reply(content=tuple(map(read_block, blocks)))
    raise MalformedReply("the body must have a list of content")


def _media_kind(media: Image | Audio) -> str:
    return "image" if isinstance(media, Image) else "audio"


def safe_mime(media: Image | Audio) -> str:
    """Return the media type if it is an image or audio type that is safe in a header.

    Any other type is replaced, so that a browser does not render the bytes as, say, HTML.
    """
    essence, *parameters = media.mime.split(";")
    kind, _, subtype = essence.partition("/")
    pairs = [part.strip(" ").partition("=")[::2] for part in parameters]
    tokens = [subtype, *(word for pair in pairs for word in pair)]
    is_safe = kind == _media_kind(media) and all(map(is_header_token, tokens))
    return media.mime if is_safe else OCTETS


def _read_error(http_reply: HttpReply) -> Error:
    # Imported here, because a server only writes replies.
    from .common import decode_json, kind_for_status

    code = http_reply.header(ERROR_CODE) or code_for_status(http_reply.status) or UNKNOWN_ERROR
    kind = kind_for_status(code, http_reply.status)
    try:
        found = decode_json(http_reply.body, "the body")
    except MalformedReply:
        found = http_reply.body.decode("utf-8", "replace") or None
    message = _message(found)
    if message is None:
        message = f"HTTP status {http_reply.status}"
    hint = http_reply.header(ERROR_HINT) or None
    if hint is not None:
        from urllib.parse import unquote

        hint = unquote(hint)
    return Error(code, message, hint=hint, kind=kind)


def _message(found: Any) -> str | None:
    """Return the message in our error body, or in one of the forms common in other services."""
    match found:
        case str(text):
            return text
        case {"error": inner} | {"detail": inner} | {"message": inner} | {"title": inner}:
            return _message(inner)
        case None:
            return None
    return _encode(found).decode()
