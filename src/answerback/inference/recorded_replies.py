"""Reads recorded replies with the names of their tools, one after another.

It reads lines `{"tool": …, "reply": …}`, the records of `--audit` (SQLite and JSONL), the taps of
`connect`, and the logs that `lint` reads. It holds no more in memory than the largest reply.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping
from io import BufferedReader
from typing import Any

import msgspec

from ..core.json_value import Json
from ..core.received_limits import MAX_BYTES
from ..errors import AnswerbackError
from ..records.event import ASKED, CANCELLED, Event
from ..records.reader import StoredRecord
from ..records.reader import decode as decode_record
from ..records.reader import read as read_records
from ..rules.lint.conversation import Conversation
from ..rules.lint.json_in_logs import INVALID, NO_VALUE, read_pieces
from ..rules.validation import decode_json
from .reply_data import ReplyData, data_of, data_of_record

STDIN = "-"
_SQLITE_HEADER = b"SQLite format 3\0"
_PEEKED = 1024
_FIRST_LINE = re.compile(rb"(\xef\xbb\xbf)?\s*\{[ \t]*\"")
"""The start of an object in one line, and not of one over several lines."""
_NOT_JSON = "this is not JSON"
_NO_CONTENT = "the record has no content; record it with --audit-keep content"
_NO_TOOL = 'the reply does not name its tool; write {"tool": "name", "reply": …} on a line'


class CannotInfer(AnswerbackError):
    """A file cannot be read, or there is nothing to infer types from."""

    code = "CANNOT_INFER"


class RecordedReply(msgspec.Struct, frozen=True):
    """A reply's data, and where it was recorded."""

    tool: str
    found: ReplyData
    place: str
    """The file and the line, or the record's number."""


class UnreadableLine(msgspec.Struct, frozen=True):
    """A line or record that has no reply in it, and why."""

    place: str
    why: str


Recorded = RecordedReply | UnreadableLine


def read_replies(name: str, stdin: BufferedReader) -> Iterator[Recorded]:
    """Yield the replies of a file, or of *stdin* for `-`; raises CannotInfer."""
    if name == STDIN:
        yield from _Lines("stdin").read(stdin)
        return
    try:
        with open(name, "rb") as file:
            if file.read(len(_SQLITE_HEADER)) == _SQLITE_HEADER:
                yield from _read_database(name)
                return
            file.seek(0)
            yield from _Lines(name).read(file)
    except OSError as exc:
        raise CannotInfer(f"cannot read {name}: {exc.strerror or exc}") from None


def _read_database(name: str) -> Iterator[Recorded]:
    for stored in read_records(name):
        if isinstance(stored, StoredRecord):
            event = decode_record(stored)
            place = f"{name}: record {stored.number}"
            if event is None:
                yield UnreadableLine(place, "this is not a record")
            else:
                yield from _of_event(event, place)


def _of_event(event: Event, place: str) -> Iterator[Recorded]:
    if event.kind != "tool" or event.code in (ASKED, CANCELLED):
        return
    if event.failed:
        yield RecordedReply(event.tool, ReplyData("failure"), place)
    elif event.reply is None:
        yield UnreadableLine(place, _NO_CONTENT)
    else:
        yield RecordedReply(event.tool, data_of_record(event.reply), place)


class _Lines:
    """The lines of one file, and what they say about the calls so far."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._conversations: dict[str, Conversation] = {}

    def read(self, file: BufferedReader) -> Iterator[Recorded]:
        # Line by line if the file begins so: a line that was cut off does not hide the next ones.
        if _FIRST_LINE.match(file.peek(_PEEKED)):
            yield from self._of_lines(file)
            return
        for piece in read_pieces(file):
            place = f"{self._name}:{piece.line}"
            if piece.value is INVALID:
                yield UnreadableLine(place, _NOT_JSON)
            elif piece.value is not NO_VALUE:
                yield from self._of_value(piece.value, place, in_log_text=piece.in_log_text)

    def _of_lines(self, file: BufferedReader) -> Iterator[Recorded]:
        number = 0
        while line := file.readline(MAX_BYTES):
            number += 1
            place = f"{self._name}:{number}"
            if len(line) == MAX_BYTES and not line.endswith(b"\n"):
                yield UnreadableLine(place, f"the line is longer than {MAX_BYTES} bytes")
                _skip_line(file)
                continue
            try:
                value = decode_json(line.removeprefix(BOM_UTF8)) if line.strip() else NO_VALUE
            except (ValueError, RecursionError):
                yield UnreadableLine(place, _NOT_JSON)
                continue
            if value is not NO_VALUE:
                yield from self._of_value(value, place, in_log_text=False)

    def _of_value(self, value: Any, place: str, *, in_log_text: bool) -> Iterator[Recorded]:
        match value:
            case {"event": {"event": str()} as event} | ({"event": str(), "time": str()} as event):
                yield from self._of_record(event, place)
            case {"tool": str(tool), "reply": reply}:
                yield RecordedReply(tool, data_of(reply), place)
            case {"direction": "sent" | "received" as direction}:
                yield from self._of_tap(direction, value, place)
            case {"chain": str(), "seq": int(), "hash": str()}:
                yield UnreadableLine(place, "this is not a record")
            case _:
                yield from self._of_log("", value, place, in_log_text=in_log_text)

    def _of_record(self, event: dict[str, Any], place: str) -> Iterator[Recorded]:
        try:
            yield from _of_event(msgspec.convert(event, Event), place)
        except msgspec.ValidationError as exc:
            yield UnreadableLine(place, f"this is not a record: {exc}")

    def _of_tap(self, direction: str, line: Mapping[str, Json], place: str) -> Iterator[Recorded]:
        message, server = line.get("message"), str(line.get("server", ""))
        # The server's own requests have ids of their own, as do the answers to them.
        for each in message if isinstance(message, list) else [message]:
            if isinstance(each, dict) and ("method" in each) == (direction == "sent"):
                yield from self._of_log(server, each, place)

    def _of_log(
        self, server: str, value: Json, place: str, *, in_log_text: bool = False
    ) -> Iterator[Recorded]:
        known = self._conversations.setdefault(server, Conversation())
        for logged in known.replies(value, in_log_text=in_log_text):
            if logged.tool:
                found = data_of(logged.reply, logged.context.schema)
                yield RecordedReply(logged.tool, found, place)
            elif not _is_other_message(logged.reply):
                yield UnreadableLine(place, _NO_TOOL)


def _skip_line(file: BufferedReader) -> None:
    while (rest := file.readline(MAX_BYTES)) and not rest.endswith(b"\n"):
        pass


def _is_other_message(value: Json) -> bool:
    """Return whether it is a list of tools, or an error of the protocol."""
    return isinstance(value, dict) and ("tools" in value or "jsonrpc" in value)
