"""The work of operators on the state: check whether it can be used, and seal it anew."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import psycopg

from ..types.describe import counted
from .database import MAX_CONNECTIONS
from .migrations import VERSION, WrongTables, check_version, migrate, version_of
from .sealing import CannotOpen, Sealer, place_of
from .shared import connected

_BATCH = 500
_REKEY_SECONDS = 86_400.0
_SEALED = ("record", "arguments", "answers", "result")
"""The sealed columns of the tasks. Each is written at its own time, so their keys may differ."""
_KEY_IDS = [f"substring({column} from 1 for 4)" for column in _SEALED]


class StateReport(msgspec.Struct, frozen=True):
    lines: tuple[str, ...]
    problems: int


def update_tables(url: str) -> str:
    """Make the tables, or bring them up to date; return what was done."""
    with connected(url) as connection:
        before, after = migrate(connection)
    if before == after:
        return f"the tables have version {after} already"
    return f"the tables have version {after} now" + (f", {before} before" if before else "")


def check_state(url: str, secrets: Sequence[bytes], *, processes: int) -> StateReport:
    """Say whether so many processes of servers and workers can use the database."""
    with connected(url) as connection:
        try:
            check_version(connection)
        except WrongTables as exc:
            return StateReport((f"problem: {exc}",), 1)
        checks = [
            _tables(connection),
            _connections(connection, processes),
            *_keys(connection, secrets),
        ]
    problems = sum(line.startswith("problem") for line in checks)
    return StateReport(tuple(checks), problems)


def _tables(connection: psycopg.Connection[Any]) -> str:
    found = version_of(connection)
    newer = f"; this program needs {VERSION}, and can use them" if found != VERSION else ""
    return f"tables: version {found}{newer}"


def _connections(connection: psycopg.Connection[Any], processes: int) -> str:
    limit = int(_one(connection, "SELECT current_setting('max_connections')"))
    wanted = processes * (MAX_CONNECTIONS + 1)
    text = f"{counted(processes, 'process', 'processes')} may open {wanted} of {limit} connections"
    if wanted >= limit:
        return f"problem: {text}; raise max_connections, or put a pooler in front"
    return f"connections: {text}"


def _keys(connection: psycopg.Connection[Any], secrets: Sequence[bytes]) -> list[str]:
    """Count the rows that each secret has sealed."""
    query = (
        "SELECT seal, count(DISTINCT number) FROM answerback.tasks,"
        f" unnest(ARRAY[{', '.join(_KEY_IDS)}]) AS seal WHERE seal IS NOT NULL GROUP BY 1"
    )
    rows = {bytes(key): count for key, count in connection.execute(query.encode())}
    if not secrets:
        total = counted(sum(rows.values()), "record")
        return [f"secrets: {total}; set ANSWERBACK_SECRET to see which secret each one needs"]
    lines = []
    for number, secret in enumerate(secrets, 1):
        count = rows.pop(Sealer(secret).first, 0)
        can_go = " and can go" if number > 1 and not count else ""
        lines.append(f"secrets: number {number} has sealed {counted(count, 'record')}{can_go}")
    if rows:
        total = counted(sum(rows.values()), "record")
        lines.append(f"problem: {total} were sealed with another secret, and cannot be read")
    return lines


def rekey(url: str, secrets: Sequence[bytes]) -> int:
    """Seal all records with the first secret; return how many. Servers may run meanwhile."""
    sealer = Sealer(*secrets)
    needs_it = " OR ".join(f"{key} <> %s" for key in _KEY_IDS)
    query = (
        f"SELECT number FROM answerback.tasks WHERE number > %s AND ({needs_it})"
        " ORDER BY number LIMIT %s"
    )
    done, last = 0, 0
    with connected(url, _REKEY_SECONDS) as connection:
        while True:
            values = (last, *[sealer.first] * len(_SEALED), _BATCH)
            rows = connection.execute(query.encode(), values).fetchall()
            if not rows:
                return done
            for [number] in rows:
                # One at a time: a server waits for a locked record, and gives up after seconds.
                with connection.transaction():
                    done += _seal_anew(connection, sealer, number)
            last = int(rows[-1][0])


def _seal_anew(connection: psycopg.Connection[Any], sealer: Sealer, number: int) -> int:
    row = connection.execute(
        f"SELECT app, owner, id, {', '.join(_SEALED)} FROM answerback.tasks"
        " WHERE number = %s FOR UPDATE".encode(),
        (number,),
    ).fetchone()
    if row is None:
        return 0
    app, owner, id, *values = row
    sealed = []
    try:
        for column, value in zip(_SEALED, values, strict=True):
            place = place_of(app, owner, id, column)
            opened = None if value is None else sealer.open(bytes(value), place)
            sealed.append(None if opened is None else sealer.seal(opened, place))
    except CannotOpen:
        return 0
    assignments = ", ".join(f"{column} = %s" for column in _SEALED)
    connection.execute(
        f"UPDATE answerback.tasks SET {assignments} WHERE number = %s".encode(), (*sealed, number)
    )
    return 1


def _one(connection: psycopg.Connection[Any], query: str) -> Any:
    row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return row[0]
