"""SharedState: the database that all servers and workers of an app share, and how to use it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import Protocol

import psycopg

from ..core.secrets.mask import mask
from ..core.signing import SECRET, secrets_from_environment
from ..errors import AnswerbackError
from .database import BoundedConnection, Database, open_connection
from .migrations import WrongTables, check_version, migrate
from .notices import Notices
from .sealing import Sealer

_SECONDS = 30.0
"""The seconds that a command may wait for the database."""


class CannotUseState(AnswerbackError):
    """The database cannot be used; the message says what to do."""

    code = "CANNOT_USE_STATE"


class StatePart(Protocol):
    """A part of a server that keeps threads for what it shares."""

    def start(self) -> None:
        """Start in this process; again does nothing."""

    def close(self) -> None: ...


class SharedState:
    """*listen* is a URL for the listening connection, if *url* is a pooler's."""

    def __init__(self, url: str, secrets: Sequence[bytes], listen: str | None = None) -> None:
        self.database = Database(url)
        self.notices = Notices(self.database, listen)
        self.sealer = Sealer(*secrets)
        self.parts: list[StatePart] = []

    def start(self) -> None:
        """Start the parts, in the process that serves: threads do not survive a fork."""
        for part in self.parts:
            part.start()

    def close(self) -> None:
        for part in self.parts:
            part.close()
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
        with connected(url) as connection:
            if init:
                migrate(connection)
            check_version(connection)
    except WrongTables as exc:
        raise CannotUseState(str(exc)) from None
    return SharedState(url, secrets, listen)


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
