"""SharedState: the database that all servers and workers of an app share, and how to use it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from time import monotonic
from typing import Any, Protocol

import psycopg

from ..core.secrets import mask
from ..core.signing import SECRET, secrets_from_environment
from ..errors import AnswerbackError, Unavailable
from .database import BoundedConnection, Database, open_connection
from .fingerprints import Fingerprints, fingerprint_key
from .members import Members
from .migrations import WrongTables, check_version, migrate
from .notices import Notices
from .sealing import CannotOpen, Sealer

_SECONDS = 30.0
"""The seconds that a command may wait for the database."""
LONG_SECONDS = 86_400.0
"""The same for commands that read or change whole tables."""


class CannotUseState(AnswerbackError):
    """The database cannot be used; the message says what to do."""

    code = "CANNOT_USE_STATE"


class StatePart(Protocol):
    """A part of a server that keeps threads for what it shares."""

    def start(self) -> None:
        """Start in this process, also after `close`; again does nothing."""

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
        """Return the processes that serve an app, of which this one may be a member."""
        if app not in self._members:
            self._members[app] = Members(self.database, app)
        return self._members[app]

    def add(self, part: StatePart) -> None:
        """Start a part with the state, at once if the state has started."""
        self.parts.append(part)
        if self._is_started:
            part.start()

    def start(self) -> None:
        """Start, in the process that serves: threads do not survive a fork.

        Again does nothing, and after `close` everything starts again.
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
            with suppress(Unavailable):  # The others notice it within seconds.
                members.leave()
        self.notices.close()
        self.database.close()


def open_state(url: str, *, listen: str | None = None, init: bool = False) -> SharedState:
    """Return the state in this database, which is checked; with *init* the tables are made.

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
    """Raise CannotUseState unless the secret is the one with which the other hosts seal.

    The first secret that is checked becomes that one.
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
    """Yield a connection for a command, for so many seconds; raises CannotUseState."""
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
    return CannotUseState(f"cannot {verb} the database of the state: {reason}")
