"""Stores the full versions of truncated replies, in memory or in SQLite."""

from __future__ import annotations

import secrets
import sqlite3
import threading
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from hashlib import blake2b
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar
from urllib.parse import urlencode
from weakref import finalize

import msgspec

from ..core.background_work import BackgroundWork
from ..core.event_loop import OffLoop, call_in_place
from ..core.limits import LARGE_BODY, ReplyLimits
from ..core.log import logger
from ..core.sqlite_file import SQLiteFile, transaction
from ..errors import Unavailable
from .ranges import Range, ReplyPart, range_of

if TYPE_CHECKING:
    from ..registry.declarations import Registry
    from ..state.shared import SharedState


_LEFT = 0.9
"""The fraction of a full store to keep when making room."""


class Owner(msgspec.Struct, frozen=True, kw_only=True):
    """Identifies the caller and the called tool."""

    user: str = ""
    """A digest of issuer and subject, empty without auth. Only this user may read the reply."""
    session: str = ""
    """The MCP session; the reply is removed when it ends. Empty without a session."""
    address: str = ""
    """The client's address."""
    tool: str = ""
    """The called tool's name in the served app."""

    @property
    def account(self) -> str:
        """The account that a reply counts against: the user, or else the session or the address."""
        if self.user:
            return f"user {self.user}"
        return f"session {self.session}" if self.session else f"address {self.address}"

    @property
    def holder(self) -> str:
        """The user, or the address including all its sessions; its replies are evicted together."""
        return f"user {self.user}" if self.user else f"address {self.address}"


class StoredReply(NamedTuple):
    tool: str
    body: bytes


class ReplyStore(Protocol):
    """A store for full replies. Thread-safe; its methods may raise Unavailable."""

    @property
    def blocks(self) -> bool:
        """Whether methods may block; if so, an event loop calls them in a thread."""

    def add(self, id: str, body: bytes, owner: Owner, limits: ReplyLimits) -> None:
        """Store a reply, or extend its lifetime if it is already stored.

        Earlier replies are removed if there are too many.
        """

    def get(self, id: str, user: str, *parts: slice) -> StoredReply | None:
        """Return a reply, or only these parts of its body, joined.

        Return None if it is unknown, has expired or belongs to another user.
        """

    def forget_session(self, session: str) -> None:
        """Remove the replies of a session that has ended."""

    def remove_expired(self) -> None:
        """Remove expired replies; if there are many, leave some for the next run."""

    def close(self) -> None: ...


def surplus(rows: Sequence[tuple[int, int]], size: int, count: int, total: int) -> list[int]:
    """Return the row numbers of the replies to remove so that another one of *size* bytes fits.

    *rows* are row numbers and sizes, in removal order; *count* and *total* are the limits.
    """
    left, held = len(rows), sum(size for _, size in rows)
    removed = []
    for number, freed in rows:
        if left < count and held + size <= total:
            break
        removed.append(number)
        left, held = left - 1, held - freed
    return removed


def surplus_of_all(rows: Sequence[tuple[int, int]], size: int, limits: ReplyLimits) -> list[int]:
    """Return the replies to remove across all owners; more than needed, because this is slow."""
    count, total = int(limits.count * _LEFT), int(limits.total_bytes * _LEFT)
    return surplus(rows, size, max(count, 1), max(total, size))


_MEMORY = 8 * 1024
"""The size of the in-memory cache, in kilobytes."""
# The bodies are in a separate table, so that counting replies reads little data.
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
# Evict the oldest replies from the users and addresses that hold the most.
_IN_ORDER_OF_REMOVAL = (
    "SELECT number, size FROM (SELECT number, size,"
    " sum(size) OVER (PARTITION BY holder ORDER BY number DESC) AS held FROM wholes)"
    " ORDER BY held DESC, number"
)


class SQLiteReplies:
    """A store that each process opens on first use; without a *path*, each has its own.

    *clock* is for tests.
    """

    def __init__(self, path: str = "", clock: Callable[[], float] = monotonic) -> None:
        self.blocks = bool(path)
        self._now = clock
        self._lock = threading.Lock()
        self._file = SQLiteFile(path, _prepare, is_temporary=True)

    def add(self, id: str, body: bytes, owner: Owner, limits: ReplyLimits) -> None:
        now, size = self._now(), len(body)
        with self._opened() as connection, transaction(connection):
            connection.execute("DELETE FROM wholes WHERE expires <= ?", (now,))
            again = "UPDATE wholes SET expires = ? WHERE id = ?"
            if connection.execute(again, (now + limits.retention, id)).rowcount:
                return
            rows = connection.execute(
                "SELECT number, size FROM wholes WHERE account = ? ORDER BY number",
                (owner.account,),
            ).fetchall()
            _remove(connection, surplus(rows, size, limits.per_owner, limits.owner_bytes))
            count, held = connection.execute("SELECT count(*), total(size) FROM wholes").fetchone()
            if count >= limits.count or held + size > limits.total_bytes:
                rows = connection.execute(_IN_ORDER_OF_REMOVAL).fetchall()
                _remove(connection, surplus_of_all(rows, size, limits))
            row = (id, owner.account, owner.holder, owner.user, owner.session, owner.tool)
            added = connection.execute(
                "INSERT INTO wholes (id, account, holder, user, session, tool, expires, size)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (*row, now + limits.retention, size),
            )
            connection.execute("INSERT INTO bodies VALUES (?, ?)", (added.lastrowid, body))

    def get(self, id: str, user: str, *parts: slice) -> StoredReply | None:
        with self._opened() as connection:
            # One snapshot of both tables: another process may remove the reply in between.
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
                    return StoredReply(tool, b"".join(found))  # type: ignore[arg-type]  # not int
            finally:
                connection.execute("COMMIT")

    def forget_session(self, session: str) -> None:
        with self._opened() as connection, transaction(connection):
            connection.execute("DELETE FROM wholes WHERE session = ? AND session <> ''", (session,))

    def remove_expired(self) -> None:
        if self._file.is_open:
            with self._opened() as connection, transaction(connection):
                connection.execute("DELETE FROM wholes WHERE expires <= ?", (self._now(),))

    def close(self) -> None:
        with self._lock:
            self._file.close()

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                yield self._file.connection()
            except sqlite3.Error as exc:
                raise Unavailable(f"Full replies cannot be stored: {exc}") from exc


def _prepare(connection: sqlite3.Connection) -> None:
    # Nothing here needs to survive a crash. Removed data is overwritten.
    connection.execute("PRAGMA synchronous = OFF")
    connection.execute("PRAGMA secure_delete = ON")
    connection.execute(f"PRAGMA cache_size = -{_MEMORY}")
    # SQLite refuses a write-ahead log for a database without a path.
    if connection.execute("PRAGMA journal_mode = WAL").fetchone() != ("wal",):
        connection.execute("PRAGMA journal_mode = MEMORY")
    connection.executescript(_SCHEMA)


def _remove(connection: sqlite3.Connection, numbers: list[int]) -> None:
    connection.executemany("DELETE FROM wholes WHERE number = ?", [(each,) for each in numbers])


T = TypeVar("T")
PREFIX = "answerback://replies/"
"""The prefix of every stored reply's URI; the id follows."""
_ID_BYTES = 20
_MAX_ID = 100
_EXPIRY_SECONDS = 60.0
"""Seconds between removals of expired replies."""


class StoredReplies:
    """Stores full replies within limits.

    *key* returns the key that makes the ids unguessable. A reply that is sent again, such as a
    task's result each time a client asks for it, keeps its id and is stored only once.
    """

    def __init__(
        self,
        store: ReplyStore,
        limits: ReplyLimits,
        key: Callable[[], bytes] | None = None,
        off_loop: OffLoop = call_in_place,
    ) -> None:
        self._store = store
        self._limits = limits
        made = secrets.token_bytes(32)
        self._key = key or (lambda: made)
        self._off_loop = off_loop
        self._removing = removing = BackgroundWork(
            "answerback-wholes-expiry", partial(_remove_expired, store), _EXPIRY_SECONDS
        )
        # The thread holds no reference to this object, and stops when it is gone.
        finalize(self, _close, removing, store).atexit = False

    async def keep(self, body: bytes, owner: Owner) -> str | None:
        """Store the JSON of the returned data; return its URI.

        Return None if it exceeds the limit or the store fails; the reply is then sent without a
        link.
        """
        if len(body) > self._limits.reply_bytes:
            return None
        try:
            id = await self._call(len(body), self._add, body, owner)
        except Unavailable as exc:
            logger().warning("cannot store a full reply from %r: %s", owner.tool, exc)
            return None
        self._removing.wake()
        return PREFIX + id

    def _add(self, body: bytes, owner: Owner) -> str:
        digest = blake2b(body, key=self._key(), digest_size=_ID_BYTES)
        digest.update(msgspec.msgpack.encode(owner))
        id = urlsafe_b64encode(digest.digest()).rstrip(b"=").decode()
        self._store.add(id, body, owner, self._limits)
        return id

    async def find(self, id: str, user: str, *parts: slice) -> StoredReply | None:
        """Return a reply, or parts of it; None if unknown, expired or another user's."""
        # PostgreSQL and SQLite reject some strings.
        if not (len(id) < _MAX_ID and id.isascii() and id.isprintable()):
            return None
        return await self._call(LARGE_BODY, self._store.get, id, user, *parts)

    async def read(self, reply: StoredReply, part: ReplyPart) -> Range:
        """Return a part of a reply; raises InvalidInput for a range outside the reply."""
        return await self._call(len(reply.body), range_of, reply.body, part)

    async def forget_session(self, session: str) -> None:
        """Remove the replies of a session that has ended."""
        try:
            await self._call(LARGE_BODY, self._store.forget_session, session)
        except Unavailable as exc:
            logger().warning("cannot remove a session's full replies: %s", exc)

    async def _call(self, size: int, function: Callable[..., T], *args: object) -> T:
        """Call a function that handles *size* bytes."""
        call = self._off_loop if self._store.blocks or size >= LARGE_BODY else call_in_place
        return await call(function, *args)


def range_uri(uri: str, part: ReplyPart) -> str:
    """Return the URI of a part of the reply at *uri*; `part_of` parses its query."""
    query = urlencode(msgspec.to_builtins(part))
    return f"{uri}?{query}" if query else uri


def _close(removing: BackgroundWork, store: ReplyStore) -> None:
    removing.close()
    store.close()


def _remove_expired(store: ReplyStore) -> None:
    with suppress(Unavailable):
        store.remove_expired()


def stored_replies_of(
    registry: Registry, state: SharedState | None, path: str, off_loop: OffLoop
) -> StoredReplies:
    """Return an app's stored replies: in the shared database, in a file, or in this process."""
    limits = registry.limits.replies
    if state is None:
        return StoredReplies(SQLiteReplies(path), limits, off_loop=off_loop)
    # Imported here, because it needs the database driver.
    from .postgres_replies import PostgresReplies

    key = partial(state.fingerprints.of, b"ids of whole replies")
    return StoredReplies(PostgresReplies(state, registry.name), limits, key, off_loop)
