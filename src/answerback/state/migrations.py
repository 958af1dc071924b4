"""The tables in PostgreSQL, made by numbered steps; a server runs on its own number and the next.

Steps only go forward. They run in one transaction under a lock, so that two hosts may begin them at
the same time, and it is rolled back unless the tables then have all that `steps/made.txt` lists. A
step never changes after a release: the database keeps its checksum.
"""

from __future__ import annotations

import hashlib
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import AnswerbackError

if TYPE_CHECKING:
    import psycopg

VERSION = 3
"""The tables' version that this code needs."""
_LOCK = 0x616E7377
"""The number of the advisory lock for migrations."""
_TABLE = "answerback.schema_version"
_STEPS = files(__package__) / "steps"
_MADE = """
SELECT relname || '.' || attname || ' ' || typname FROM pg_class JOIN pg_attribute
    ON attrelid = pg_class.oid AND attnum > 0 AND NOT attisdropped
    JOIN pg_type ON pg_type.oid = atttypid
    WHERE relnamespace = 'answerback'::regnamespace AND relkind = 'r'
UNION ALL SELECT 'index ' || relname FROM pg_class
    WHERE relnamespace = 'answerback'::regnamespace AND relkind = 'i'
UNION ALL SELECT 'function ' || proname FROM pg_proc
    WHERE pronamespace = 'answerback'::regnamespace
"""
_MEND = (
    "another build of Answerback made them, or they were changed by hand; drop the schema "
    "answerback with all its records, and run: answerback state init"
)
_MAX_NAMED = 5


class WrongTables(AnswerbackError):
    """The database lacks the tables, or has them in another version."""

    code = "WRONG_TABLES"


def version_of(connection: psycopg.Connection[Any]) -> int:
    """Return the version of the tables; 0 if there are none.

    Raises WrongTables if they were made by other steps than this program's.
    """
    exists = connection.execute("SELECT to_regclass(%s) IS NOT NULL", (_TABLE,)).fetchone()
    if exists is None or not exists[0]:
        return 0
    # The tables of versions 1 and 2 have no column for the checksum.
    query = f"SELECT version, to_jsonb(step) ->> 'checksum' FROM {_TABLE} AS step ORDER BY 1"
    rows = connection.execute(query.encode()).fetchall()
    for version, checksum in rows:
        if checksum is not None and version <= VERSION and checksum != _step(version).checksum:
            name = _step(version).name
            raise WrongTables(f"the tables were not made by this program's step {name}: {_MEND}")
    return int(rows[-1][0]) if rows else 0


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
        steps = {number: _step(number) for number in range(before + 1, VERSION + 1)}
        for step in steps.values():
            connection.execute(step.text.encode())
        # Only the last step is sure to have made the column.
        for number, step in steps.items():
            connection.execute(
                "INSERT INTO answerback.schema_version (version, checksum) VALUES (%s, %s)",
                (number, step.checksum),
            )
        check_tables(connection)
    return before, max(before, VERSION)


def check_tables(connection: psycopg.Connection[Any]) -> None:
    """Raise WrongTables unless tables of this program's version are complete."""
    if version_of(connection) != VERSION:
        return
    made = {row[0] for row in connection.execute(_MADE)}
    missing = sorted(set((_STEPS / "made.txt").read_text("utf-8").splitlines()) - made)
    if missing:
        names = ", ".join(missing[:_MAX_NAMED]) + (", …" if len(missing) > _MAX_NAMED else "")
        raise WrongTables(f"the tables of the state lack {names}: {_MEND}")


class _Step(NamedTuple):
    name: str
    text: str

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()


def _step(number: int) -> _Step:
    [step] = [each for each in _STEPS.iterdir() if each.name.startswith(f"{number:03}_")]
    return _Step(step.name, step.read_text(encoding="utf-8"))
