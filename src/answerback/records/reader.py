"""Reads what was recorded, from an SQLite file or from lines of JSON."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING

import msgspec

from ..errors import AnswerbackError
from .event import Event
from .jsonl import Line

if TYPE_CHECKING:
    from sqlite3 import Connection

_NO_RECORDS = "there are no records in it"
_SQLITE = b"SQLite format 3\0"


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

    query = "SELECT id, chain, seq, hash, body FROM records ORDER BY id"
    if last is not None:
        query = f"SELECT * FROM ({query} DESC LIMIT {last}) ORDER BY id"
    try:
        with closing(_connect(path)) as connection:
            for place, chain, seq, hashed, body in connection.execute(query):
                yield Kept(place, str(chain), _number(seq), str(hashed), _bytes(body))
    except sqlite3.Error as exc:
        why = _NO_RECORDS if "no such table" in str(exc) else exc
        raise CannotRead(f"cannot read {path}: {why}") from None


def _connect(path: str) -> Connection:
    import sqlite3
    from urllib.request import pathname2url

    where = pathname2url(os.path.abspath(path))
    connection = sqlite3.connect(f"file:{where}?mode=ro", uri=True)
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
