"""Reads recorded replies one at a time, each with its tool's name and its data.

It reads the same files as `lint`, `{"tool": …, "reply": …}` lines, and records from `--audit`
(SQLite and JSONL). Memory use is bounded by the largest reply. It knows nothing about types.
"""

from __future__ import annotations

import io
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from io import BufferedReader
from typing import IO, Any, Literal

import msgspec

from ..core.content import Text
from ..core.json_value import Json
from ..core.reply import Reply
from ..errors import MalformedReply
from ..reading.read_reply import INVALID_FORMAT, TOO_LARGE, read
from ..reading.sources import load_json
from ..records.event import ASKED, CANCELLED, Event
from ..records.reader import SQLITE_HEADER, StoredRecord
from ..records.reader import read as read_records
from ..rules.lint.inputs import INVALID, NO_VALUE, Conversation, Piece, read_pieces

_FIRST_LINE = re.compile(rb"(\xef\xbb\xbf)?\s*\{[ \t]*\"")
"""The start of an object on a single line, as opposed to one that spans several lines."""
_NO_CONTENT = "the record has no content; record it with --audit-keep content"
_NO_TOOL = 'the reply does not name its tool; write {"tool": "name", "reply": …} on a line'


class ReplyData(msgspec.Struct, frozen=True):
    """The value that a tool's function returned, as recovered from its reply."""

    kind: Literal["data", "content", "failure", "unreadable"]
    """A "content" reply has blocks such as images, but no data."""
    value: Json = None
    """The data; for a text-only reply, the text."""
    why: str = ""
    """Why the reply cannot be read."""


class RecordedReply(msgspec.Struct, frozen=True):
    """A reply's data, and where it was recorded."""

    tool: str
    data: ReplyData
    place: str
    """The file, and the line or record number."""


def read_replies(file: BufferedReader, name: str) -> Iterator[RecordedReply]:
    """Yield the replies in an open file called *name*; raises CannotRead."""
    head = file.peek(1024)
    parts: Iterable[IO[bytes]] = [file]
    if head.startswith(SQLITE_HEADER):
        records = read_records(name)
        parts = (io.BytesIO(each.body) for each in records if isinstance(each, StoredRecord))
    elif _FIRST_LINE.match(head):
        # Read line by line, so that a truncated line does not hide the next ones.
        parts = map(io.BytesIO, file)
    conversations: dict[str, Conversation] = defaultdict(Conversation)
    for number, part in enumerate(parts):
        for piece in read_pieces(part):
            place = f"{name}:{number + piece.line}"
            if piece.value is INVALID:
                yield _unreadable("this is not JSON", place)
            elif piece.value is not NO_VALUE:
                yield from _replies_in_piece(piece, place, conversations)


def _replies_in_piece(
    piece: Piece, place: str, conversations: dict[str, Conversation]
) -> Iterator[RecordedReply]:
    server, messages = "", [piece.value]
    match piece.value:
        case {"event": {"event": str()} as body} | ({"event": str(), "time": str()} as body):
            try:
                event = msgspec.convert(body, Event)
            except msgspec.ValidationError as exc:
                yield _unreadable(f"this is not a record: {exc}", place)
                return
            if event.kind == "tool" and event.code not in (ASKED, CANCELLED):
                yield RecordedReply(event.tool, _data_of_event(event), place)
            return
        case {"tool": str(tool), "reply": reply}:
            yield RecordedReply(tool, data_of(reply), place)
            return
        case {"direction": "sent" | "received" as direction, **line}:
            # Servers that share a tap use the same ids, as do a server's requests to its host, so
            # only the client's requests and the responses to them are read.
            server, frame = str(line.get("server", "")), line.get("message")
            messages = [
                each
                for each in (frame if isinstance(frame, list) else [frame])
                if isinstance(each, dict) and ("method" in each) == (direction == "sent")
            ]
    for message in messages:
        for logged in conversations[server].replies(message, in_log_text=piece.in_log_text):
            if logged.tool:
                found = data_of(logged.reply, logged.context.schema)
                yield RecordedReply(logged.tool, found, place)
            # Neither a list of tools nor a protocol error is a tool's reply.
            elif not isinstance(logged.reply, dict) or not {"tools", "jsonrpc"} & set(logged.reply):
                yield _unreadable(_NO_TOOL, place)


def _data_of_event(event: Event) -> ReplyData:
    if event.failed:
        return ReplyData("failure")
    if not isinstance(event.reply, dict):
        return ReplyData("unreadable", why=_NO_CONTENT)
    if "data" in event.reply:
        # A record has the data itself, never wrapped in `{"result": …}`.
        return _data(event.reply["data"])
    return data_of({"content": event.reply.get("content") or []})


def _unreadable(why: str, place: str) -> RecordedReply:
    return RecordedReply("", ReplyData("unreadable", why=why), place)


def data_of(reply: Any, schema: dict[str, Any] | None = None) -> ReplyData:
    """Return a reply's data, from any form that `read` accepts.

    *schema* is the tool's output schema.
    """
    found = read(reply, output_schema=schema)
    if found.error is not None:
        if found.error.code in (INVALID_FORMAT, TOO_LARGE):
            return ReplyData("unreadable", why=found.error.message)
        return ReplyData("failure")
    if found.has_data:
        is_wrapped = schema is None and _is_wrapped(found)
        return _data(found.data["result"] if is_wrapped else found.data)
    match found.content:
        case ():
            return ReplyData("data", None)
        case (Text(text=text),):
            return ReplyData("data", text)
    return ReplyData("content")


def _is_wrapped(reply: Reply[Any]) -> bool:
    """Return whether `{"result": …}` is a wrapper, for a server whose schema is unknown.

    Only objects are allowed in `structuredContent` without a wrapper. A server that wraps even
    objects shows them unwrapped in its text.
    """
    data = reply.data
    is_in_mcp = reply.shape is None and reply.data_from == "structuredContent"
    if not is_in_mcp or not isinstance(data, dict) or data.keys() != {"result"}:
        return False
    if not isinstance(data["result"], dict):
        return True
    match reply.content:
        case ():
            return False
        case (Text(text=text),):
            return bool(_json_in(text) != data)
    return True


def _data(value: Json) -> ReplyData:
    """Return the data, decoding the JSON strings that many functions return."""
    inner = _json_in(value) if isinstance(value, str) else msgspec.UNSET
    if inner is msgspec.UNSET:
        return ReplyData("data", value)
    # `read` also recognises a failure in text that a function returned: `{"error": …}`.
    is_failure = isinstance(inner, dict) and read(inner).error is not None
    return ReplyData("failure") if is_failure else ReplyData("data", inner)


def _json_in(text: str) -> Json:
    """Return the object or array that a string contains; UNSET if there is none."""
    if text.lstrip()[:1] not in ("{", "["):
        return msgspec.UNSET
    try:
        return load_json(text)
    except MalformedReply:
        return msgspec.UNSET
