"""The work of operators on the state: check whether it can be used, and seal it anew."""

from __future__ import annotations

from collections import Counter
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


class _Sealed(msgspec.Struct, frozen=True):
    """A table with sealed columns. Each is written at its own time, so their keys may differ."""

    table: str
    id: str
    """The id in the place of a sealed value, in SQL."""
    columns: tuple[str, ...]

    @property
    def key_ids(self) -> list[str]:
        return [f"substring({column} from 1 for 4)" for column in self.columns]


_TABLES = (
    _Sealed("answerback.tasks", "id", ("record", "arguments", "answers", "result")),
    _Sealed("answerback.wholes", "encode(digest, 'hex')", ("body",)),
)


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
    rows: Counter[bytes] = Counter()
    for each in _TABLES:
        query = (
            f"SELECT seal, count(DISTINCT number) FROM {each.table},"
            f" unnest(ARRAY[{', '.join(each.key_ids)}]) AS seal"
            " WHERE seal IS NOT NULL GROUP BY 1"
        )
        rows.update({bytes(key): count for key, count in connection.execute(query.encode())})
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
    with connected(url, _REKEY_SECONDS) as connection:
        return sum(_rekey(connection, sealer, each) for each in _TABLES)


def _rekey(connection: psycopg.Connection[Any], sealer: Sealer, sealed: _Sealed) -> int:
    needs_it = " OR ".join(f"{key} <> %s" for key in sealed.key_ids)
    query = (
        f"SELECT number FROM {sealed.table} WHERE number > %s AND ({needs_it})"
        " ORDER BY number LIMIT %s"
    )
    done, last = 0, 0
    while True:
        values = (last, *[sealer.first] * len(sealed.columns), _BATCH)
        rows = connection.execute(query.encode(), values).fetchall()
        if not rows:
            return done
        for [number] in rows:
            # One at a time: a server waits for a locked record, and gives up after seconds.
            with connection.transaction():
                done += _seal_anew(connection, sealer, sealed, number)
        last = int(rows[-1][0])


def _seal_anew(
    connection: psycopg.Connection[Any], sealer: Sealer, sealed: _Sealed, number: int
) -> int:
    row = connection.execute(
        f"SELECT app, owner, {sealed.id}, {', '.join(sealed.columns)} FROM {sealed.table}"
        " WHERE number = %s FOR UPDATE".encode(),
        (number,),
    ).fetchone()
    if row is None:
        return 0
    app, owner, id, *values = row
    anew = []
    try:
        for column, value in zip(sealed.columns, values, strict=True):
            place = place_of(app, owner, id, column)
            opened = None if value is None else sealer.open(bytes(value), place)
            anew.append(None if opened is None else sealer.seal(opened, place))
    except CannotOpen:
        return 0
    assignments = ", ".join(f"{column} = %s" for column in sealed.columns)
    connection.execute(
        f"UPDATE {sealed.table} SET {assignments} WHERE number = %s".encode(), (*anew, number)
    )
    return 1


def _one(connection: psycopg.Connection[Any], query: str) -> Any:
    row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return row[0]
