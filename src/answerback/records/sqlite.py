"""Records in an SQLite file that several processes may write to."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from sqlite3 import SQLITE_LIMIT_VARIABLE_NUMBER, Connection
from typing import Any

from ..core.sqlite_file import SQLiteFile, transaction
from .event import Entry, folder_lock

_SCHEMA = """
CREATE TABLE IF NOT EXISTS records (
    id INTEGER PRIMARY KEY, chain TEXT NOT NULL, seq INTEGER NOT NULL,
    hash TEXT NOT NULL, body TEXT NOT NULL
);
CREATE VIEW IF NOT EXISTS replies AS SELECT
    id, chain, seq,
    json_extract(body, '$.event') AS event,
    json_extract(body, '$.time') AS time,
    json_extract(body, '$.kind') AS kind,
    json_extract(body, '$.tool') AS tool,
    json_extract(body, '$.wire') AS wire,
    json_extract(body, '$.caller') AS caller,
    json_extract(body, '$.duration_us') AS duration_us,
    json_extract(body, '$.size') AS size,
    json_extract(body, '$.code') AS code,
    json_extract(body, '$.reference') AS reference
FROM records WHERE json_extract(body, '$.kind') IS NOT NULL;
"""
_INSERT = "INSERT INTO records (chain, seq, hash, body) VALUES "
_ROW = "(?,?,?,?)"
# Each statement releases the GIL a few times, and getting it back takes milliseconds while an event
# loop is busy. So a batch is written with a few large statements, in only a few sizes, so that
# each statement is prepared only once.
_STATEMENT_ROWS = (1024, 256, 64, 16, 4, 1)


class SQLite:
    """A sink that writes an SQLite file: `SQLite("audit.db")`.

    *path* is the file, which is created if needed.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)

    def __str__(self) -> str:
        return self.path

    def open(self) -> _SqliteStore:
        return _SqliteStore(self.path)


def _prepare(connection: Connection) -> None:
    # In this mode all committed records are in the file itself, so the file can be moved while
    # servers write to it. With a write-ahead log, some would be in a second file.
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.execute("PRAGMA synchronous = FULL")
    found = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'replies'")
    if found.fetchone() is None:
        connection.executescript(_SCHEMA)


class _SqliteStore:
    def __init__(self, path: str) -> None:
        self._file = SQLiteFile(path, _prepare, busy=2.0)
        with self._locked_in_place() as connection:
            max_variables = connection.getlimit(SQLITE_LIMIT_VARIABLE_NUMBER)
        self._statement_rows = [rows for rows in _STATEMENT_ROWS if rows * 4 <= max_variables]

    def newest(self) -> str:
        rows = self._read("SELECT hash FROM records ORDER BY id DESC LIMIT 1")
        return str(rows[0][0]) if rows else ""

    def holds(self, record_hash: str) -> bool:
        latest = "SELECT hash FROM records ORDER BY id DESC LIMIT 10000"
        return bool(self._read(f"SELECT 1 FROM ({latest}) WHERE hash = ?", record_hash))

    def write(self, batch: Sequence[Entry]) -> None:
        with self._locked_in_place() as connection, transaction(connection):
            start = 0
            for count in self._statement_rows:
                while len(batch) - start >= count:
                    values = [
                        value
                        for each in batch[start : start + count]
                        for value in (each.chain, each.seq, each.hash, each.body.decode())
                    ]
                    connection.execute(_INSERT + ",".join([_ROW] * count), values)
                    start += count

    def _read(self, query: str, *values: str) -> list[Any]:
        with self._locked_in_place() as connection:
            return connection.execute(query, values).fetchall()

    @contextmanager
    def _locked_in_place(self) -> Iterator[Connection]:
        """Lock the folder, so that no other process creates a new file; raise FileMoved if one did.

        SQLite finds the journal by the database's path. A connection to a moved file would
        find the journal of the new file at that path, and roll it back into the old file.
        """
        with folder_lock(self._file.path):
            try:
                yield self._file.connection()
            except BaseException:
                # SQLite refuses to write to a moved file, but with an error that does not say so.
                self._file.check_place()
                raise

    def close(self) -> None:
        self._file.close()
