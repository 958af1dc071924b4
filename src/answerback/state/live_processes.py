"""LiveProcesses: how many processes of an app use the database now.

Another source of that number can replace it: the limits only call `beat` and `leave`.
"""

from __future__ import annotations

import os
import secrets

from .database import NOW, Database

_PATIENCE = 10
"""A process that has not been seen for these seconds does not count."""
_KEPT = 60
"""The seconds after which the row of a dead process is removed."""


class LiveProcesses:
    """Counts the processes that call `beat` every few seconds."""

    def __init__(self, database: Database, app: str) -> None:
        self._database = database
        self._app = app
        self._pid = 0
        self._name = ""

    def beat(self) -> int:
        """Say that this process lives; return how many do. Raises Unavailable."""
        if self._pid != os.getpid():
            self._pid, self._name = os.getpid(), secrets.token_hex(8)
        with self._database.transaction(durable=False) as cursor:
            cursor.execute(
                f"INSERT INTO answerback.processes (name, app, seen) VALUES (%s, %s, {NOW})"
                " ON CONFLICT (name) DO UPDATE SET seen = excluded.seen",
                (self._name, self._app),
            )
            cursor.execute(
                "DELETE FROM answerback.processes WHERE name IN (SELECT name FROM"
                f" answerback.processes WHERE seen < {NOW} - {_KEPT} FOR UPDATE SKIP LOCKED)"
            )
            cursor.execute(
                "SELECT count(*) FROM answerback.processes"
                f" WHERE app = %s AND seen > {NOW} - {_PATIENCE}",
                (self._app,),
            )
            row = cursor.fetchone()
        return 1 if row is None else max(1, int(row[0]))

    def leave(self) -> None:
        """Say that this process ends; raises Unavailable."""
        self._database.rows("DELETE FROM answerback.processes WHERE name = %s", self._name)
