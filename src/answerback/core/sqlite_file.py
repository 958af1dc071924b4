"""A private SQLite file: opened in each process, and never written to where it was moved from."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from sqlite3 import Connection
from typing import TypeAlias

from .files import FileIdentity, FileMoved, make_private

_Prepare: TypeAlias = Callable[[Connection], None]


class SQLiteFile:
    """One process's connection to a file that only this user can read; created if needed.

    The file is opened on first use and again after a fork; *prepare* is called with each new
    connection. *busy* is how many seconds to wait for another process's lock. A temporary file may
    be removed while it is used, and needs no path. Not thread-safe: callers hold a lock.
    """

    def __init__(
        self, path: str, prepare: _Prepare, *, busy: float = 5.0, is_temporary: bool = False
    ) -> None:
        self.path = path
        self._prepare = prepare
        self._busy = busy
        self._is_temporary = is_temporary
        self._pid = 0
        self._connection: Connection | None = None
        self._identity: FileIdentity | None = None
        self._has_log = False
        """Whether acknowledged writes may be in a write-ahead log, beside the file."""
        self._was_moved = False

    @property
    def is_open(self) -> bool:
        return self._connection is not None

    def connection(self) -> Connection:
        """Return the open connection; raises FileMoved, OSError or sqlite3.Error."""
        if self._pid != os.getpid():
            self._forget()
            self._pid = os.getpid()
        self.check_place()
        if self._connection is not None:
            return self._connection
        # A thread that is shutting down must not create a new file where the moved one was.
        if self._was_moved and not os.path.exists(self.path):
            raise FileMoved("the file was moved or removed before it was closed")
        self._was_moved = False
        if self.path:
            # SQLite creates files that every user can read.
            make_private(self.path)
        connection = sqlite3.connect(
            self.path, timeout=self._busy, isolation_level=None, check_same_thread=False
        )
        try:
            self._prepare(connection)
            self._has_log = connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        if self._identity is None and not self._is_temporary:
            self._identity = FileIdentity(self.path)
        return connection

    def check_place(self) -> None:
        """Raise FileMoved if the open file is no longer at its path.

        All acknowledged writes are then copied from the log into the moved file, which is closed;
        SQLite itself would leave the log behind. The file is reopened if it is moved back.
        """
        try:
            if self._identity is not None:
                self._identity.check()
        except FileMoved:
            # Without a log, the connection must not even read: it would find the journal of a new
            # file at the path, and roll it back into the moved file.
            if self._connection is not None and self._has_log:
                row = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
                if row[0] == 0:  # No other connection got in the way.
                    self._connection.close()
                    self._connection = None
            raise

    def close(self) -> None:
        if self._pid == os.getpid():
            try:
                self.check_place()
            except FileMoved:
                self._was_moved = True
            except sqlite3.Error:
                pass
            if self._connection is not None:
                self._connection.close()
        self._forget()

    def _forget(self) -> None:
        if self._pid != os.getpid():
            # A connection must not be used after a fork, and closing it would drop the parent's
            # locks, so it is kept but never used again.
            self._inherited = self._connection
        self._connection = None
        if self._identity is not None:
            self._identity.close()
            self._identity = None


@contextmanager
def transaction(connection: Connection) -> Iterator[None]:
    """Write in one transaction, which is rolled back if the block raises."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # If the disk is full, SQLite has already ended the transaction.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
