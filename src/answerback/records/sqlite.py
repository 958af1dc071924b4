"""Records in an SQLite file, which several processes may write."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from .place import Place, folder_locked
from .sink import Entry

if TYPE_CHECKING:
    from sqlite3 import Connection

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
# A statement gives up the interpreter a few times, and beside a busy loop it takes milliseconds
# to have it back: few large statements, of few lengths so that each is prepared once.
_ROWS = (1024, 256, 64, 16, 4, 1)
_WAIT_MS = 2000


class SQLite:
    """`SQLite("audit.db")`; the file is made if it is not there."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)

    def __str__(self) -> str:
        return self.path

    def open(self) -> _File:
        with folder_locked(self.path):
            return self._open()

    def _open(self) -> _File:
        import sqlite3

        # As SQLite makes a file everybody may read it, and who called what is not for everybody.
        # One that is there is left alone: closing it here would drop the locks on it that another
        # connection of this process holds.
        with suppress(FileExistsError):
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        connection = sqlite3.connect(self.path, timeout=_WAIT_MS / 1000, isolation_level=None)
        try:
            # All that is committed is in the file itself, so that the file can be moved while it is
            # written. With a write-ahead log it would be in a second file, which stays behind.
            connection.execute("PRAGMA journal_mode = DELETE")
            connection.execute("PRAGMA synchronous = FULL")
            found = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'replies'")
            if found.fetchone() is None:
                connection.executescript(_SCHEMA)
        except BaseException:
            connection.close()
            raise
        return _File(connection, self.path)


class _File:
    def __init__(self, connection: Connection, path: str) -> None:
        from sqlite3 import SQLITE_LIMIT_VARIABLE_NUMBER

        self._connection = connection
        self._path = path
        self._place = Place(path)
        most = connection.getlimit(SQLITE_LIMIT_VARIABLE_NUMBER)
        self._sizes = [size for size in _ROWS if size * 4 <= most]

    def newest(self) -> str:
        rows = self._read("SELECT hash FROM records ORDER BY id DESC LIMIT 1")
        return str(rows[0][0]) if rows else ""

    def holds(self, hashed: str) -> bool:
        latest = "SELECT hash FROM records ORDER BY id DESC LIMIT 10000"
        return bool(self._read(f"SELECT 1 FROM ({latest}) WHERE hash = ?", hashed))

    def write(self, batch: Sequence[Entry]) -> None:
        with self._in_place():
            execute = self._connection.execute
            try:
                execute("BEGIN IMMEDIATE")
                for rows in self._parts(batch):
                    values = [
                        value
                        for each in rows
                        for value in (each.chain, each.seq, each.hash, each.body.decode())
                    ]
                    execute(_INSERT + ",".join([_ROW] * len(rows)), values)
                execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    execute("ROLLBACK")
                # SQLite refuses to write a file that was moved, but does not say that it was.
                self._place.check()
                raise

    def _read(self, query: str, *values: str) -> list[Any]:
        with self._in_place():
            return self._connection.execute(query, values).fetchall()

    @contextmanager
    def _in_place(self) -> Iterator[None]:
        """Keep other processes from making the file anew meanwhile; raises FileMoved if they did.

        SQLite finds a journal by the path of its file. Beside a new file, a connection to the one
        that was moved would take the new file's journal for its own, and undo it in the old file.
        """
        with folder_locked(self._path):
            self._place.check()
            yield

    def _parts(self, batch: Sequence[Entry]) -> Iterator[Sequence[Entry]]:
        start = 0
        for size in self._sizes:
            while len(batch) - start >= size:
                yield batch[start : start + size]
                start += size

    def close(self) -> None:
        self._connection.close()
        self._place.close()
