"""Stores of tasks in PostgreSQL for tests."""

from __future__ import annotations

from collections.abc import Callable

from answerback.state.database import migrate
from answerback.state.shared import SharedState, connected
from answerback.tasks.postgres_store import PostgresStore

SECRET = b"a secret of the tests, of some length"


Make = Callable[..., PostgresStore]
"""Makes the store of one more process of the app "jobs", with these secrets."""


def make_tables(url: str) -> None:
    with connected(url) as connection:
        migrate(connection)


def postgres_store(url: str, app: str, *secrets: bytes) -> PostgresStore:
    """A store with connections of its own, as each process has one."""
    make_tables(url)
    return PostgresStore(SharedState(url, secrets or (SECRET,)), app)
