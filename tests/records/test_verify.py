"""verify detects records that were changed, removed, added or cut off."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from tests.records.support import app_with

from answerback.records import JSONL, Records, SQLite
from answerback.records.hash_chain import verify
from answerback.records.reader import CannotRead


def record_calls(sink: SQLite | JSONL, calls: int = 5) -> None:
    """Record calls from the start to the end of a chain, as one process does."""
    records = Records(sink, check=False)
    app = app_with(records)

    async def run() -> None:
        for number in range(calls):
            await app.call("add", x=number, y=1)

    asyncio.run(run())
    records.close()


@pytest.fixture
def audit_db(tmp_path: Path) -> Path:
    record_calls(SQLite(tmp_path / "audit.db"))
    return tmp_path / "audit.db"


def tamper(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement)


def test_unchanged_records_are_valid_and_their_chain_has_ended(audit_db: Path) -> None:
    verdict = verify(str(audit_db))

    assert verdict.holds
    assert [(head.records, head.ended) for head in verdict.heads] == [(7, True)]


@pytest.mark.parametrize(
    ("statement", "where"),
    [
        ("UPDATE records SET body = replace(body, 'add', 'sub') WHERE id = 4", "record 4"),
        ("UPDATE records SET hash = 'x' WHERE id = 3", "record 3"),
        ("DELETE FROM records WHERE id = 4", "record 5"),
        ("UPDATE records SET chain = 'other' WHERE id = 4", "record 4"),
        ("UPDATE records SET seq = 9 WHERE id = 2", "record 2"),
        ("UPDATE records SET body = x'ff00' WHERE id = 6", "record 6"),
        ("INSERT INTO records SELECT 99, chain, 8, hash, body FROM records WHERE id = 7", "99"),
    ],
)
def test_verify_names_the_first_record_that_was_tampered_with(
    audit_db: Path, statement: str, where: str
) -> None:
    tamper(audit_db, statement)

    assert where in verify(str(audit_db)).broken


def test_a_cut_tail_is_detected_by_a_head_that_was_noted_before(audit_db: Path) -> None:
    head = verify(str(audit_db)).heads[0].hash
    tamper(audit_db, "DELETE FROM records WHERE id > 4")

    assert verify(str(audit_db)).holds
    assert verify(str(audit_db)).heads[0].ended is False
    assert "a tail was cut" in verify(str(audit_db), [head]).broken


def test_the_hash_of_an_earlier_record_is_accepted_as_a_head(audit_db: Path) -> None:
    with closing(sqlite3.connect(audit_db)) as connection:
        (earlier,) = connection.execute("SELECT hash FROM records WHERE id = 3").fetchone()

    assert verify(str(audit_db), [earlier]).holds


@pytest.mark.parametrize("name", ["audit.db", "audit.jsonl"])
def test_the_chain_of_a_later_process_reveals_a_cut_in_an_earlier_one(
    tmp_path: Path, name: str
) -> None:
    path = tmp_path / name
    sink = JSONL(path) if name.endswith("l") else SQLite(path)
    record_calls(sink, calls=3)
    record_calls(sink, calls=3)
    assert verify(str(path)).holds

    if isinstance(sink, SQLite):
        tamper(path, "DELETE FROM records WHERE id = 5")
    else:
        lines = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(b"".join([*lines[:4], *lines[5:]]))

    assert "a tail was cut" in verify(str(path)).broken


def test_a_torn_line_is_listed_and_the_lines_after_it_are_verified(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    record_calls(JSONL(path), calls=2)
    whole = path.read_bytes()
    path.write_bytes(whole[:-30])
    record_calls(JSONL(path), calls=2)

    verdict = verify(str(path))

    assert verdict.torn == [4]
    assert verdict.holds
    assert [head.ended for head in verdict.heads] == [False, True]


def test_events_with_arguments_and_content_are_valid(tmp_path: Path) -> None:
    records = Records(SQLite(tmp_path / "a.db"), arguments=True, content=True)
    asyncio.run(app_with(records).call("add", x=1, y=2))
    records.close()

    assert verify(str(tmp_path / "a.db")).holds


def test_a_database_without_records_is_refused(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "other.db")) as connection, connection:
        connection.execute("CREATE TABLE other (x)")

    with pytest.raises(CannotRead, match="records"):
        verify(str(tmp_path / "other.db"))


@pytest.mark.parametrize(
    "change",
    [
        lambda line: line.replace(b'"event":', b'"event":{"tool":"other"},"event":', 1),
        lambda line: line.replace(b'{"chain":', b'{"seq":1,"chain":', 1),
        lambda line: line.replace(b'{"chain":', b'{"note":"added","chain":', 1),
        lambda line: line.replace(b'"seq":', b'"seq": ', 1),
    ],
)
def test_verify_refuses_a_line_with_other_members_than_were_written(
    change: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    path = tmp_path / "audit.jsonl"
    record_calls(JSONL(path), calls=3)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2], change(lines[2]), *lines[3:]]))

    verdict = verify(str(path))

    assert "record 3, number 3" in verdict.broken
    assert "its line was changed" in verdict.broken


@pytest.mark.parametrize("kind", ["foreign", "of its own chain"])
def test_a_line_in_the_middle_that_no_killed_process_left_is_not_a_record(
    kind: str, tmp_path: Path
) -> None:
    path = tmp_path / "audit.jsonl"
    record_calls(JSONL(path), calls=5)
    lines = path.read_bytes().splitlines(keepends=True)

    added = b"x\n" if kind == "foreign" else lines[3][:60] + b"\n"
    path.write_bytes(b"".join([*lines[:3], added, *lines[3:]]))
    verdict = verify(str(path))

    assert not verdict.holds
    assert verdict.broken.startswith("not a record: line 4")
