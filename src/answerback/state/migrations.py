"""The tables in PostgreSQL, made by numbered steps; a server runs on its own number and the next.

Steps only go forward. Each runs in one transaction under a lock, so that two hosts may begin it at
the same time.
"""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, Any

from ..errors import AnswerbackError

if TYPE_CHECKING:
    import psycopg

VERSION = 3
"""The tables' version that this code needs."""
_LOCK = 0x616E7377
"""The number of the advisory lock for migrations."""
_TABLE = "answerback.schema_version"


class WrongTables(AnswerbackError):
    """The database lacks the tables, or has them in another version."""

    code = "WRONG_TABLES"


def version_of(connection: psycopg.Connection[Any]) -> int:
    """Return the version of the tables; 0 if there are none."""
    exists = connection.execute("SELECT to_regclass(%s) IS NOT NULL", (_TABLE,)).fetchone()
    if exists is None or not exists[0]:
        return 0
    row = connection.execute("SELECT max(version) FROM answerback.schema_version").fetchone()
    return 0 if row is None or row[0] is None else int(row[0])


def check_version(connection: psycopg.Connection[Any]) -> None:
    """Raise WrongTables unless this code can use the tables; say the command that mends it."""
    found = version_of(connection)
    if found == 0:
        raise WrongTables(
            "the database has no tables of Answerback yet; "
            "make them with: answerback state init URL, or start with --state-init"
        )
    if found < VERSION:
        raise WrongTables(
            f"the tables of the state have version {found}, and this program needs {VERSION}; "
            "bring them up to date with: answerback state upgrade URL"
        )
    if found > VERSION + 1:
        raise WrongTables(
            f"the tables of the state have version {found}, and this program knows versions up "
            f"to {VERSION + 1}; install a later version of Answerback"
        )


def migrate(connection: psycopg.Connection[Any]) -> tuple[int, int]:
    """Bring the tables up to date; return the versions before and after."""
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        before = version_of(connection)
        for number in range(before + 1, VERSION + 1):
            connection.execute(_step(number).encode())
            connection.execute(
                "INSERT INTO answerback.schema_version (version) VALUES (%s)", (number,)
            )
    return before, max(before, VERSION)


def _step(number: int) -> str:
    folder = files(__package__) / "steps"
    [step] = [each for each in folder.iterdir() if each.name.startswith(f"{number:03}_")]
    return step.read_text(encoding="utf-8")
