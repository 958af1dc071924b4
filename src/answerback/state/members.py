"""Members: the processes that serve an app. Each has one row, with a number and a heartbeat."""

from __future__ import annotations

import threading
from math import inf
from time import monotonic

from ..errors import AnswerbackError, Unavailable
from .database import NOW, Database, after_fork

BEAT = 2.0
"""Seconds between two heartbeats of a process."""
_PATIENCE = 15.0
"""Seconds without a heartbeat after which a process has ended."""
_LENIENCE = 3_600.0
"""The same, for a short time after the database was away: all processes missed their time."""
_LENIENT = 8.0
"""How many seconds that is: enough for an attempt that fails, a pause, and one that succeeds. If it
were longer, a database that fails often would hide that a process has ended."""
_KEPT = 86_400
"""Seconds for which a number is not given again: as long as a session lives."""
_MAX = 65_535
"""A session id has two bytes for the number."""
_LOCK = 0x616E7379
"""The number of the advisory lock for taking a number."""


class NoNumberLeft(AnswerbackError):
    """All numbers were given within a day."""

    code = "NO_NUMBER_LEFT"


class Members:
    """Gives this process its number, and knows the other processes of the app.

    Whoever needs the others calls `beat`; only one of them in two seconds writes. Any thread may.
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
        """The number of this process; 0 before it is taken."""
        self._has_left = False
        self._living: frozenset[int] = frozenset()
        self._next_beat = 0.0
        self._lenient_until = 0.0

    @property
    def patience(self) -> float:
        """Seconds without a heartbeat for which another process still counts."""
        return _PATIENCE if monotonic() >= self._lenient_until else _LENIENCE

    def join(self) -> int:
        """Take a number that no process had within a day; raises Unavailable or NoNumberLeft.

        If this process has one that it has not left, that one is kept.
        """
        with self._lock:
            self._has_left = False
            self._take()
            return self.number

    def _take(self) -> None:
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
            raise NoNumberLeft(f"the database has given {_MAX} processes a number within a day")
        self.number = int(row[0])

    def beat(self, *, at_once: bool = False) -> frozenset[int]:
        """Show that this process lives; return the numbers of all that do. Raises Unavailable.

        It asks the database if the last heartbeat is two seconds old, or *at_once*.
        """
        with self._lock:
            is_due = at_once or monotonic() >= self._next_beat
            if is_due and not self._has_left:
                try:
                    self._take()
                    self._living = self._written()
                except Unavailable:
                    self._lenient_until = inf
                    raise
                now = monotonic()
                if self._lenient_until == inf:
                    self._lenient_until = now + _LENIENT
                # A little less, so that a caller who comes every two seconds is not early.
                self._next_beat = now + 0.9 * BEAT
            return self._living

    def _written(self) -> frozenset[int]:
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
        """Say that this process ends, until it joins again; raises Unavailable."""
        with self._lock:
            self._has_left = True
            number, self.number = self.number, 0
            if number:
                self._database.rows(
                    "UPDATE answerback.processes SET has_left = true WHERE number = %s", number
                )
