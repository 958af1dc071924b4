"""Tasks in PostgreSQL, shared by servers and workers on several machines."""

from __future__ import annotations

import threading
from collections.abc import Collection
from time import monotonic
from typing import TYPE_CHECKING, Any

import msgspec

from ..core.limits import TaskLimits
from ..core.log import logger
from ..errors import Unavailable
from ..state.database import NOW, NOW_ONCE, Database
from ..state.sealing import CannotOpen, place_of
from ..state.shared import Notices, SharedState
from .task_record import FORMAT, TaskRecord
from .task_store import Change, Claim, check_room, checked_repeat
from .transitions import claimed

if TYPE_CHECKING:
    from psycopg import Cursor

    Row = tuple[Any, ...]

_TOPIC = "task"
_POLL = 2.0
"""How often, in seconds, a process looks for changes even without a notice."""
_REFRESH = 1.0
"""How many seconds to wait before reading a queue's length and the table's size again."""
_BATCH, _BATCHES = 1_000, 10
"""How many expired records one transaction removes, and the maximum transactions per cleanup."""
_UNSERVED = 86_400
"""How many seconds past its expiry a task waits for a worker that has its tool."""
_MAX_ROW = 2_000
"""The maximum size of a row in bytes; PostgreSQL moves longer values to a separate table."""
_MAX_NOTED = 1_000
"""The maximum number of unreadable records that one process logs."""
_MAX_CHANGED = 1_000
"""The maximum number of unread changed ids; beyond that, any task may have changed."""
_MAX_ID = 100
_EXPIRY_LOCK = 0x616E7378
_COLUMNS = "id, owner, lease, record, arguments, answers, result"
_WAITING = "FROM answerback.tasks WHERE app = %s AND state = 'working' AND worker = ''"
# Goes from tool to tool in the queue index, taking the oldest tasks of each: a plain `tool =
# ANY(…)` ordered by number would read the waiting tasks of all other tools. With BETWEEN and
# ordering by tool, the planner cannot use the number index instead.
_OLDEST = f"""
WITH RECURSIVE queues (tool) AS (
    (SELECT tool {_WAITING} ORDER BY tool LIMIT 1)
    UNION ALL
    SELECT (SELECT tool {_WAITING} AND tool > queues.tool ORDER BY tool LIMIT 1)
    FROM queues WHERE tool IS NOT NULL
)
SELECT number FROM queues, LATERAL (
    SELECT number {_WAITING} AND tasks.tool BETWEEN queues.tool AND queues.tool
    AND number > %s AND substring(record from 1 for 4) = ANY(%s)
    ORDER BY tasks.tool, number LIMIT %s
) AS oldest WHERE tool = ANY(%s) ORDER BY number LIMIT %s
"""
_EXPIRED = (
    f"expires <= {NOW_ONCE} AND (state <> 'working'"
    # No worker has its tool, or no worker can read it.
    f" OR expires <= {NOW_ONCE} - {_UNSERVED} AND lease <= {NOW_ONCE} - {_UNSERVED})"
)

_encode = msgspec.msgpack.Encoder().encode
_records = msgspec.msgpack.Decoder(TaskRecord)
_replace = msgspec.structs.replace


class PostgresStore:
    """Stores one app's tasks, with times from the database's clock.

    The large parts of a record, and everything written by a caller or a tool, are sealed.
    """

    blocks = True

    def __init__(self, shared: SharedState, app: str) -> None:
        self._database = shared.database
        self._notices = shared.notices
        self._sealer = shared.sealer
        self._fingerprints = shared.fingerprints
        self._app = app
        self._estimates = _Estimates(self._database, app)
        self._unreadable: set[str] = set()
        """Tasks with unreadable records; each is logged once."""

    def now(self) -> float:
        return self._database.now()

    def add(self, task: TaskRecord, limits: TaskLimits) -> TaskRecord:
        self._estimates.refresh(task.tool, limits.queue)
        # Before the transaction, because the first fingerprint reads the key from the database.
        owner, key = self._owner(task.owner), None
        if task.idempotency_key is not None:
            key = self._fingerprints.of(place_of("key", task.owner, task.idempotency_key))
        with self._database.transaction() as cursor:
            found = self._with_key(cursor, owner, key)
            if found is not None:
                return checked_repeat(found, task)
            check_room(task, _Usage(self._estimates, cursor, owner), limits)
            # Base the task's times on the database's clock, which all workers share.
            cursor.execute(f"SELECT {NOW}")
            now = float(_first(cursor)[0])
            later = now - task.created
            task = _replace(
                task,
                created=now,
                changed=now,
                expires=None if task.expires is None else task.expires + later,
                lease=task.lease + later if task.worker else 0.0,
            )
            cursor.execute(
                "INSERT INTO answerback.tasks (id, app, tool, owner, key, state,"
                " worker, lease, fence, expires, record, arguments, answers)"
                " VALUES (%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s)"
                " ON CONFLICT (app, owner, key) WHERE key IS NOT NULL DO NOTHING",
                (
                    *(task.id, self._app, task.tool, owner, key),
                    *self._small(task),
                    self._seal(task, "arguments", task.arguments),
                    self._seal(task, "answers", _encode(task.answers)),
                ),
            )
            is_added = cursor.rowcount == 1
        if not is_added:
            # Another host has just added a call with this key.
            return self.add(task, limits)
        self._tell(task.id)
        return task

    def get(self, id: str) -> TaskRecord | None:
        if not _may_exist(id):
            return None
        rows = self._database.rows(
            f"SELECT {_COLUMNS} FROM answerback.tasks WHERE app = %s AND id = %s", self._app, id
        )
        return self._read(rows[0]) if rows else None

    def change(self, id: str, change: Change) -> TaskRecord | None:
        if not _may_exist(id):
            return None
        with self._database.transaction() as cursor:
            changed = self._change(cursor, id, change)
        if changed is not None:
            self._tell(id)
        return changed

    def claim(
        self, worker: str, lease: float, count: int, tools: Collection[str]
    ) -> list[TaskRecord]:
        def oldest(last: int, wanted: int) -> tuple[object, ...]:
            keys = list(self._sealer.keys)
            return (*[self._app] * 3, last, keys, wanted, list(tools), wanted)

        # Most attempts find nothing, and need no transaction.
        found = self._database.rows(_OLDEST, *oldest(0, count)) if count > 0 else []
        taken: list[TaskRecord] = []
        if not found:
            return taken
        with self._database.transaction() as cursor:
            while found:
                wanted = count - len(taken)
                cursor.execute(
                    f"SELECT {NOW}, {_COLUMNS} {_WAITING} AND number = ANY(%s)"
                    " ORDER BY number FOR UPDATE SKIP LOCKED",
                    (self._app, [number for (number,) in found]),
                )
                for now, *row in cursor.fetchall():
                    task = self._read(tuple(row))
                    claim = task and claimed(task, now, worker=worker, lease=lease)
                    if claim is not None:
                        self._write(cursor, claim)
                        taken.append(claim)
                if len(found) < wanted or len(taken) == count:
                    break
                # Other workers took some of them, or some cannot be read: look past them.
                cursor.execute(_OLDEST, oldest(found[-1][0], count - len(taken)))
                found = cursor.fetchall()
        return taken

    def renew(self, workers: Collection[str], lease: float) -> None:
        # The column's lease is current; the record's is from the last full write.
        with self._database.transaction(durable=False) as cursor:
            cursor.execute(
                f"UPDATE answerback.tasks SET lease = {NOW} + %s"
                " WHERE worker = ANY(%s) AND worker <> ''",
                (lease, list(workers)),
            )

    def claims(self, workers: Collection[str] | None = None) -> list[Claim]:
        query = "SELECT id, worker, fence, lease FROM answerback.tasks WHERE worker <> ''"
        if workers is None:
            rows = self._database.rows(f"{query} AND app = %s", self._app)
        else:
            rows = self._database.rows(f"{query} AND worker = ANY(%s)", list(workers))
        return [Claim(*row) for row in rows]

    def page(
        self, owner: str | None, after: str | None, count: int, *, newest_first: bool = False
    ) -> list[TaskRecord]:
        if after is not None and not _may_exist(after):
            return []
        beyond, order = ("<", "DESC") if newest_first else (">", "ASC")
        query, values = f"SELECT {_COLUMNS} FROM answerback.tasks WHERE app = %s", [self._app]
        if owner is not None:
            query, values = f"{query} AND owner = %s", [*values, self._owner(owner)]
        if after is not None:
            query += f" AND number {beyond} (SELECT number FROM answerback.tasks WHERE id = %s)"
            values.append(after)
        rows = self._database.rows(f"{query} ORDER BY number {order} LIMIT {int(count)}", *values)
        return [task for task in map(self._read, rows) if task is not None]

    def remove(self, id: str) -> None:
        if _may_exist(id):
            self._database.rows(
                "DELETE FROM answerback.tasks WHERE app = %s AND id = %s", self._app, id
            )

    def remove_expired(self) -> int:
        # In index order, because otherwise the planner expects a match in any row.
        query = f"SELECT 1 FROM answerback.tasks WHERE {_EXPIRED} ORDER BY expires LIMIT 1"
        if not self._database.rows(query):
            return 0
        removed = 0
        for _ in range(_BATCHES):
            with self._database.transaction(durable=False) as cursor:
                # One process removes them; the others do not wait for it.
                cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", (_EXPIRY_LOCK,))
                if not _first(cursor)[0]:
                    break
                cursor.execute(
                    "DELETE FROM answerback.tasks WHERE number IN"
                    f" (SELECT number FROM answerback.tasks WHERE {_EXPIRED}"
                    f" ORDER BY expires LIMIT {_BATCH} FOR UPDATE SKIP LOCKED)"
                )
                batch = cursor.rowcount
            removed += batch
            if batch < _BATCH:
                break
        return removed

    @property
    def is_failing(self) -> bool:
        return self._database.is_failing

    def try_to_write(self) -> None:
        with self._database.transaction() as cursor:
            cursor.execute("UPDATE answerback.schema_version SET version = version")

    def changes(self) -> PostgresChanges:
        return PostgresChanges(self._notices)

    def close(self) -> None:
        """Do nothing: the server closes the state."""

    def _owner(self, owner: str) -> str:
        """Return the value of the owner column; empty if there is no owner."""
        return self._fingerprints.of(place_of("owner", owner)).hex() if owner else ""

    def _with_key(self, cursor: Cursor[Row], owner: str, key: bytes | None) -> TaskRecord | None:
        """Return the record with this idempotency key, if there is one."""
        if key is None:
            return None
        cursor.execute(
            f"SELECT {_COLUMNS} FROM answerback.tasks WHERE app = %s AND owner = %s AND key = %s",
            (self._app, owner, key),
        )
        row = cursor.fetchone()
        if row is None:
            return None
        known = self._read(row)
        if known is None:
            raise Unavailable("The call with this idempotency key cannot be read")
        return known

    def _change(self, cursor: Cursor[Row], id: str, change: Change) -> TaskRecord | None:
        cursor.execute(
            f"SELECT {_COLUMNS}, {NOW} FROM answerback.tasks WHERE app = %s AND id = %s FOR UPDATE",
            (self._app, id),
        )
        row = cursor.fetchone()
        before = None if row is None else self._read(row[:-1])
        if row is None or before is None:
            return None
        after = change(before, row[-1])
        if after is None:
            return None
        self._write(cursor, after)
        # The large columns are written only when they change.
        written = {}
        if after.answers != before.answers:
            written["answers"] = _encode(after.answers)
        if after.result is not None and after.result != before.result:
            written["result"] = after.result
        for name, value in written.items():
            cursor.execute(
                f"UPDATE answerback.tasks SET {name} = %s WHERE id = %s".encode(),
                (self._seal(after, name, value), id),
            )
        return after

    def _write(self, cursor: Cursor[Row], task: TaskRecord) -> None:
        cursor.execute(
            "UPDATE answerback.tasks SET state = %s, worker = %s, lease = %s, fence = %s,"
            " expires = %s, record = %s WHERE id = %s",
            (*self._small(task), task.id),
        )

    def _small(self, task: TaskRecord) -> tuple[Any, ...]:
        """Return the columns that every change writes."""
        small = _replace(task, arguments=b"", answers={}, result=None)
        record = self._seal(task, "record", _encode(small))
        return (task.state, task.worker, task.lease, task.fence, task.expires, record)

    def _seal(self, task: TaskRecord, column: str, value: bytes) -> bytes:
        return self._sealer.seal(
            value, place_of(self._app, self._owner(task.owner), task.id, column)
        )

    def _read(self, row: Row) -> TaskRecord | None:
        """Return the task; None if the record cannot be read."""
        id, owner, lease, record, arguments, answers, result = row

        def opened(column: str, sealed: bytes | None) -> bytes | None:
            if sealed is None:
                return None
            return self._sealer.open(bytes(sealed), place_of(self._app, owner, id, column))

        try:
            task = _records.decode(opened("record", record) or b"")
            if task.format > FORMAT:
                raise CannotOpen("a later version wrote it")
            given = opened("answers", answers)
            return _replace(
                task,
                lease=lease,
                arguments=opened("arguments", arguments) or b"",
                answers={} if given is None else msgspec.msgpack.decode(given),
                result=opened("result", result),
            )
        except (msgspec.MsgspecError, CannotOpen) as exc:
            if id not in self._unreadable and len(self._unreadable) < _MAX_NOTED:
                self._unreadable.add(id)
                logger().error("the record of task %r cannot be read: %s", id, exc)
            return None

    def _tell(self, id: str) -> None:
        self._notices.send(_TOPIC, id)


def apps_with_tasks(shared: SharedState) -> list[str]:
    """Return the names of the apps that have tasks in the database."""
    # Goes from app to app in the index, because DISTINCT would read every task.
    rows = shared.database.rows(
        "WITH RECURSIVE apps (app) AS ((SELECT min(app) FROM answerback.tasks) UNION ALL"
        " SELECT (SELECT min(tasks.app) FROM answerback.tasks WHERE tasks.app > apps.app)"
        " FROM apps WHERE app IS NOT NULL) SELECT app FROM apps WHERE app IS NOT NULL"
    )
    return [row[0] for row in rows]


class PostgresChanges:
    """Receives the ids of tasks changed by other processes."""

    def __init__(self, notices: Notices) -> None:
        self._changed = threading.Condition()
        self._ids: set[str] = set()
        self._may_be_any = True
        self._polled = 0.0
        notices.listen(_TOPIC, self._receive)

    def wait(self, seconds: float, *, is_urgent: bool) -> Collection[str] | None:
        with self._changed:
            if not self._ids and not self._may_be_any:
                self._changed.wait(seconds)
            ids, self._ids = self._ids, set()
            is_due = is_urgent and monotonic() >= self._polled + _POLL
            if self._may_be_any or is_due:
                self._may_be_any = False
                self._polled = monotonic()
                return None
            return ids

    def _receive(self, id: str | None) -> None:
        with self._changed:
            if id is None or len(self._ids) == _MAX_CHANGED:
                self._may_be_any = True
            else:
                self._ids.add(id)
            self._changed.notify()

    def wake(self) -> None:
        """Do nothing: a notice ends every wait."""


# A table's file reuses the space of removed rows for new ones, so its size is only an upper bound.
_SIZE = (
    "least(pg_total_relation_size(oid), "
    f"{_MAX_ROW} * (pg_stat_get_live_tuples(oid) + pg_stat_get_live_tuples(reltoastrelid)))"
)


class _Estimates:
    """The length of each tool's queue and the size of the table, as last read."""

    def __init__(self, database: Database, app: str) -> None:
        self._database = database
        self.app = app
        self.waiting: dict[str, int] = {}
        self.bytes = 0
        self._until: dict[str, float] = {}

    def refresh(self, tool: str, limit: int) -> None:
        """Update both for a tool, at most once a second."""
        now = monotonic()
        if now < self._until.get(tool, 0.0):
            return
        self._until[tool] = now + _REFRESH
        [row] = self._database.rows(
            f"SELECT (SELECT count(*) FROM (SELECT 1 {_WAITING} AND tool = %s LIMIT %s) AS queue),"
            f" {_SIZE} FROM pg_class WHERE oid = 'answerback.tasks'::regclass",
            *(self.app, tool, limit),
        )
        self.waiting[tool], self.bytes = row


class _Usage:
    """Estimates for all tasks, and counts for *owner*, a user's fingerprint."""

    def __init__(self, estimates: _Estimates, cursor: Cursor[Row], owner: str) -> None:
        self._estimates = estimates
        self._cursor = cursor
        self._owner = owner

    def bytes_with(self, task: TaskRecord) -> int:
        return self._estimates.bytes + len(task.arguments)

    def has_queued(self, tool: str, count: int) -> bool:
        # The length is unknown while another thread is reading it, or after a failed read.
        return self._estimates.waiting.get(tool, 0) >= count

    def has_unfinished(self, owner: str, count: int) -> bool:
        self._cursor.execute(
            "SELECT 1 FROM answerback.tasks WHERE app = %s AND owner = %s AND owner <> ''"
            " AND state IN ('working', 'input_required') LIMIT 1 OFFSET %s",
            (self._estimates.app, self._owner, count - 1),
        )
        return self._cursor.fetchone() is not None


def _may_exist(id: str) -> bool:
    """Return whether an id from a client can be a task id; PostgreSQL rejects some strings."""
    return len(id) <= _MAX_ID and id.isascii() and "\0" not in id


def _first(cursor: Cursor[Row]) -> Row:
    row = cursor.fetchone()
    assert row is not None
    return row
