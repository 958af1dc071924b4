"""Homes: the numbers of the processes that serve an app, and which of them live."""

from __future__ import annotations

from ..errors import AnswerbackError
from .database import NOW, Database

_KEPT = 86_400
"""Seconds for which a number is not given again: as long as a session lives."""
_MAX = 65_535
"""A session id has two bytes for the number."""
_LOCK = 0x616E7379
"""The number of the advisory lock for taking a number."""


class NoHomeLeft(AnswerbackError):
    """All numbers were given within a day."""

    code = "NO_HOME_LEFT"


class Homes:
    """Gives this process its number, and knows the other processes of the app."""

    def __init__(self, database: Database, app: str) -> None:
        self._database = database
        self._app = app

    def take(self) -> int:
        """Return a number that no process had within a day; raises Unavailable or NoHomeLeft."""
        with self._database.transaction() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
            cursor.execute(f"DELETE FROM answerback.homes WHERE seen < {NOW} - {_KEPT}")
            cursor.execute(
                "INSERT INTO answerback.homes (number, app, seen)"
                f" SELECT free.number, %s, {NOW} FROM generate_series(1, {_MAX}) AS free(number)"
                " WHERE NOT EXISTS (SELECT 1 FROM answerback.homes AS h"
                " WHERE h.number = free.number) ORDER BY free.number LIMIT 1 RETURNING number",
                (self._app,),
            )
            row = cursor.fetchone()
        if row is None:
            raise NoHomeLeft(f"the database has given {_MAX} processes a number within a day")
        return int(row[0])

    def beat(self, number: int, patience: float) -> frozenset[int]:
        """Say that this process lives; return the numbers of those that did within *patience*."""
        with self._database.transaction(durable=False) as cursor:
            cursor.execute(f"UPDATE answerback.homes SET seen = {NOW} WHERE number = %s", (number,))
            cursor.execute(
                "SELECT number FROM answerback.homes"
                f" WHERE app = %s AND NOT has_left AND seen > {NOW} - %s",
                (self._app, patience),
            )
            return frozenset(row[0] for row in cursor.fetchall())

    def leave(self, number: int) -> None:
        """Say that this process ends."""
        self._database.rows("UPDATE answerback.homes SET has_left = true WHERE number = %s", number)
