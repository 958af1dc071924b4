"""SwitchRows: what was enabled or disabled in an app, kept for all its processes."""

from __future__ import annotations

from .database import Database


class SwitchRows:
    def __init__(self, database: Database, app: str) -> None:
        self._database = database
        self._app = app

    def keep(self, part: int, what: str, value: str, *, on: bool) -> None:
        """Make this the last switch; it stays, even after a crash."""
        self._database.rows(
            "INSERT INTO answerback.switches (app, part, what, value, is_on)"
            " VALUES (%s, %s, %s, %s, %s) ON CONFLICT (app, part, what, value) DO UPDATE"
            " SET is_on = excluded.is_on, number = nextval('answerback.switch_numbers')",
            *(self._app, part, what, value, on),
        )

    def all(self) -> list[tuple[int, str, str, bool]]:
        """Return all switches, the last one last."""
        query = "SELECT part, what, value, is_on FROM answerback.switches WHERE app = %s"
        return [tuple(row) for row in self._database.rows(f"{query} ORDER BY number", self._app)]
