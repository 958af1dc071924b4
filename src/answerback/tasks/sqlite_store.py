"""Tasks in an SQLite file, which several workers can share and which survives restarts."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import partial
from time import time
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from ..core.limits import TaskLimits
from ..core.log import logger
from ..core.sqlite_file import SQLiteFile, transaction
from ..errors import AnswerbackError, Unavailable
from .task_record import FORMAT, TaskRecord
from .task_store import Change, Claim, ExpiryClock, check_room, checked_repeat
from .transitions import claimed

if TYPE_CHECKING:
    from sqlite3 import Connection, Cursor

T = TypeVar("T")

SCHEMA_VERSION = 1
# Columns for queries are stored next to the record; each write sets them from it.
_SCHEMA = f"""
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS tasks (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    tool TEXT NOT NULL DEFAULT '',
    owner TEXT NOT NULL,
    key TEXT,
    state TEXT NOT NULL,
    worker TEXT NOT NULL,
    lease REAL NOT NULL,
    fence INTEGER NOT NULL,
    expires REAL,
    record BLOB NOT NULL
);
CREATE UNIQUE INDEX IF NOT EXISTS keys ON tasks (owner, key) WHERE key IS NOT NULL;
CREATE INDEX IF NOT EXISTS waiting ON tasks (number) WHERE state = 'working' AND worker = '';
CREATE INDEX IF NOT EXISTS claims ON tasks (worker) WHERE worker <> '';
CREATE INDEX IF NOT EXISTS unfinished ON tasks (owner)
    WHERE state IN ('working', 'input_required') AND owner <> '';
CREATE INDEX IF NOT EXISTS expiry ON tasks (expires) WHERE expires IS NOT NULL;
PRAGMA user_version = {SCHEMA_VERSION};
COMMIT;
"""
# These are added to files from earlier versions when they are opened.
_INDEXES = (
    "CREATE INDEX IF NOT EXISTS owners ON tasks (owner, number)",
    "CREATE INDEX IF NOT EXISTS queues ON tasks (tool, number)"
    " WHERE state = 'working' AND worker = ''",
)
_WAITING = "FROM tasks WHERE state = 'working' AND worker = ''"
# Two queries, because SQLite finds a minimum or a maximum in an index, but not both at once.
_QUEUE = f"{_WAITING} AND tool = ?"
_QUEUE_NUMBERS = f"SELECT (SELECT min(number) {_QUEUE}), (SELECT max(number) {_QUEUE})"
_UNFINISHED = (
    "FROM tasks WHERE state IN ('working', 'input_required') AND owner <> '' AND owner = ?"
)
_READING, _WRITING = "reading", "writing"
_URGENT_POLL, _IDLE_POLL = 0.01, 1.0
"""The polling interval in seconds; `TaskWatch` adds 0.01 between two checks."""

_encode = msgspec.msgpack.Encoder().encode
_records = msgspec.msgpack.Decoder(TaskRecord)


class UnknownTaskFile(AnswerbackError):
    """The file is not a task file, or a later version of Answerback wrote it."""

    code = "UNKNOWN_TASK_FILE"


class SQLiteStore:
    """Stores tasks in a file that only this user can read; creates it if needed.

    Each process opens the file on first use, so a store may be created before workers fork.
    With *durable*, changes wait for the disk and survive a power failure. *clock* is for tests.
    """

    blocks = True

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        durable: bool = True,
        busy: float = 5.0,
        clock: Callable[[], float] = time,
    ) -> None:
        self.path = os.fspath(path)
        self.now = clock
        self._expiry = ExpiryClock(clock)
        self._lock = threading.RLock()
        prepare = partial(_prepare, path=self.path, durable=durable)
        self._file = SQLiteFile(self.path, prepare, busy=busy)
        self._failing: set[str] = set()
        """Which of _READING and _WRITING failed last time."""

    def add(self, task: TaskRecord, limits: TaskLimits) -> TaskRecord:
        return self._write(lambda connection: _add(connection, task, limits))

    def get(self, id: str) -> TaskRecord | None:
        rows = self._read("SELECT record FROM tasks WHERE id = ?", id)
        task = _decode(rows[0][0]) if rows else None
        if rows and task is None:
            logger().error("the record of task %r cannot be read", id)
        return task

    def change(self, id: str, change: Change) -> TaskRecord | None:
        return self._write(lambda connection: _change(connection, id, change, self.now()))

    def claim(
        self, worker: str, lease: float, count: int, tools: Collection[str]
    ) -> list[TaskRecord]:
        if count < 1 or not self._read(f"SELECT 1 {_WAITING} LIMIT 1"):
            return []
        take = partial(claimed, worker=worker, lease=lease)

        def claim_oldest(connection: Connection) -> list[TaskRecord]:
            # Read more rows only to make up for unreadable records.
            rows = connection.execute(f"SELECT record {_WAITING} ORDER BY number")
            oldest = _first(rows, count)
            taken = [_change(connection, task.id, take, self.now()) for task in oldest]
            return [task for task in taken if task is not None]

        return self._write(claim_oldest)

    def renew(self, workers: Collection[str], lease: float) -> None:
        until = self.now() + lease

        # The column's lease is current; the record's is from the last full write.
        def renew_all(connection: Connection) -> None:
            # SQLite uses the claims index only if the query rules out an empty worker.
            query = "UPDATE tasks SET lease = ? WHERE worker = ? AND worker <> ''"
            connection.executemany(query, [(until, worker) for worker in workers])

        self._write(renew_all)

    def claims(self, workers: Collection[str] | None = None) -> list[Claim]:
        rows = self._read("SELECT id, worker, fence, lease FROM tasks WHERE worker <> ''")
        claims = [Claim(*row) for row in rows]
        return [each for each in claims if workers is None or each.worker in workers]

    def page(
        self, owner: str | None, after: str | None, count: int, *, newest_first: bool = False
    ) -> list[TaskRecord]:
        beyond, order = ("<", "DESC") if newest_first else (">", "ASC")
        query, values = "SELECT record FROM tasks WHERE 1", []
        if owner is not None:
            query, values = f"{query} AND owner = ?", [owner]
        if after is not None:
            query += f" AND number {beyond} (SELECT number FROM tasks WHERE id = ?)"
            values.append(after)
        with self._opened(_READING) as connection:
            return _first(connection.execute(f"{query} ORDER BY number {order}", values), count)

    def remove(self, id: str) -> None:
        self._write(lambda connection: connection.execute("DELETE FROM tasks WHERE id = ?", (id,)))

    def remove_expired(self) -> int:
        now = self._expiry.now()
        over = "FROM tasks WHERE expires IS NOT NULL AND expires <= ? AND state <> 'working'"
        if not self._read(f"SELECT 1 {over} LIMIT 1", now):
            return 0
        return self._write(lambda connection: connection.execute(f"DELETE {over}", (now,)).rowcount)

    @property
    def is_failing(self) -> bool:
        return bool(self._failing)

    def try_to_write(self) -> None:
        # The value is written even if it has not changed.
        statement = f"PRAGMA user_version = {SCHEMA_VERSION}"
        self._write(lambda connection: connection.execute(statement))

    def changes(self) -> SQLiteChanges:
        return SQLiteChanges(self)

    def version(self) -> int:
        """Return a number that changes whenever another process may have changed a record."""
        return int(self._read("PRAGMA data_version")[0][0])

    def close(self) -> None:
        with self._lock:
            self._file.close()

    def _read(self, query: str, *values: object) -> list[Any]:
        with self._opened(_READING) as connection:
            return connection.execute(query, values).fetchall()

    def _write(self, change: Callable[[Connection], T]) -> T:
        """Apply a change in one transaction; roll it back if it raises."""
        with self._opened(_WRITING) as connection:
            try:
                with transaction(connection):
                    return change(connection)
            except sqlite3.OperationalError as exc:
                no_room = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE)
                if exc.sqlite_errorcode not in no_room:
                    raise
                # The write-ahead log may have filled the disk; this empties it.
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                with transaction(connection):
                    return change(connection)

    @contextmanager
    def _opened(self, use: str) -> Iterator[Connection]:
        """Lock the store and yield its connection; turn a file error into Unavailable.

        The reason appears only in the log.
        """
        with self._lock:
            try:
                yield self._file.connection()
            except (sqlite3.Error, OSError) as exc:
                if use not in self._failing:
                    logger().error("the task file %r failed: %s", self.path, exc)
                self._failing.add(use)
                raise Unavailable(
                    "The tasks cannot be read or written at the moment",
                    retryable=True,
                    retry_after=5,
                ) from exc
            self._failing -= {use, _READING}


class SQLiteChanges:
    """Polls for changes by another process; it cannot tell which record changed."""

    def __init__(self, store: SQLiteStore) -> None:
        self._store = store
        self._version = -1
        self._woken = threading.Event()

    def wait(self, seconds: float, *, is_urgent: bool) -> Collection[str] | None:
        self._woken.wait(_URGENT_POLL if is_urgent else min(_IDLE_POLL, seconds))
        # A later wake-up ends the next wait.
        self._woken.clear()
        before, self._version = self._version, self._store.version()
        return () if self._version == before else None

    def wake(self) -> None:
        self._woken.set()


def _prepare(connection: Connection, *, path: str, durable: bool) -> None:
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    is_foreign = bool(tables) and not {"fence", "record"} <= _columns_of(connection)
    if is_foreign or version > SCHEMA_VERSION:
        reason = "another program wrote it" if is_foreign else "a later version wrote it"
        raise UnknownTaskFile(f"{path!r} is not a task file that this version can read: {reason}")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
    if connection.execute("PRAGMA user_version").fetchone()[0] == 0:
        connection.executescript(_SCHEMA)
    if "tool" not in _columns_of(connection):
        with transaction(connection):
            # Another process may have added it in the meantime. The file's waiting tasks are in no
            # tool's queue.
            if "tool" not in _columns_of(connection):
                connection.execute("ALTER TABLE tasks ADD COLUMN tool TEXT NOT NULL DEFAULT ''")
    for index in _INDEXES:
        connection.execute(index)


def _columns_of(connection: Connection) -> set[str]:
    return {row[1] for row in connection.execute("PRAGMA table_info(tasks)")}


def _add(connection: Connection, task: TaskRecord, limits: TaskLimits) -> TaskRecord:
    if task.idempotency_key is not None:
        query = "SELECT record FROM tasks WHERE owner = ? AND key = ?"
        found = connection.execute(query, (task.owner, task.idempotency_key)).fetchone()
        known = None if found is None else _decode(found[0])
        if known is not None:
            return checked_repeat(known, task)
        if found is not None:
            raise Unavailable("The call that has this idempotency key cannot be read")
    check_room(task, _Usage(connection), limits)
    connection.execute(
        "INSERT INTO tasks (id, tool, owner, key, state, worker, lease, fence, expires, record)"
        " VALUES (?,?,?,?,?,?,?,?,?,?)",
        (task.id, task.tool, task.owner, task.idempotency_key, *_columns(task)),
    )
    return task


class _Usage:
    """Counts the tasks in a file, reading no more rows than needed to check a limit."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def bytes_with(self, task: TaskRecord) -> int:
        # The size of the file, without its free pages.
        names = ("page_count", "freelist_count", "page_size")
        rows = (self._connection.execute(f"PRAGMA {name}").fetchone()[0] for name in names)
        pages, free, size = rows
        return int((pages - free) * size) + len(task.arguments)

    def has_queued(self, tool: str, count: int) -> bool:
        # Each task has its own number, so there cannot be more waiting tasks than numbers from
        # the oldest to the newest. That is usually below the limit, so no rows need counting.
        oldest, newest = self._connection.execute(_QUEUE_NUMBERS, (tool, tool)).fetchone()
        if oldest is None or newest - oldest + 1 < count:
            return False
        return self._are_at_least(count, _QUEUE, tool)

    def has_unfinished(self, owner: str, count: int) -> bool:
        return self._are_at_least(count, _UNFINISHED, owner)

    def _are_at_least(self, count: int, query: str, *values: object) -> bool:
        row = f"SELECT 1 {query} LIMIT 1 OFFSET ?"
        return self._connection.execute(row, (*values, count - 1)).fetchone() is not None


def _change(connection: Connection, id: str, change: Change, now: float) -> TaskRecord | None:
    found = connection.execute("SELECT record FROM tasks WHERE id = ?", (id,)).fetchone()
    before = None if found is None else _decode(found[0])
    changed = None if before is None else change(before, now)
    if changed is not None:
        connection.execute(
            "UPDATE tasks SET state = ?, worker = ?, lease = ?, fence = ?, expires = ?, record = ?"
            " WHERE id = ?",
            (*_columns(changed), id),
        )
    return changed


def _decode(record: bytes) -> TaskRecord | None:
    """Return the task; None if the record is damaged, or from a later version."""
    try:
        task = _records.decode(record)
    except msgspec.MsgspecError:
        return None
    return task if task.format <= FORMAT else None


def _first(rows: Cursor, count: int) -> list[TaskRecord]:
    """Return the first *count* readable tasks."""
    found: list[TaskRecord] = []
    for row in rows:
        if len(found) == count:
            break
        task = _decode(row[0])
        if task is not None:
            found.append(task)
    rows.close()
    return found


def _columns(task: TaskRecord) -> tuple[Any, ...]:
    return (task.state, task.worker, task.lease, task.fence, task.expires, _encode(task))
