"""The operator's commands for the state: create its tables, check it, and rekey it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import msgspec
import psycopg

from ..core.signing import SECRET
from ..types.problems import counted
from .database import (
    MAX_CONNECTIONS,
    VERSION,
    WrongTables,
    check_tables,
    check_version,
    migrate,
    version_of,
)
from .sealing import KEY_PLACE, CannotOpen, Sealer, place_of
from .shared import LONG_SECONDS, check_secret, connected

_BATCH, _BATCH_BYTES = 100, 4 * 1024 * 1024
"""The maximum number of records per transaction, and of bytes unless there is only one record."""
_UNBOUND = (
    "no secret is bound to the database yet, and the first server would decide which one is right; "
    f"set {SECRET}, and run: answerback state init"
)


class SealedTable(msgspec.Struct, frozen=True):
    """A table with sealed columns. Columns written at different times may have different keys."""

    name: str
    key: tuple[str, ...]
    """The columns of the primary key."""
    place: tuple[str, ...]
    """SQL expressions for the place of a sealed value, without its last part."""
    columns: dict[str, str]
    """The sealed columns, and the last part of the place of each."""

    @property
    def key_ids(self) -> list[str]:
        """SQL expressions for the ids of the keys that sealed a row."""
        return [f"substring({column} from 1 for 4)" for column in self.columns]


_TASK_COLUMNS = ("record", "arguments", "answers", "result")
# Messages between processes are left out, because they are removed after a minute.
_TABLES = (
    SealedTable(
        "tasks", ("number",), ("app", "owner", "id"), {each: each for each in _TASK_COLUMNS}
    ),
    SealedTable(
        "sessions", ("app", "nonce"), ("app", "encode(nonce, 'hex')"), {"state": "session"}
    ),
    SealedTable("wholes", ("number",), ("app", "owner", "encode(digest, 'hex')"), {"body": "body"}),
    SealedTable("fingerprint_key", ("id",), (), {"sealed": KEY_PLACE}),
)


class StateReport(msgspec.Struct, frozen=True):
    lines: tuple[str, ...]
    problems: int


def update_tables(url: str, secrets: Sequence[bytes]) -> str:
    """Create or update the tables, and bind them to the secret; return a report."""
    with connected(url, LONG_SECONDS) as connection, connection.transaction():
        before, after = migrate(connection)
        if secrets:
            check_secret(connection, Sealer(*secrets))
        unbound = "" if _is_bound(connection) else f"\n{_UNBOUND}"
    if before == after:
        return f"the tables already have version {after}{unbound}"
    earlier = f", up from {before}" if before else ""
    return f"the tables now have version {after}{earlier}{unbound}"


def check_state(url: str, secrets: Sequence[bytes], *, processes: int) -> StateReport:
    """Report whether this many server and worker processes can use the database."""
    # This reads every record to count how many need each secret.
    with connected(url, LONG_SECONDS) as connection:
        try:
            check_version(connection)
            check_tables(connection)
        except WrongTables as exc:
            return StateReport((f"problem: {exc}",), 1)
        found = version_of(connection)
        newer = f"; this program needs {VERSION}, and can use them" if found != VERSION else ""
        lines = [f"tables: version {found}{newer}"]
        limit = int(_one(connection, "SELECT current_setting('max_connections')"))
        wanted = processes * (MAX_CONNECTIONS + 1)
        text = f"{counted(processes, 'process', 'processes')} may open {wanted} of {limit}"
        if wanted >= limit:
            advice = "raise max_connections, or put a pooler in front"
            lines.append(f"problem: {text} connections; {advice}")
        else:
            lines.append(f"connections: {text} connections")
        if not _is_bound(connection):
            lines.append(f"warning: {_UNBOUND}")
        lines += _keys(connection, secrets)
    return StateReport(tuple(lines), sum(line.startswith("problem") for line in lines))


def _is_bound(connection: psycopg.Connection[Any]) -> bool:
    """Return whether the database has a key sealed with a secret."""
    return bool(_one(connection, "SELECT EXISTS (SELECT FROM answerback.fingerprint_key)"))


def _keys(connection: psycopg.Connection[Any], secrets: Sequence[bytes]) -> list[str]:
    """Count the rows sealed with each secret."""
    rows: Counter[bytes] = Counter()
    for table in _TABLES:
        query = (
            f"SELECT seal, count(DISTINCT ({', '.join(table.key)})) FROM answerback.{table.name},"
            f" unnest(ARRAY[{', '.join(table.key_ids)}]) AS seal WHERE seal IS NOT NULL GROUP BY 1"
        )
        for key, count in connection.execute(query.encode()):
            rows[bytes(key)] += count
    if not secrets:
        total = counted(sum(rows.values()), "record")
        return [f"secrets: {total}; set ANSWERBACK_SECRET to see which secret each one needs"]
    lines = []
    for number, secret in enumerate(secrets, 1):
        count = rows.pop(Sealer(secret).first, 0)
        can_go = " and can go" if number > 1 and not count else ""
        lines.append(f"secrets: number {number} has sealed {counted(count, 'record')}{can_go}")
    if rows:
        count = sum(rows.values())
        total = f"{counted(count, 'record')} {'was' if count == 1 else 'were'}"
        lines.append(f"problem: {total} sealed with another secret, and cannot be read")
    return lines


def rekey(url: str, secrets: Sequence[bytes]) -> int:
    """Seal all records with the first secret; return how many. Servers may keep running."""
    sealer = Sealer(*secrets)
    with connected(url, LONG_SECONDS) as connection:
        return sum(_rekey_table(connection, sealer, table) for table in _TABLES)


def _rekey_table(connection: psycopg.Connection[Any], sealer: Sealer, table: SealedTable) -> int:
    key = ", ".join(table.key)
    needs_it = " OR ".join(f"{each} <> %s" for each in table.key_ids)
    size = " + ".join(f"coalesce(octet_length({each}), 0)" for each in table.columns)
    firsts = [sealer.first] * len(table.columns)
    done = 0
    last: tuple[Any, ...] = ()
    while True:
        later = f" AND ({key}) > ({', '.join(['%s'] * len(last))})" if last else ""
        query = (
            f"SELECT {key}, {size} FROM answerback.{table.name} WHERE ({needs_it}){later}"
            f" ORDER BY {key} LIMIT {_BATCH}"
        )
        rows = connection.execute(query.encode(), (*firsts, *last)).fetchall()
        if not rows:
            return done
        last = rows[-1][:-1]
        while rows:
            # A few at a time: servers wait for locked records, and give up after a few seconds.
            totals = accumulate(row[-1] for row in rows)
            count = max(1, sum(total <= _BATCH_BYTES for total in totals))
            batch, rows = [tuple(row) for *row, _ in rows[:count]], rows[count:]
            sealed = _rekey_rows(connection, sealer, table, batch, "FOR UPDATE SKIP LOCKED")
            for each in set(batch) - sealed.keys():
                # One by one: waiting for a lock while holding others could deadlock.
                sealed |= _rekey_rows(connection, sealer, table, [each], "FOR UPDATE")
            done += sum(sealed.values())


def _rekey_rows(
    connection: psycopg.Connection[Any],
    sealer: Sealer,
    table: SealedTable,
    keys: Sequence[tuple[Any, ...]],
    lock: str,
) -> dict[tuple[Any, ...], bool]:
    """Seal rows with the first secret in one transaction; return which could be opened.

    Rows that no longer exist are left out, as are rows skipped because they are locked.
    """
    key, width = ", ".join(table.key), len(table.key)
    one = f"({', '.join(['%s'] * width)})"
    found = {}
    changes = []
    with connection.transaction(), connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {', '.join([*table.key, *table.place, *table.columns])}"
            f" FROM answerback.{table.name} WHERE ({key}) IN ({', '.join([one] * len(keys))})"
            f" {lock}".encode(),
            [value for each in keys for value in each],
        )
        for row in cursor.fetchall():
            place, values = row[width : -len(table.columns)], row[-len(table.columns) :]
            sealed = _sealed_values(sealer, table, place, values)
            found[row[:width]] = sealed is not None
            if sealed is not None:
                changes.append((*sealed, *row[:width]))
        assignments = ", ".join(f"{column} = %s" for column in table.columns)
        update = f"UPDATE answerback.{table.name} SET {assignments} WHERE ({key}) = {one}"
        cursor.executemany(update.encode(), changes)
    return found


def _sealed_values(
    sealer: Sealer, table: SealedTable, place: Sequence[str], values: Sequence[bytes | None]
) -> list[bytes | None] | None:
    """Return a row's columns, sealed with the first secret; None if one cannot be opened."""
    sealed: list[bytes | None] = []
    try:
        for part, value in zip(table.columns.values(), values, strict=True):
            owner = place_of(*place, part)
            opened = None if value is None else sealer.open(bytes(value), owner)
            sealed.append(None if opened is None else sealer.seal(opened, owner))
    except CannotOpen:
        return None
    return sealed


def _one(connection: psycopg.Connection[Any], query: str) -> Any:
    row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return row[0]
