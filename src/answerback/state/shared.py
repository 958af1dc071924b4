"""SharedState: the database shared by all of an app's servers and workers.

Notices wakes the other processes, UsedRows ensures that each link token is used only once, and
Members tracks which processes are alive.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from hashlib import sha256
from math import inf
from time import monotonic, sleep
from typing import Any, Protocol

import psycopg

from ..core.background_work import BackgroundWork, after_fork
from ..core.log import logger
from ..core.secrets import mask
from ..core.signing import SECRET, secrets_from_environment
from ..errors import AnswerbackError, Unavailable
from .database import (
    NOW,
    NOW_ONCE,
    BoundedConnection,
    Database,
    WrongTables,
    check_version,
    migrate,
    open_connection,
)
from .sealing import CannotOpen, Fingerprints, Sealer, fingerprint_key

_CHANNEL = "answerback"
_MAX_PAYLOAD = 7_900
"""PostgreSQL allows 8,000 bytes in a notice."""
_GAP = 0.005
"""The minimum number of seconds between two notices from this process."""
_LISTEN = 5.0
"""How often, in seconds, the listening thread checks whether it should end."""
_FIRST_PAUSE, _LAST_PAUSE = 0.5, 5.0
"""The seconds to wait before reopening the listening connection."""

Listener = Callable[[str | None], None]
"""Called with the id of what changed, or None if notices may have been lost."""


class Notices:
    """Sends and receives notices, each with a topic and an id; starts its threads on first use.

    *url* is for the listening connection, which must not go through a pooler.
    """

    def __init__(self, database: Database, url: str | None = None) -> None:
        self._database = database
        self._url = url or database.url
        self._sending = BackgroundWork("answerback-notify", self._send_all, None)
        self._forget()
        after_fork(self._forget)

    def _forget(self) -> None:
        """Start without threads: a forked child does not have its parent's."""
        self._sender = secrets.token_hex(4)
        """Identifies this process, which skips its own notices."""
        self._lock = threading.Lock()
        self._unsent: dict[str, None] = {}
        self._listeners: dict[str, Listener] = {}
        self._reset_listening()

    def _reset_listening(self) -> None:
        self._end = threading.Event()
        """Set when the current listening thread should end."""
        self._listens = False

    def open(self) -> None:
        """Allow threads to start again after `close`; each topic needs a new listener."""
        self._sending.open()
        if self._end.is_set():
            self._reset_listening()

    def send(self, topic: str, id: str) -> None:
        """Notify the other processes soon; does nothing if the database is unavailable."""
        with self._lock:
            self._unsent[f"{topic} {id}"] = None
        self._sending.wake()

    def listen(self, topic: str, listener: Listener) -> None:
        """Call *listener* with the ids that other processes send on this topic."""
        with self._lock:
            self._listeners[topic] = listener
            starts, self._listens = not self._listens, True
        if starts:
            listen, name = partial(self._listen, self._end), "answerback-listen"
            threading.Thread(target=listen, name=name, daemon=True).start()

    def close(self) -> None:
        with self._lock:
            self._end.set()
            self._listeners.clear()
        self._sending.close()

    def _send_all(self) -> None:
        with self._lock:
            lines, self._unsent = list(self._unsent), {}
        if not lines:
            return
        for payload in _payloads(self._sender, lines):
            try:
                self._database.rows("SELECT pg_notify(%s, %s)", _CHANNEL, payload)
            except Unavailable:
                break  # Already logged; listeners also poll.
        sleep(_GAP)

    def _listen(self, end: threading.Event) -> None:
        pause = _FIRST_PAUSE
        while not end.is_set():
            try:
                with open_connection(self._url, monotonic() + _LISTEN) as connection:
                    connection.execute(f"LISTEN {_CHANNEL}".encode())
                    pause = _FIRST_PAUSE
                    for listener in tuple(self._listeners.values()):
                        self._tell(listener, None)
                    while not end.is_set():
                        connection.ends = monotonic() + 2 * _LISTEN
                        for notice in connection.notifies(timeout=_LISTEN):
                            self._receive(notice.payload)
                            connection.ends = monotonic() + 2 * _LISTEN
                        # Without a reply, the network or the server has silently gone away.
                        connection.execute("SELECT 1")
            except (psycopg.Error, OSError):
                end.wait(pause)
                pause = min(2 * pause, _LAST_PAUSE)

    def _receive(self, payload: str) -> None:
        sender, *lines = payload.split("\n")
        if sender == self._sender:
            return
        for line in lines:
            topic, _, id = line.partition(" ")
            listener = self._listeners.get(topic)
            if listener is not None:
                self._tell(listener, id)

    def _tell(self, listener: Listener, id: str | None) -> None:
        try:
            listener(id)
        except Exception:  # noqa: BLE001 -- the other listeners still need the thread
            logger().exception("internal error while receiving a notice")


def _payloads(sender: str, lines: list[str]) -> list[str]:
    """Return the lines in as few payloads as PostgreSQL allows."""
    payloads, payload = [], sender
    for line in lines:
        if len(payload) + 1 + len(line) > _MAX_PAYLOAD:
            payloads.append(payload)
            payload = sender
        payload += f"\n{line}"
    return [*payloads, payload]


_SPARE = 86_400
"""How many seconds a row is kept after its token expires, since the hosts' clocks may differ."""
_BATCH = 1_000


class UsedRows:
    """Keeps a row for each used token; only one process can add it."""

    def __init__(self, shared: SharedState) -> None:
        self._database = shared.database

    def add(self, token: bytes, expires: int) -> bool:
        """Return whether the token had not been used before; raises Unavailable."""
        with self._database.transaction() as cursor:
            cursor.execute(
                "DELETE FROM answerback.used_tokens WHERE digest IN (SELECT digest"
                f" FROM answerback.used_tokens WHERE expires < {NOW_ONCE} - {_SPARE}"
                f" ORDER BY expires LIMIT {_BATCH} FOR UPDATE SKIP LOCKED)"
            )
            cursor.execute(
                "INSERT INTO answerback.used_tokens (digest, expires) VALUES (%s, %s)"
                " ON CONFLICT DO NOTHING",
                (sha256(token).digest(), float(expires)),
            )
            return cursor.rowcount == 1


BEAT = 2.0
"""Seconds between a process's heartbeats."""
_PATIENCE = 15.0
"""Seconds without a heartbeat after which a process is considered dead."""
_LENIENCE = 3_600.0
"""The same, for a short time after a database outage, when every process missed heartbeats."""
_LENIENT = 8.0
"""The length of that time in seconds, enough for a failed attempt, a pause, and a successful one.
If it were longer, a database that fails often would hide the death of a process."""
_KEPT = 86_400
"""Seconds before a number is reused: as long as a session lives."""
_MAX = 65_535
"""A session id has two bytes for the number."""
_LOCK = 0x616E7379
"""The key of the advisory lock for taking a number."""


class NoNumberLeft(AnswerbackError):
    """All numbers were assigned within the last day."""

    code = "NO_NUMBER_LEFT"


class Members:
    """Assigns this process a number, and keeps track of the app's other processes.

    Call `beat` to find the others; it writes at most once every two seconds. Thread-safe.
    """

    def __init__(self, database: Database, app: str) -> None:
        self._database = database
        self._app = app
        self._forget()
        after_fork(self._forget)

    def _forget(self) -> None:
        """Start without a number: a forked child is another process."""
        self._lock = threading.Lock()
        self.number = 0
        """This process's number; 0 until one is taken."""
        self._has_left = False
        self._living: frozenset[int] = frozenset()
        self._next_beat = 0.0
        self._lenient_until = 0.0

    @property
    def patience(self) -> float:
        """How many seconds another process may go without a heartbeat and still count as alive."""
        return _PATIENCE if monotonic() >= self._lenient_until else _LENIENCE

    def join(self) -> int:
        """Take a number unused for a day; raises Unavailable or NoNumberLeft.

        If this process already has a number and has not left, it keeps that number.
        """
        with self._lock:
            self._has_left = False
            self._take_number()
            return self.number

    def _take_number(self) -> None:
        if self.number:
            return
        with self._database.transaction() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
            cursor.execute(f"DELETE FROM answerback.processes WHERE seen < {NOW} - {_KEPT}")
            cursor.execute(
                "INSERT INTO answerback.processes (number, app, seen)"
                f" SELECT free.number, %s, {NOW} FROM generate_series(1, {_MAX}) AS free(number)"
                " WHERE NOT EXISTS (SELECT 1 FROM answerback.processes AS p"
                " WHERE p.number = free.number) ORDER BY free.number LIMIT 1 RETURNING number",
                (self._app,),
            )
            row = cursor.fetchone()
        if row is None:
            raise NoNumberLeft(f"all {_MAX} process numbers were assigned within the last day")
        self.number = int(row[0])

    def beat(self, *, at_once: bool = False) -> frozenset[int]:
        """Write a heartbeat; return the numbers of all running processes. Raises Unavailable.

        Queries the database only if the last heartbeat is two seconds old, or with *at_once*.
        """
        with self._lock:
            is_due = at_once or monotonic() >= self._next_beat
            if is_due and not self._has_left:
                try:
                    self._take_number()
                    self._living = self._write_heartbeat()
                except Unavailable:
                    self._lenient_until = inf
                    raise
                now = monotonic()
                if self._lenient_until == inf:
                    self._lenient_until = now + _LENIENT
                # Slightly less, so that a caller that beats every two seconds is not too early.
                self._next_beat = now + 0.9 * BEAT
            return self._living

    def _write_heartbeat(self) -> frozenset[int]:
        with self._database.transaction(durable=False) as cursor:
            cursor.execute(
                "INSERT INTO answerback.processes (number, app, seen)"
                f" VALUES (%s, %s, {NOW}) ON CONFLICT (number) DO UPDATE SET seen = excluded.seen",
                (self.number, self._app),
            )
            cursor.execute(
                "SELECT number FROM answerback.processes"
                f" WHERE app = %s AND NOT has_left AND seen > {NOW} - %s",
                (self._app, self.patience),
            )
            return frozenset(row[0] for row in cursor.fetchall())

    def leave(self) -> None:
        """Mark this process as gone until it joins again; raises Unavailable."""
        with self._lock:
            self._has_left = True
            number, self.number = self.number, 0
            if number:
                self._database.rows(
                    "UPDATE answerback.processes SET has_left = true WHERE number = %s", number
                )


_SECONDS = 30.0
"""How many seconds a command may wait for the database."""
LONG_SECONDS = 86_400.0
"""The same for commands that read or change whole tables."""


class CannotUseState(AnswerbackError):
    """The database cannot be used; the message says what to do."""

    code = "CANNOT_USE_STATE"


class StatePart(Protocol):
    """A part of a server that runs threads for shared state."""

    def start(self) -> None:
        """Start in this process, even after `close`; a second call does nothing."""

    def close(self) -> None: ...


class SharedState:
    """*listen* is a URL for the listening connection, if *url* is a pooler's."""

    def __init__(self, url: str, secrets: Sequence[bytes], listen: str | None = None) -> None:
        self.database = Database(url)
        self.notices = Notices(self.database, listen)
        self.sealer = Sealer(*secrets)
        self.fingerprints = Fingerprints(self.database, self.sealer)
        self.parts: list[StatePart] = []
        self._is_started = False
        self._members: dict[str, Members] = {}

    def members(self, app: str) -> Members:
        """Return the processes that serve an app, which may include this one."""
        if app not in self._members:
            self._members[app] = Members(self.database, app)
        return self._members[app]

    def add(self, part: StatePart) -> None:
        """Start a part together with the state, or now if the state has already started."""
        self.parts.append(part)
        if self._is_started:
            part.start()

    def start(self) -> None:
        """Start in the serving process, because threads do not survive a fork.

        A second call does nothing; after `close`, everything starts again.
        """
        self.database.open()
        self.notices.open()
        self._is_started = True
        for part in self.parts:
            part.start()

    def close(self) -> None:
        self._is_started = False
        for part in self.parts:
            part.close()
        for members in self._members.values():
            with suppress(Unavailable):  # The others will notice within seconds.
                members.leave()
        self.notices.close()
        self.database.close()


def open_state(url: str, *, listen: str | None = None, init: bool = False) -> SharedState:
    """Check this database and return its state; with *init*, create the tables.

    Raises CannotUseState.
    """
    secrets = secrets_from_environment()
    if not secrets:
        raise CannotUseState(
            f"--state needs {SECRET}, the same on every host; "
            "set it to the output of: openssl rand -hex 32"
        )
    try:
        with connected(url, LONG_SECONDS if init else _SECONDS) as connection:
            if init:
                migrate(connection)
            check_version(connection)
            check_secret(connection, Sealer(*secrets))
    except WrongTables as exc:
        raise CannotUseState(str(exc)) from None
    return SharedState(url, secrets, listen)


def check_secret(connection: BoundedConnection, sealer: Sealer) -> None:
    """Raise CannotUseState unless this is the secret that the other hosts use.

    The first secret ever checked becomes the shared one.
    """

    def rows(query: str, *values: object) -> list[tuple[Any, ...]]:
        cursor = connection.execute(query.encode(), values)
        return cursor.fetchall() if cursor.description else []

    try:
        fingerprint_key(rows, sealer)
    except CannotOpen:
        raise CannotUseState(
            f"{SECRET} is not the secret that this database was first used with, nor one that "
            f"`answerback state rekey` has put in its place; set {SECRET}=new,old to change it. "
            "If the old one is lost, so are the records: drop the schema answerback, "
            "and run: answerback state init"
        ) from None


@contextmanager
def connected(url: str, seconds: float = _SECONDS) -> Iterator[BoundedConnection]:
    """Yield a connection that a command may use for *seconds*; raises CannotUseState."""
    try:
        connection = open_connection(url, monotonic() + seconds)
    except psycopg.Error as exc:
        raise _refusal("connect to", exc) from None
    with connection:
        try:
            yield connection
        except psycopg.Error as exc:
            raise _refusal("use", exc) from None


def _refusal(verb: str, error: psycopg.Error) -> CannotUseState:
    reason = mask(str(error).strip())
    return CannotUseState(f"cannot {verb} the state database: {reason}")
