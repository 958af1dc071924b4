"""Finds the data of a recorded reply: what the tool's function returned."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

from ..core.content import Text
from ..core.json_value import Json
from ..core.reply import Reply
from ..errors import MalformedReply
from ..reading.read_reply import INVALID_FORMAT, TOO_LARGE, read
from ..reading.sources import load_json

Kind: TypeAlias = Literal["data", "text", "content", "failure", "unreadable"]


class ReplyData(msgspec.Struct, frozen=True):
    """A reply's data or text; other replies are failures, or have only blocks such as images."""

    kind: Kind
    value: Json = None
    is_json_text: bool = False
    """Whether the data is JSON in a text that the function returned."""
    wrapper: Json = msgspec.UNSET
    """The object `{"result": …}` around the data, if it may be the function's own."""
    why: str = ""
    """Why the reply cannot be read."""


def data_of(reply: Any, schema: dict[str, Any] | None = None) -> ReplyData:
    """Return a reply's data, from any form of a reply that `read` reads.

    *schema* is the tool's output schema.
    """
    read_reply = read(reply, output_schema=schema)
    found = _data_in(read_reply)
    if found.kind != "data" or read_reply.shape is not None or schema is not None:
        return found
    if read_reply.data_from != "structuredContent" or not _is_wrapped(read_reply):
        return found
    inner = _data(read_reply.data["result"])
    if _shows_wrapper(read_reply):
        return msgspec.structs.replace(inner, wrapper=read_reply.data)
    return inner


def data_of_record(reply: Any) -> ReplyData:
    """Return the data of a record's `reply`, which is never wrapped."""
    if not isinstance(reply, dict):
        return ReplyData("unreadable", why="the record's reply is not an object")
    if reply.get("error") is not None:
        return ReplyData("failure")
    if "data" in reply:
        return _data(reply["data"])
    return _data_in(read({"content": reply.get("content") or []}))


def _data_in(reply: Reply[Any]) -> ReplyData:
    if reply.error is not None:
        if reply.error.code in (INVALID_FORMAT, TOO_LARGE):
            return ReplyData("unreadable", why=reply.error.message)
        return ReplyData("failure")
    if reply.has_data:
        return _data(reply.data, is_text=reply.data_from == "text")
    match reply.content:
        case ():
            return ReplyData("data", None)
        case (Text(text=text),):
            return ReplyData("text", text)
    return ReplyData("content")


def _data(value: Json, *, is_text: bool = False) -> ReplyData:
    """Return data; a text that is JSON, as many functions return it, is the data in it."""
    if isinstance(value, str):
        inner = _json_in(value)
        if inner is msgspec.UNSET:
            return ReplyData("text", value)
        return _failed_or_data(inner)
    return ReplyData("data", value, is_text)


def _failed_or_data(value: Json) -> ReplyData:
    # `read` also sees a failure in the text that a function returned: `{"error": …}`.
    failed = isinstance(value, dict) and read(value).error is not None
    return ReplyData("failure") if failed else ReplyData("data", value, is_json_text=True)


def _json_in(text: str) -> Json:
    if text.lstrip()[:1] not in ("{", "["):
        return msgspec.UNSET
    try:
        return load_json(text)
    except MalformedReply:
        return msgspec.UNSET


def _is_wrapped(reply: Reply[Any]) -> bool:
    """Return whether `{"result": …}` is a wrapper, for a server whose schema is not known.

    Only an object may stand by itself in `structuredContent`. A server that wraps an object too
    shows it without the wrapper in its text.
    """
    data = reply.data
    if not isinstance(data, dict) or data.keys() != {"result"}:
        return False
    return not isinstance(data["result"], dict) or not _shows_wrapper(reply)


def _shows_wrapper(reply: Reply[Any]) -> bool:
    """Return whether the text has the wrapper too, or there is no text."""
    match reply.content:
        case ():
            return True
        case (Text(text=text),):
            return bool(_json_in(text) == reply.data)
    return False
