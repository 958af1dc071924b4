"""A file that is moved or removed while it is written: no record is lost without a log line."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from tests.records.support import TIMEOUT, app_with, call_add, replies_in

from answerback.records import JSONL, Records, SQLite
from answerback.records.hash_chain import verify


@pytest.mark.parametrize("sink", [SQLite, JSONL])
@pytest.mark.parametrize("moved", [True, False])
def test_a_new_file_is_created_after_the_file_was_moved_or_removed(
    sink: type[SQLite | JSONL], moved: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "audit"
    records = Records(sink(path))
    app = app_with(records)
    call_add(app, 3)
    assert records.flush()
    for file in tmp_path.iterdir():
        if moved:
            file.rename(file.with_name(f"old-{file.name.removeprefix('audit')}"))
        else:
            file.unlink()

    call_add(app, 4)
    assert records.flush(TIMEOUT)
    records.close()

    assert len(replies_in(path)) == 4
    assert verify(str(path)).holds
    assert "moved or removed" in caplog.text
    assert not moved or len(replies_in(tmp_path / "old-")) == 3


@pytest.mark.parametrize("sink", [SQLite, JSONL])
def test_a_moved_file_keeps_its_records_and_a_new_file_has_the_later_ones(
    sink: type[SQLite | JSONL], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path, old = tmp_path / "audit", tmp_path / "audit.1"
    records = Records(sink(path))
    app = app_with(records)
    call_add(app, 100)
    assert records.flush(TIMEOUT)
    path.rename(old)

    call_add(app, 100)
    assert records.flush(TIMEOUT)
    records.close()

    assert [len(replies_in(old)), len(replies_in(path))] == [100, 100]
    assert verify(str(old)).holds
    assert verify(str(path)).holds
    assert "0 were lost; 100 earlier ones are in the previous file" in caplog.text


@pytest.mark.parametrize("sink", [SQLite, JSONL])
def test_records_in_a_removed_file_are_logged_as_lost(
    sink: type[SQLite | JSONL], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "audit"
    records = Records(sink(path))
    app = app_with(records)
    call_add(app, 3)
    assert records.flush(TIMEOUT)
    path.unlink()

    call_add(app, 4)
    assert records.flush(TIMEOUT)
    records.close()

    assert "3 were lost, 3 of them in a file that was removed" in caplog.text
    assert len(replies_in(path)) == 4


@pytest.mark.parametrize("sink", [SQLite, JSONL])
def test_records_in_a_file_removed_before_close_are_logged_as_lost(
    sink: type[SQLite | JSONL], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "audit"
    records = Records(sink(path))
    call_add(app_with(records), 3)
    assert records.flush(TIMEOUT)
    path.unlink()

    records.close()

    assert f"3 records were lost: {path} was removed" in caplog.text


@pytest.mark.parametrize("sink", [SQLite, JSONL])
def test_the_last_records_are_written_if_the_file_is_moved_just_before_close(
    sink: type[SQLite | JSONL], tmp_path: Path
) -> None:
    path, old = tmp_path / "audit", tmp_path / "audit.1"
    records = Records(sink(path))
    app = app_with(records)
    call_add(app, 3)
    assert records.flush(TIMEOUT)
    path.rename(old)

    call_add(app, 4)
    records.close()

    assert [len(replies_in(old)), len(replies_in(path))] == [3, 4]


def test_a_jsonl_file_that_was_copied_and_emptied_gets_new_chains(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path, copy = tmp_path / "audit.jsonl", tmp_path / "audit.1.jsonl"
    first, second = Records(JSONL(path)), Records(JSONL(path))
    for records in (first, second):
        call_add(app_with(records), 100)
        assert records.flush(TIMEOUT)
    # logrotate does this with `copytruncate`.
    copy.write_bytes(path.read_bytes())
    path.write_bytes(b"")

    call_add(app_with(first), 300)
    first.close()
    # The file is now longer than it was when the second writer last wrote to it.
    call_add(app_with(second), 5)
    second.close()

    verdict = verify(str(path))
    assert verdict.broken == ""
    assert [head.began for head in verdict.heads] == ["the file was emptied"] * 2
    assert [len(replies_in(copy)), len(replies_in(path))] == [200, 305]
    assert verify(str(copy)).holds
    assert "100 earlier ones were in the file when it was emptied" in caplog.text


def test_a_tail_that_is_cut_off_while_a_process_writes_is_not_taken_for_a_rotation(
    tmp_path: Path,
) -> None:
    path = tmp_path / "audit.jsonl"
    records = Records(JSONL(path))
    call_add(app_with(records), 10)
    assert records.flush(TIMEOUT)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-3]))

    call_add(app_with(records), 5)
    records.close()

    assert "number 9 should be here" in verify(str(path)).broken


def test_a_chain_without_a_written_record_starts_in_the_new_file(tmp_path: Path) -> None:
    path, old = tmp_path / "audit.db", tmp_path / "audit.1.db"
    first, second = Records(SQLite(path)), Records(SQLite(path))
    call_add(app_with(first), 3)
    first.close()
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        call_add(app_with(second), 4)
        assert not second.flush(0.5)
        path.rename(old)
        other.execute("ROLLBACK")

    assert second.flush(TIMEOUT)
    second.close()

    assert [len(replies_in(old)), len(replies_in(path))] == [3, 4]
    assert verify(str(path)).broken == ""


WRITE_IN_A_LOOP = """
import asyncio, sys
from tests.records.support import app_with
from answerback.records import Records, {sink}

records = Records({sink}(sys.argv[1]), check=False)
app = app_with(records)

async def calls():
    for number in range(50):
        await app.call("add", x=number, y=1)

for _ in range(60):
    asyncio.run(calls())
    assert records.flush(20)
records.close(20)
"""


@pytest.mark.parametrize("sink", ["SQLite", "JSONL"])
def test_no_record_is_lost_when_the_file_of_three_processes_is_moved_often(
    sink: str, tmp_path: Path
) -> None:
    path = tmp_path / "audit"
    command = [sys.executable, "-c", WRITE_IN_A_LOOP.format(sink=sink), str(path)]
    writers = [subprocess.Popen(command) for _ in range(3)]
    moved: list[Path] = []

    for writer in writers:
        # The pauses grow: a slow machine may take longer than the first ones to create the file.
        while not has_ended(writer, within=0.03 * 1.1 ** len(moved)):
            if path.exists():
                moved.append(path.rename(tmp_path / f"audit.{len(moved)}"))
    files = [*moved, path] if path.exists() else moved

    assert moved
    assert [writer.returncode for writer in writers] == [0, 0, 0]
    assert [verify(str(file)).broken for file in files] == [""] * len(files)
    assert sum(len(replies_in(file)) for file in files) == 3 * 60 * 50


def has_ended(process: subprocess.Popen[bytes], within: float) -> bool:
    try:
        process.wait(within)
    except subprocess.TimeoutExpired:
        return False
    return True


@pytest.mark.parametrize("sink", [SQLite, JSONL])
def test_two_writers_of_a_removed_file_both_start_chains_in_the_new_file(
    sink: type[SQLite | JSONL], tmp_path: Path
) -> None:
    path = tmp_path / "audit"
    both = [Records(sink(path)), Records(sink(path))]
    for records in both:
        call_add(app_with(records), 3)
        assert records.flush()
    for file in tmp_path.iterdir():
        file.unlink()

    for records in both:
        call_add(app_with(records), 4)
        assert records.flush(TIMEOUT)
    for records in both:
        records.close()

    assert verify(str(path)).holds
    assert [head.ended for head in verify(str(path)).heads] == [True, True]
    assert len(replies_in(path)) == 8
