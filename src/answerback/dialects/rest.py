"""The plainest form: a success is its data, an error `{"error": "message"}`.

Not carried: content beside data; details, hint and retryable of an error; meta; the time.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ..content import Audio, Block, Image, Text
from ..contract import STANDARD, Contract
from ..errors import UNKNOWN_ERROR
from ..reply import Error, Reply
from ..shape import BARE, Shape
from ..versions import LATEST_LEGACY, Version
from .common import KINDS, MalformedReply, decoded, encode, encoded_data, kind_of, plain_data
from .http_reply import ERROR_CODE, JSON, HttpReply, in_json, is_token, token

FORM = "X-Answerback-Form"
"""Says that a body is not data: `content` (blocks), `image` or `audio` (their bytes)."""
OCTETS = "application/octet-stream"


def write(
    reply: Reply[Any], shape: Shape, contract: Contract, version: Version = LATEST_LEGACY
) -> HttpReply:
    """The reply as an HTTP answer; neither contract nor version changes it."""
    if reply.error is not None:
        return in_json(reply, encode({"error": reply.error.message}))
    if reply.data is not msgspec.UNSET:
        return HttpReply(200, shape.wrap(encoded_data(reply)), JSON)
    match reply.content:
        case (Image(url=None) | Audio(url=None) as media,):
            headers = ((FORM, _noun(media)), ("X-Content-Type-Options", "nosniff"))
            return HttpReply(200, media.data, _safe_mime(media), headers)
    from .mcp_blocks import write_block

    blocks = [write_block(block) for block in _content(reply)]
    return HttpReply(200, encode({"content": blocks}), JSON, ((FORM, "content"),))


def read(written: HttpReply, shape: Shape = BARE, contract: Contract = STANDARD) -> Reply[Any]:
    """The reply that an HTTP answer is, whoever wrote it; raises MalformedReply."""
    if written.status >= 400:
        return Reply(error=_read_error(written))
    essence = written.media_type.partition(";")[0].strip().lower()
    form = written.header(FORM) or essence.partition("/")[0]
    if form in ("image", "audio"):
        kind = Image if form == "image" else Audio
        mime = written.media_type if "/" in written.media_type else OCTETS
        return Reply(content=(kind(written.body, mime),))
    if not written.body:
        return Reply()
    if form == "text":
        return Reply(content=(Text(written.body.decode("utf-8", "replace")),))
    if essence != JSON and not essence.endswith("+json"):
        raise MalformedReply(f"no reply can be read from {written.media_type!r}")
    found = decoded(written.body, "the body")
    return _read_content(found) if form == "content" else Reply(data=shape.unwrap(found))


def project(
    reply: Reply[Any], shape: Shape, contract: Contract, version: Version = LATEST_LEGACY
) -> Reply[Any]:
    """What is carried of the reply; one that is read bears the time of reading."""
    stamp = reply.timestamp
    if reply.error is not None:
        code = token(reply.error.code)
        kind = kind_of(code, reply.error.row.status)
        return Reply(error=Error(code, reply.error.message, kind=kind), timestamp=stamp)
    if reply.data is not msgspec.UNSET:
        return Reply(data=plain_data(reply, shape), timestamp=stamp)
    match reply.content:
        case (Image(url=None) | Audio(url=None) as media,):
            bare = type(media)(media.data, _safe_mime(media))
            return Reply(content=(bare,), timestamp=stamp)
    return Reply(content=_content(reply), timestamp=stamp)


def _content(reply: Reply[Any]) -> tuple[Block, ...]:
    from .contract_text import DONE
    from .mcp_blocks import project_block

    blocks = reply.content or (Text(DONE),)
    return tuple(project_block(block, LATEST_LEGACY) for block in blocks)


def _noun(media: Image | Audio) -> str:
    return "image" if isinstance(media, Image) else "audio"


def _safe_mime(media: Image | Audio) -> str:
    """Its media type, if a header can hold it and a browser will take it for what it is."""
    essence, *parameters = media.mime.split(";")
    kind, _, subtype = essence.partition("/")
    pairs = [part.strip(" ").partition("=")[::2] for part in parameters]
    tokens = [subtype, *(word for pair in pairs for word in pair)]
    return media.mime if kind == _noun(media) and all(map(is_token, tokens)) else OCTETS


def _read_content(found: Any) -> Reply[Any]:
    from .mcp_blocks import read_block

    match found:
        case {"content": list(blocks)}:
            return Reply(content=tuple(map(read_block, blocks)))
    raise MalformedReply("the body must have a list of content")


def _read_error(written: HttpReply) -> Error:
    code = written.header(ERROR_CODE) or KINDS.get(written.status, UNKNOWN_ERROR)
    kind = kind_of(code, written.status)
    try:
        found = decoded(written.body, "the body")
    except MalformedReply:
        found = written.body.decode("utf-8", "replace") or None
    message = _message(found)
    return Error(code, f"HTTP status {written.status}" if message is None else message, kind=kind)


def _message(found: Any) -> str | None:
    """The message in our form, or in those that other services are fond of."""
    match found:
        case str(text):
            return text
        case {"error": inner} | {"detail": inner} | {"message": inner} | {"title": inner}:
            return _message(inner)
        case None:
            return None
    return encode(found).decode()
