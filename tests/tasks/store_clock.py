"""A clock that tests set, for stores of tasks."""

from __future__ import annotations

import psycopg

NOW = 1_000_000.0


class StoreClock:
    """The time of a store; it stands still until a test sets it."""

    def __init__(self) -> None:
        self._time = NOW
        self.url = ""
        """The database whose time it is; empty for a store that asks this clock."""

    def __call__(self) -> float:
        return self._time

    def set(self, time: float) -> None:
        self._time = time
        if self.url:
            statement = (
                "CREATE OR REPLACE FUNCTION answerback.now() RETURNS double precision"
                f" LANGUAGE sql AS 'SELECT {time}::double precision'"
            )
            with psycopg.connect(self.url, autocommit=True) as connection:
                connection.execute(statement.encode())
