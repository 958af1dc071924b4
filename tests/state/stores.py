"""Stores of tasks in PostgreSQL for tests."""

from __future__ import annotations

from time import monotonic

from answerback.state.database import Database, open_connection
from answerback.state.migrations import migrate
from answerback.state.notices import Notices
from answerback.state.sealing import Sealer
from answerback.tasks.postgres_store import PostgresStore

SECRET = b"a secret of the tests, of some length"


def make_tables(url: str) -> None:
    with open_connection(url, monotonic() + 30) as connection:
        migrate(connection)


def postgres_store(url: str, app: str, *secrets: bytes) -> PostgresStore:
    """A store with connections of its own, as each process has one."""
    make_tables(url)
    database = Database(url)
    return PostgresStore(database, Notices(database), Sealer(*(secrets or (SECRET,))), app)
