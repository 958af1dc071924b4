"""Notices: tell the other processes what changed in the database, by LISTEN and NOTIFY.

A notice may be lost while the listening connection is open again: whoever listens also polls.
NOTIFY takes a lock of the whole database at each commit, so notices are merged and sent after the
transactions, over one channel.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from time import monotonic

import psycopg

from ..core.log import logger
from ..errors import Unavailable
from .database import Database, after_fork, open_connection

_CHANNEL = "answerback"
_MAX_PAYLOAD = 7_900
"""PostgreSQL allows 8,000 bytes in a notice."""
_GAP = 0.005
"""The minimum seconds between two notices of this process."""
_LISTEN = 5.0
"""The seconds after which the listening thread looks whether it should end."""
_FIRST_PAUSE, _LAST_PAUSE = 0.5, 5.0
"""The seconds before the listening connection is opened again."""

Listener = Callable[[str | None], None]
"""Gets the id of what changed; None if notices may have been lost."""


class Notices:
    """Sends and receives notices, each with a topic and an id; starts its threads on first use.

    *url* is for the listening connection, which may not go through a pooler.
    """

    def __init__(self, database: Database, url: str | None = None) -> None:
        self._database = database
        self._url = url or database.url
        self._forget()
        after_fork(self._forget)

    def _forget(self) -> None:
        """Start without threads: a forked child has none of its parent's."""
        self._own = secrets.token_hex(4)
        """This process, which skips its own notices."""
        self._changed = threading.Condition()
        self._unsent: dict[str, None] = {}
        self._listeners: dict[str, Listener] = {}
        self._start_anew()

    def _start_anew(self) -> None:
        self._end = threading.Event()
        """Set when the present threads should end."""
        self._sends = self._listens = False

    def open(self) -> None:
        """Allow threads again after `close`; each topic needs a new listener."""
        if self._end.is_set():
            self._start_anew()

    def send(self, topic: str, id: str) -> None:
        """Tell the other processes soon; without the database nobody is told."""
        with self._changed:
            self._unsent[f"{topic} {id}"] = None
            self._changed.notify()
            starts, self._sends = not self._sends, True
        if starts:
            self._begin(self._send_all, "answerback-notify")

    def listen(self, topic: str, listener: Listener) -> None:
        """Call *listener* with the ids of this topic that other processes send."""
        with self._changed:
            self._listeners[topic] = listener
            starts, self._listens = not self._listens, True
        if starts:
            self._begin(self._listen, "answerback-listen")

    def _begin(self, work: Callable[[threading.Event], None], name: str) -> None:
        threading.Thread(target=work, args=(self._end,), name=name, daemon=True).start()

    def close(self) -> None:
        with self._changed:
            self._end.set()
            self._listeners.clear()
            self._changed.notify_all()

    def _send_all(self, end: threading.Event) -> None:
        while True:
            with self._changed:
                while not self._unsent and not end.is_set():
                    self._changed.wait()
                if not self._unsent:
                    return
                lines, self._unsent = list(self._unsent), {}
            for payload in _payloads(self._own, lines):
                try:
                    self._database.rows("SELECT pg_notify(%s, %s)", _CHANNEL, payload)
                except Unavailable:
                    break  # Already logged; who waits also polls.
            threading.Event().wait(_GAP)

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
                        # Without an answer the network or the server has gone, and says nothing.
                        connection.execute("SELECT 1")
            except (psycopg.Error, OSError):
                end.wait(pause)
                pause = min(2 * pause, _LAST_PAUSE)

    def _receive(self, payload: str) -> None:
        sender, *lines = payload.split("\n")
        if sender == self._own:
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
