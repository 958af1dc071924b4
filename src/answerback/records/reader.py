"""Reads records from an SQLite or JSONL file, and counts them by tool."""

from __future__ import annotations

import os
import sqlite3
from array import array
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import closing
from sqlite3 import Connection
from typing import Any
from urllib.request import pathname2url

import msgspec

from ..errors import TOOL_NOT_FOUND, AnswerbackError
from .event import Event
from .jsonl import JsonlLine, encode_line

SQLITE_HEADER = b"SQLite format 3\0"
_UNKNOWN_TOOLS = "(unknown)"
_NO_RECORDS = "there are no records in it"
_ROWS_PER_QUERY = 256
_LINE_START = b'{"chain":"'


class CannotRead(AnswerbackError):
    code = "CANNOT_READ"


class StoredRecord(msgspec.Struct, frozen=True):
    """A record as stored in the file, not verified."""

    number: int
    """The row's id, or the line's number."""
    chain: str
    seq: int
    hash: str
    body: bytes
    altered: bool = False
    """True if the line has a duplicate or unknown member, or its spacing was changed."""


class TornLine(msgspec.Struct, frozen=True):
    """A line that cannot be decoded, such as one left by a process killed while writing."""

    number: int
    chain: str | None
    """The line's chain; "" if the line is too short, None if no record starts like this."""


def read(path: str, *, last: int | None = None) -> Iterator[StoredRecord | TornLine]:
    """Yield the records in file order, or only the *last* ones; raise CannotRead."""
    try:
        with open(path, "rb") as file:
            is_sqlite = file.read(len(SQLITE_HEADER)) == SQLITE_HEADER
    except OSError as exc:
        raise CannotRead(f"cannot read {path}: {exc.strerror or exc}") from None
    yield from _rows(path, last) if is_sqlite else _lines(path, last)


def decode(record: StoredRecord) -> Event | None:
    """Return the record's event, or None if its body is not an event."""
    try:
        return msgspec.json.decode(record.body, type=Event)
    except msgspec.DecodeError:
        return None


def _rows(path: str, last: int | None) -> Iterator[StoredRecord]:
    try:
        with closing(_connect(path, "ro")) as connection:
            where, values = "", ()
            if last is not None:
                query = "SELECT id FROM records ORDER BY id DESC LIMIT 1 OFFSET ?"
                if before := _fetch(connection, path, query, (last,)):
                    where, values = "WHERE id > ?", before[0]
            while True:
                # Use a new query every few rows, because an open query keeps servers from writing.
                query = (
                    f"SELECT id, chain, seq, hash, body FROM records {where} ORDER BY id LIMIT ?"
                )
                rows = _fetch(connection, path, query, (*values, _ROWS_PER_QUERY))
                if not rows:
                    return
                for number, chain, seq, record_hash, body in rows:
                    # The values may have other types, because SQLite does not check them.
                    yield StoredRecord(
                        number,
                        str(chain),
                        seq if isinstance(seq, int) else -1,
                        str(record_hash),
                        body if isinstance(body, bytes) else str(body).encode(),
                    )
                where, values = "WHERE id > ?", rows[-1][:1]
    except sqlite3.Error as exc:
        why = _NO_RECORDS if "no such table" in str(exc) else exc
        raise CannotRead(f"cannot read {path}: {why}") from None


def _fetch(connection: Connection, path: str, query: str, values: tuple[int, ...]) -> list[Any]:
    try:
        return connection.execute(query, values).fetchall()
    except sqlite3.OperationalError as exc:
        if exc.sqlite_errorname != "SQLITE_READONLY_ROLLBACK":
            raise
    # A process was killed while writing a batch. A writable connection rolls it back.
    with closing(_connect(path, "rw")) as writable:
        writable.execute("SELECT 1 FROM sqlite_master").fetchone()
    return connection.execute(query, values).fetchall()


def _connect(path: str, mode: str) -> Connection:
    url_path = pathname2url(os.path.abspath(path))
    connection = sqlite3.connect(f"file:{url_path}?mode={mode}", uri=True)
    # Text that has been changed to invalid UTF-8 must still be shown.
    connection.text_factory = lambda data: data.decode("utf-8", "replace")
    return connection


def _lines(path: str, last: int | None) -> Iterator[StoredRecord | TornLine]:
    with open(path, "rb") as file:
        numbered = enumerate(file, 1)
        if last is not None:
            numbered = iter(deque(numbered, last))  # type: ignore[assignment]  # also yields pairs
        torn = decoded = 0
        for number, text in numbered:
            if text.strip():
                line = _decode_line(number, text)
                torn += isinstance(line, TornLine)
                decoded += isinstance(line, StoredRecord)
                yield line
    # Killed processes leave single torn lines; a file without any records is something else.
    if torn and not decoded:
        raise CannotRead(f"cannot read {path}: {_NO_RECORDS}")


def _decode_line(number: int, text: bytes) -> StoredRecord | TornLine:
    try:
        line = msgspec.json.decode(text, type=JsonlLine)
    except msgspec.DecodeError:
        start = text.rstrip(b"\r\n")[: len(_LINE_START)]
        if not _LINE_START.startswith(start):
            return TornLine(number, None)
        chain, quote, _ = text[len(_LINE_START) :].decode(errors="replace").partition('"')
        return TornLine(number, chain if quote else "")
    body = bytes(line.event)
    altered = encode_line(line.chain, line.seq, line.hash, body) != text.rstrip(b"\r\n")
    return StoredRecord(number, line.chain, line.seq, line.hash, body, altered)


class ToolStatistics(msgspec.Struct, frozen=True):
    """The counts for one tool, resource, prompt or completion; times are in milliseconds."""

    tool: str
    calls: int
    failures: int
    findings: int
    """How many replies have findings."""
    p50: float
    p95: float
    p99: float


class Summary(msgspec.Struct, frozen=True):
    tools: list[ToolStatistics]
    calls: int
    failures: int
    lost: int
    """How many records could not be written."""
    unchecked: int
    """How many replies were recorded without running the rules."""


class _Tally:
    def __init__(self) -> None:
        self.durations = array("Q")
        self.failures = 0
        self.findings = 0

    def statistics(self, name: str) -> ToolStatistics:
        ordered = sorted(self.durations)
        # Nearest-rank percentiles.
        indexes = (max(-(-len(ordered) * percent // 100), 1) - 1 for percent in (50, 95, 99))
        p50, p95, p99 = (ordered[index] / 1000 for index in indexes)
        return ToolStatistics(name, len(ordered), self.failures, self.findings, p50, p95, p99)


def summarise(events: Iterable[Event]) -> Summary:
    """Return the statistics for all events, with the most-called tool first."""
    tallies: dict[str, _Tally] = {}
    lost = unchecked = 0
    for event in events:
        lost += event.lost
        if not event.is_reply:
            continue
        unchecked += event.unchecked
        name = event.tool if event.kind == "tool" else f"{event.kind} {event.tool}"
        if event.code == TOOL_NOT_FOUND:
            # Unknown tools share one name, because callers can make up any number of names.
            name = _UNKNOWN_TOOLS
        tally = tallies.setdefault(name, _Tally())
        tally.durations.append(max(event.duration_us, 0))
        tally.failures += event.failed
        tally.findings += bool(event.findings)
    rows = [tally.statistics(name) for name, tally in tallies.items()]
    rows.sort(key=lambda row: (-row.calls, row.tool))
    calls = sum(row.calls for row in rows)
    failures = sum(row.failures for row in rows)
    return Summary(rows, calls, failures, lost, unchecked)
