"""Reads what was recorded, from an SQLite file or from lines of JSON."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any

import msgspec

from ..errors import AnswerbackError
from .event import Event
from .jsonl import Line

if TYPE_CHECKING:
    from sqlite3 import Connection

_NO_RECORDS = "there are no records in it"
_SQLITE = b"SQLite format 3\0"
_SLICE = 256


class CannotRead(AnswerbackError):
    code = "CANNOT_READ"


class Kept(msgspec.Struct, frozen=True):
    """A record as it is kept. Nothing about it is taken for true."""

    place: int
    """The row's id, or the number of the line."""
    chain: str
    seq: int
    hash: str
    body: bytes


class Torn(msgspec.Struct, frozen=True):
    """A line that cannot be read: who wrote it was stopped in the middle."""

    place: int


def read(path: str, *, last: int | None = None) -> Iterator[Kept | Torn]:
    """The records in the order they were written, or the *last* of them; raises CannotRead."""
    try:
        with open(path, "rb") as file:
            is_sqlite = file.read(len(_SQLITE)) == _SQLITE
    except OSError as exc:
        raise CannotRead(f"cannot read {path}: {exc.strerror or exc}") from None
    yield from _rows(path, last) if is_sqlite else _lines(path, last)


def decode(kept: Kept) -> Event | None:
    """The event, or None if the record is none."""
    try:
        return msgspec.json.decode(kept.body, type=Event)
    except msgspec.DecodeError:
        return None


def _rows(path: str, last: int | None) -> Iterator[Kept]:
    import sqlite3

    try:
        with closing(_connect(path, "ro")) as connection:
            # In slices, because an open query keeps the servers that write from writing.
            after = _before_last(connection, path, last)
            while rows := _fetch(connection, path, *_slice_after(after)):
                for place, chain, seq, hashed, body in rows:
                    yield Kept(place, str(chain), _number(seq), str(hashed), _bytes(body))
                after = rows[-1][0]
    except sqlite3.Error as exc:
        why = _NO_RECORDS if "no such table" in str(exc) else exc
        raise CannotRead(f"cannot read {path}: {why}") from None


def _before_last(connection: Connection, path: str, last: int | None) -> int | None:
    """The id of the row before the *last* ones; None if these are all."""
    if last is None:
        return None
    query = "SELECT id FROM records ORDER BY id DESC LIMIT 1 OFFSET ?"
    rows = _fetch(connection, path, query, (last,))
    return rows[0][0] if rows else None


def _slice_after(after: int | None) -> tuple[str, tuple[int, ...]]:
    where, values = ("", ()) if after is None else ("WHERE id > ?", (after,))
    columns = "id, chain, seq, hash, body"
    return f"SELECT {columns} FROM records {where} ORDER BY id LIMIT {_SLICE}", values


def _fetch(connection: Connection, path: str, query: str, values: tuple[int, ...]) -> list[Any]:
    import sqlite3

    try:
        return connection.execute(query, values).fetchall()
    except sqlite3.OperationalError as exc:
        if exc.sqlite_errorname != "SQLITE_READONLY_ROLLBACK":
            raise
    # A process was killed while it wrote. Reading the file as one who may write takes back the
    # half-written batch.
    with closing(_connect(path, "rw")) as writable:
        writable.execute("SELECT 1 FROM sqlite_master").fetchone()
    return connection.execute(query, values).fetchall()


def _connect(path: str, mode: str) -> Connection:
    import sqlite3
    from urllib.request import pathname2url

    where = pathname2url(os.path.abspath(path))
    connection = sqlite3.connect(f"file:{where}?mode={mode}", uri=True)
    # Whatever stands in a column, it is shown and not stumbled over.
    connection.text_factory = lambda data: data.decode("utf-8", "replace")
    return connection


def _number(value: object) -> int:
    return value if isinstance(value, int) else -1


def _bytes(value: object) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


def _lines(path: str, last: int | None) -> Iterator[Kept | Torn]:
    with open(path, "rb") as file:
        numbered = enumerate(file, 1)
        if last is not None:
            from collections import deque

            numbered = iter(deque(numbered, last))  # type: ignore[assignment]  # read alike
        torn = kept = 0
        for place, line in numbered:
            if line.strip():
                found = _line(place, line)
                torn += isinstance(found, Torn)
                kept += isinstance(found, Kept)
                yield found
    # A process can be stopped in the middle of a line, but not of every line.
    if torn and not kept:
        raise CannotRead(f"cannot read {path}: {_NO_RECORDS}")


def _line(place: int, text: bytes) -> Kept | Torn:
    try:
        line = msgspec.json.decode(text, type=Line)
    except msgspec.DecodeError:
        return Torn(place)
    return Kept(place, line.chain, line.seq, line.hash, bytes(line.event))
