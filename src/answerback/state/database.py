"""Database: one process's connections to PostgreSQL, and the version of its tables.

psycopg is used without asyncio, because the callers run in threads. Each transaction also has a
deadline in this process, because PostgreSQL's `statement_timeout` does not fire while the server is
suspended.
"""

from __future__ import annotations

import hashlib
import select
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import psycopg

from ..core.background_work import after_fork
from ..core.log import logger
from ..core.secrets import mask
from ..errors import AnswerbackError, Unavailable, Uncertain

if TYPE_CHECKING:
    from psycopg.abc import PQGen


VERSION = 3
"""The version of the tables that this code needs."""
_LOCK = 0x616E7377
"""The key of the advisory lock for migrations."""
_TABLE = "answerback.schema_version"
_STEPS = files(__package__) / "steps"
_MADE = """
SELECT relname || '.' || attname || ' ' || typname FROM pg_class JOIN pg_attribute
    ON attrelid = pg_class.oid AND attnum > 0 AND NOT attisdropped
    JOIN pg_type ON pg_type.oid = atttypid
    WHERE relnamespace = 'answerback'::regnamespace AND relkind = 'r'
UNION ALL SELECT 'index ' || relname FROM pg_class
    WHERE relnamespace = 'answerback'::regnamespace AND relkind = 'i'
UNION ALL SELECT 'function ' || proname FROM pg_proc
    WHERE pronamespace = 'answerback'::regnamespace
"""
_MEND = (
    "another build of Answerback made them, or they were changed by hand; drop the schema "
    "answerback with all its records, and run: answerback state init"
)
_MAX_NAMED = 5


class WrongTables(AnswerbackError):
    """The database lacks the tables, or has a different version of them."""

    code = "WRONG_TABLES"


def version_of(connection: psycopg.Connection[Any]) -> int:
    """Return the version of the tables; 0 if there are none.

    Raises WrongTables if they were not created by this program's steps.
    """
    exists = connection.execute("SELECT to_regclass(%s) IS NOT NULL", (_TABLE,)).fetchone()
    if exists is None or not exists[0]:
        return 0
    # In versions 1 and 2, the tables have no column for the checksum.
    query = f"SELECT version, to_jsonb(step) ->> 'checksum' FROM {_TABLE} AS step ORDER BY 1"
    rows = connection.execute(query.encode()).fetchall()
    for version, checksum in rows:
        if checksum is not None and version <= VERSION:
            step = _step(version)
            if checksum != step.checksum:
                raise WrongTables(
                    f"the tables were not made by this program's step {step.name}: {_MEND}"
                )
    return int(rows[-1][0]) if rows else 0


def check_version(connection: psycopg.Connection[Any]) -> None:
    """Raise WrongTables unless this code can use the tables; the error says how to fix them."""
    found = version_of(connection)
    if found == 0:
        raise WrongTables(
            "the database has no Answerback tables yet; "
            "make them with: answerback state init URL, or start with --state-init"
        )
    if found < VERSION:
        raise WrongTables(
            f"the state tables have version {found}, but this program needs {VERSION}; "
            "bring them up to date with: answerback state upgrade URL"
        )
    if found > VERSION + 1:
        raise WrongTables(
            f"the state tables have version {found}, but this program knows versions only up "
            f"to {VERSION + 1}; install a later version of Answerback"
        )


def migrate(connection: psycopg.Connection[Any]) -> tuple[int, int]:
    """Bring the tables up to date; return the versions before and after."""
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        before = version_of(connection)
        steps = {number: _step(number) for number in range(before + 1, VERSION + 1)}
        for step in steps.values():
            connection.execute(step.text.encode())
        # The column is only guaranteed to exist after the last step.
        for number, step in steps.items():
            connection.execute(
                "INSERT INTO answerback.schema_version (version, checksum) VALUES (%s, %s)",
                (number, step.checksum),
            )
        check_tables(connection)
    return before, max(before, VERSION)


def check_tables(connection: psycopg.Connection[Any]) -> None:
    """Raise WrongTables if the tables have this program's version but are incomplete."""
    if version_of(connection) != VERSION:
        return
    made = {row[0] for row in connection.execute(_MADE)}
    missing = sorted(set((_STEPS / "made.txt").read_text("utf-8").splitlines()) - made)
    if missing:
        names = ", ".join(missing[:_MAX_NAMED]) + (", …" if len(missing) > _MAX_NAMED else "")
        raise WrongTables(f"the state tables lack {names}: {_MEND}")


class _Step(NamedTuple):
    name: str
    text: str

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()


def _step(number: int) -> _Step:
    [step] = [each for each in _STEPS.iterdir() if each.name.startswith(f"{number:03}_")]
    return _Step(step.name, step.read_text(encoding="utf-8"))


T = TypeVar("T")
MAX_CONNECTIONS = 4
"""The maximum number of connections per process, not counting the listening one."""
_DEADLINE = 2.5
"""How many seconds a transaction may take, including waiting for a connection."""
_CONNECT = 2
"""How many seconds it may take to open a connection."""
_ABANDONED = 5_000
"""The milliseconds after which the server ends a transaction that its client has abandoned."""
_BEGIN = (
    f"BEGIN; SET LOCAL statement_timeout TO {_ABANDONED};"
    f" SET LOCAL idle_in_transaction_session_timeout TO {_ABANDONED}"
)
_NOT_DURABLE = "SET LOCAL synchronous_commit TO off"
_PAUSE = 0.5
"""How many seconds to wait after a failure before opening a new connection."""
_RETRY_AFTER = 5
NOW = "answerback.now()"
"""The database's time in SQL, in seconds since 1970."""
NOW_ONCE = f"(SELECT {NOW})"
"""The same, read once per statement, so that an index can find older rows. The planner does not
know the time, and uses the index only if the query orders by the indexed column."""
_UNREACHABLE = (psycopg.OperationalError, psycopg.InterfaceError, psycopg.InternalError, OSError)
"""The errors raised if the database is unavailable, full, or read-only."""
_IDLE = psycopg.pq.TransactionStatus.IDLE


class BoundedConnection(psycopg.Connection[tuple[Any, ...]]):
    """A connection that is closed if the server does not respond in time."""

    ends = 0.0
    """When the current transaction must end, by the monotonic clock."""
    is_committing = False
    """Whether a COMMIT has been sent but not acknowledged."""

    def wait(self, gen: PQGen[T], interval: float = 0.1, timeout: float | None = None) -> T:
        left = self.ends - monotonic() if timeout is None else timeout
        try:
            return super().wait(gen, interval, max(left, 0.001))
        except psycopg.OperationalError:
            if monotonic() >= self.ends:
                self.pgconn.finish()
            raise

    @property
    def is_stale(self) -> bool:
        """Whether the server has closed the idle connection or sent anything on it."""
        if self.closed:
            return True
        poll = select.poll()
        poll.register(self.pgconn.socket, select.POLLIN)
        return bool(poll.poll(0))


class Database:
    """Opens connections on first use, so that it can be created before workers fork.

    Raises Unavailable if the database is unreachable: immediately for a short time after a failure,
    otherwise after the deadline. Raises Uncertain if the transaction may have been committed.
    Thread-safe.
    """

    def __init__(self, url: str, *, seconds: float = _DEADLINE) -> None:
        self.url = url
        self._seconds = seconds
        self._idle: list[BoundedConnection] = []
        self._forget()
        after_fork(self._forget)

    def _forget(self) -> None:
        """Start without connections: a forked child must not use its parent's."""
        # They are kept open, because closing them would also close the parent's.
        self._inherited = self._idle
        self._idle = []
        # Another thread in the parent may be holding the old lock.
        self._lock = threading.Lock()
        self._room = threading.BoundedSemaphore(MAX_CONNECTIONS)
        self._paused_until = 0.0
        """No connection is opened before this time."""
        self._is_checked = self._is_closed = False
        self.is_failing = False

    @contextmanager
    def transaction(self, *, durable: bool = True) -> Iterator[psycopg.Cursor[tuple[Any, ...]]]:
        """Yield a cursor in a transaction, which is rolled back if the block raises.

        Without *durable*, the commit does not wait for the disk, and may be lost if the database's
        machine crashes.
        """
        with self._connection() as connection:
            # The server's timeouts release the locks of a client that is paused or gone.
            connection.execute(_BEGIN if durable else f"{_BEGIN}; {_NOT_DURABLE}")
            try:
                with connection.cursor() as cursor:
                    yield cursor
                connection.is_committing = True
                connection.execute("COMMIT")
            except BaseException:
                if not connection.closed:
                    connection.execute("ROLLBACK")
                raise

    def rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """Run one statement in its own transaction, and return its rows."""
        with self._connection() as connection:
            # Binary, because a sealed value would take twice as many bytes as text.
            cursor = connection.execute(query.encode(), values, binary=True)
            return cursor.fetchall() if cursor.description else []

    def now(self) -> float:
        """Return the database's time, in seconds since 1970."""
        return float(self.rows(f"SELECT {NOW}")[0][0])

    def open(self) -> None:
        """Keep idle connections again after `close`."""
        self._is_closed = False

    def close(self) -> None:
        """Close the idle connections; the others are closed when their transactions end."""
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    @contextmanager
    def _connection(self) -> Iterator[BoundedConnection]:
        """Yield a connection; raise Unavailable if the database is unreachable."""
        ends = monotonic() + self._seconds
        if not self._room.acquire(timeout=self._seconds):
            raise unavailable()
        try:
            connection = self._acquire(ends)
            connection.ends = ends
            connection.is_committing = False
            try:
                yield connection
            except _UNREACHABLE as exc:
                connection.close()
                if connection.is_committing:
                    self._note_failure(exc)
                    raise unavailable(Uncertain) from exc
                raise
            finally:
                self._release(connection)
            if self.is_failing:
                self.is_failing = False
                logger().info("the state database is responding again")
        except _UNREACHABLE as exc:
            self._note_failure(exc)
            raise unavailable() from exc
        finally:
            self._room.release()

    def _release(self, connection: BoundedConnection) -> None:
        """Keep a connection for the next transaction, unless it is in an unknown state."""
        with self._lock:
            if connection.info.transaction_status == _IDLE and not self._is_closed:
                self._idle.append(connection)
                return
        connection.close()

    def _acquire(self, ends: float) -> BoundedConnection:
        """Return an idle connection, or a new one."""
        while True:
            with self._lock:
                idle = self._idle.pop() if self._idle else None
            if idle is None:
                break
            if not idle.is_stale:
                return idle
            idle.close()
        if monotonic() < self._paused_until:
            raise unavailable()
        connection = open_connection(self.url, ends)
        if not self._is_checked:
            check_version(connection)
            self._is_checked = True
        return connection

    def _note_failure(self, error: Exception) -> None:
        self._paused_until = monotonic() + _PAUSE
        if not self.is_failing:
            self.is_failing = True
            logger().error("the state database failed: %s", mask(str(error).strip()))


def open_connection(url: str, ends: float) -> BoundedConnection:
    """Return a new connection that commits each statement; raises psycopg.OperationalError."""
    connection = BoundedConnection.connect(
        url,
        autocommit=True,
        # A pooler such as pgbouncer gives each transaction a different connection to the server.
        prepare_threshold=None,
        connect_timeout=_CONNECT,
        application_name="answerback",
    )
    connection.ends = ends
    return connection


def unavailable(kind: type[Unavailable] = Unavailable) -> Unavailable:
    return kind(
        "The server's database is not responding at the moment",
        retryable=True,
        retry_after=_RETRY_AFTER,
    )
