"""Breakers that the processes of several hosts share: one that opens opens everywhere."""

from __future__ import annotations

from _thread import allocate_lock
from collections.abc import Callable
from functools import partial

import msgspec

from ..core.log import logger
from ..errors import Unavailable
from ..state.background_work import BackgroundWork
from ..state.database import NOW, Database
from ..state.shared import SharedState
from .breaker import Breaker, ServiceState

_TOPIC = "breaker"
_POLL = 2.0
"""The seconds after which a process looks for changes even without a notice."""


class BreakerRow(msgspec.Struct, frozen=True):
    service: str
    seconds_left: float | None
    """The seconds until a probe is allowed; None if the breaker is closed."""
    version: int


class BreakerRows:
    def __init__(self, database: Database, app: str) -> None:
        self._database = database
        self._app = app

    def all(self) -> list[BreakerRow]:
        rows = self._database.rows(
            f"SELECT service, CASE WHEN is_open THEN probe_at - {NOW} END, version"
            " FROM answerback.breakers WHERE app = %s",
            self._app,
        )
        return [BreakerRow(*row) for row in rows]

    def write(self, service: str, seconds_left: float | None) -> int:
        """Open a breaker for so many seconds, or close it for None; return the row's version."""
        with self._database.transaction(durable=False) as cursor:
            cursor.execute(
                "INSERT INTO answerback.breakers AS known (app, service, is_open, probe_at)"
                f" VALUES (%s, %s, %s, {NOW} + %s) ON CONFLICT (app, service) DO UPDATE"
                " SET is_open = excluded.is_open, probe_at = excluded.probe_at,"
                " version = known.version + 1 RETURNING version",
                (self._app, service, seconds_left is not None, seconds_left or 0.0),
            )
            row = cursor.fetchone()
        assert row is not None
        return int(row[0])


class SharedBreakers:
    """Tells the other processes which breakers this process opens and closes, and follows them.

    Each process counts failures by itself. A thread reads and writes, so that no call waits.
    """

    def __init__(self, shared: SharedState, app: str) -> None:
        self._notices = shared.notices
        self._rows = BreakerRows(shared.database, app)
        self._lock = allocate_lock()
        self._services: dict[str, ServiceState] = {}
        self._listeners: dict[str, Callable[[], None]] = {}
        self._is_started = False
        self._unwritten: set[str] = set()
        self._versions: dict[str, int] = {}
        """The version of each row that this process knows."""
        self._work = BackgroundWork("answerback-breakers", self._read_and_write, _POLL)

    def share(self, breaker: Breaker) -> None:
        """Share a breaker's state, unless its author gave it a store."""
        service, state = breaker.service, breaker.store
        if isinstance(state, ServiceState) and service not in self._services:
            self._services[service] = state
            self._listeners[service] = partial(self._note, service)
            state.listeners.append(self._listeners[service])
            if self._is_started:
                self._follow_others()

    def start(self) -> None:
        if self._work.is_closed:
            self._work.open()
            for service, state in self._services.items():
                state.listeners.append(self._listeners[service])
        self._is_started = True
        if self._services:
            self._follow_others()

    def _follow_others(self) -> None:
        self._notices.listen(_TOPIC, lambda _: self._work.wake())
        self._work.wake()

    def close(self) -> None:
        if not self._work.is_closed:
            for service, state in self._services.items():
                state.listeners.remove(self._listeners[service])
            self._work.close()
            self._is_started = False

    def _note(self, service: str) -> None:
        """Remember that a call of this process has opened or closed a breaker."""
        with self._lock:
            self._unwritten.add(service)
        self._work.wake()

    def _read_and_write(self) -> None:
        try:
            self._write_all()
            for row in self._rows.all():
                self._follow(row)
        except Unavailable:
            return  # Already logged. What is not written yet is tried again.

    def _write_all(self) -> None:
        for service in tuple(self._unwritten):
            state = self._services.get(service)
            with self._lock:
                self._unwritten.discard(service)
            if state is None:
                continue
            try:
                seconds = None if state.state == "closed" else state.seconds_left()
                self._versions[service] = self._rows.write(service, seconds)
            except Unavailable:
                with self._lock:
                    self._unwritten.add(service)
                raise
            self._notices.send(_TOPIC, "")

    def _follow(self, row: BreakerRow) -> None:
        state = self._services.get(row.service)
        is_known = row.version <= self._versions.get(row.service, 0)
        if state is None or is_known or row.service in self._unwritten:
            return
        self._versions[row.service] = row.version
        # If a probe is due, the calls of this process find out by themselves.
        is_over = row.seconds_left is not None and row.seconds_left <= 0
        if not is_over and state.follow(row.seconds_left):
            is_open = row.seconds_left is not None
            text = "breaker %r is %s, as another process has found"
            word = "open" if is_open else "closed"
            fields = {"service": row.service, "breaker": "opened" if is_open else "closed"}
            logger().info(text, row.service, word, extra=fields)
