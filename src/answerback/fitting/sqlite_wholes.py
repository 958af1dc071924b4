"""Whole replies in SQLite: in a temporary database of this process, or in a file of all workers.

SQLite keeps a temporary database in memory up to a size, and beyond it in a file that has no name
and is gone when the process ends, even if it is killed.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

from ..core.files import make_private
from ..core.limits import ReplyLimits
from ..errors import Unavailable
from .whole_store import KeptReply, Owner, surplus, surplus_of_all

_MEMORY = 8 * 1024
"""The kilobytes that stay in memory."""
_BUSY_SECONDS = 5.0
# The bodies have their own table, so that counting the others reads little.
_SCHEMA = """
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS wholes (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    account TEXT NOT NULL,
    holder TEXT NOT NULL,
    user TEXT NOT NULL,
    session TEXT NOT NULL,
    tool TEXT NOT NULL,
    expires REAL NOT NULL,
    size INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS bodies (number INTEGER PRIMARY KEY, body BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS accounts ON wholes (account, number, size);
CREATE INDEX IF NOT EXISTS sessions ON wholes (session) WHERE session <> '';
CREATE INDEX IF NOT EXISTS expiry ON wholes (expires);
CREATE TRIGGER IF NOT EXISTS removed AFTER DELETE ON wholes
    BEGIN DELETE FROM bodies WHERE number = old.number; END;
COMMIT;
"""
# The first to go are the oldest of the users and addresses that hold most.
_IN_ORDER_OF_REMOVAL = (
    "SELECT number, size FROM (SELECT number, size,"
    " sum(size) OVER (PARTITION BY holder ORDER BY number DESC) AS held FROM wholes)"
    " ORDER BY held DESC, number"
)


class SQLiteWholes:
    """Each process opens it on first use. Without a *path* every process has its own.

    *clock* is for tests.
    """

    def __init__(self, path: str = "", clock: Callable[[], float] = monotonic) -> None:
        self._path = path
        self._now = clock
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._pid = 0

    @property
    def blocks(self) -> bool:
        return bool(self._path)

    def add(self, id: str, body: bytes, owner: Owner, limits: ReplyLimits) -> None:
        now, size = self._now(), len(body)
        with self._transaction() as connection:
            connection.execute("DELETE FROM wholes WHERE expires <= ?", (now,))
            again = "UPDATE wholes SET expires = ? WHERE id = ?"
            if connection.execute(again, (now + limits.retention, id)).rowcount:
                return
            _make_room(connection, owner.account, size, limits)
            row = (id, owner.account, owner.holder, owner.user, owner.session, owner.tool)
            added = connection.execute(
                "INSERT INTO wholes (id, account, holder, user, session, tool, expires, size)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (*row, now + limits.retention, size),
            )
            connection.execute("INSERT INTO bodies VALUES (?, ?)", (added.lastrowid, body))

    def get(self, id: str, user: str, *parts: slice) -> KeptReply | None:
        with self._opened() as connection:
            # One view of both tables: another process may remove the whole meanwhile.
            connection.execute("BEGIN")
            try:
                row = connection.execute(
                    "SELECT tool, number FROM wholes"
                    " WHERE id = ? AND user IN ('', ?) AND expires > ?",
                    (id, user, self._now()),
                ).fetchone()
                if row is None:
                    return None
                tool, number = row
                with connection.blobopen("bodies", "body", number, readonly=True) as body:
                    found = (body[part] for part in parts or (slice(None),))
                    return KeptReply(tool, b"".join(found))  # type: ignore[arg-type]  # not int
            finally:
                connection.execute("COMMIT")

    def forget_session(self, session: str) -> None:
        with self._transaction() as connection:
            connection.execute("DELETE FROM wholes WHERE session = ? AND session <> ''", (session,))

    def remove_expired(self) -> None:
        if self._connection is not None:
            with self._transaction() as connection:
                connection.execute("DELETE FROM wholes WHERE expires <= ?", (self._now(),))

    def close(self) -> None:
        with self._lock:
            if self._connection is not None and self._pid == os.getpid():
                self._connection.close()
            self._connection = None

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._opened() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        """Yield the connection of this process; raises Unavailable."""
        with self._lock:
            try:
                if self._connection is None or self._pid != os.getpid():
                    self._connection = self._open()
                    self._pid = os.getpid()
                yield self._connection
            except sqlite3.Error as exc:
                raise Unavailable(f"Whole replies cannot be kept: {exc}") from exc

    def _open(self) -> sqlite3.Connection:
        if self._path:
            make_private(self._path)
        connection = sqlite3.connect(
            self._path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        # Nothing here needs to survive a crash. What is removed is overwritten.
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("PRAGMA secure_delete = ON")
        connection.execute(f"PRAGMA cache_size = -{_MEMORY}")
        connection.execute(f"PRAGMA journal_mode = {'WAL' if self._path else 'MEMORY'}")
        connection.executescript(_SCHEMA)
        return connection


def _make_room(
    connection: sqlite3.Connection, account: str, size: int, limits: ReplyLimits
) -> None:
    rows = connection.execute(
        "SELECT number, size FROM wholes WHERE account = ? ORDER BY number", (account,)
    ).fetchall()
    _remove(connection, surplus(rows, size, limits.per_owner, limits.owner_bytes))
    count, held = connection.execute("SELECT count(*), total(size) FROM wholes").fetchone()
    if count >= limits.count or held + size > limits.total_bytes:
        rows = connection.execute(_IN_ORDER_OF_REMOVAL).fetchall()
        _remove(connection, surplus_of_all(rows, size, limits))


def _remove(connection: sqlite3.Connection, numbers: list[int]) -> None:
    connection.executemany("DELETE FROM wholes WHERE number = ?", [(each,) for each in numbers])
