"""Sinks that fail or hang: every call is answered, and lost records are logged."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from tests.records.support import TIMEOUT, MemorySink, app_with, call_add, replies_in

from answerback import App, Reply
from answerback.records import JSONL, Records, SQLite
from answerback.records.hash_chain import verify
from answerback.records.recorder import CallRecord


def test_a_full_disk_loses_records_but_every_call_is_answered(
    caplog: pytest.LogCaptureFixture,
) -> None:
    records = Records(JSONL("/dev/full"))

    call_add(app_with(records), 20)
    records.close()

    assert "No space left on device" in caplog.text
    assert "20 records were lost" in caplog.text


def test_a_single_lost_record_is_logged_in_the_singular(caplog: pytest.LogCaptureFixture) -> None:
    records = Records(JSONL("/dev/full"))

    call_add(app_with(records))
    records.close()

    assert "1 record was lost" in caplog.text


FILL_THE_DISK = """
import asyncio, logging, resource, signal, sys
from tests.records.support import app_with
from answerback.records import Records, {sink}

logging.basicConfig()
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
records = Records({sink}(sys.argv[1]), check=False)
app = app_with(records)

async def calls(count):
    for number in range(count):
        assert (await app.call("add", x=number, y=1)).ok

asyncio.run(calls(10))
assert records.flush()
resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, resource.RLIM_INFINITY))
asyncio.run(calls(1000))
print("flushed while full:", records.flush(1))
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print("flushed afterwards:", records.flush(15))
records.close()
"""


@pytest.mark.parametrize("sink", ["SQLite", "JSONL"])
def test_waiting_records_are_written_when_the_disk_has_room_again(
    sink: str, tmp_path: Path
) -> None:
    path = tmp_path / "audit"
    command = [sys.executable, "-c", FILL_THE_DISK.format(sink=sink), str(path)]

    done = subprocess.run(command, capture_output=True, text=True, timeout=60)

    assert done.stdout == "flushed while full: False\nflushed afterwards: True\n", done.stderr
    assert "records cannot be written" in done.stderr
    assert "records are being written to" in done.stderr
    assert len(replies_in(path)) == 1010
    assert verify(str(path)).holds


LEAVE_A_CALL = """
import asyncio, sys
from answerback import App
from answerback.records import JSONL, Records

app = App("calls", records=Records(JSONL(sys.argv[1])))

@app.tool
async def run(started: bool) -> bool:
    if not started:
        await asyncio.Event().wait()
    return True

async def leave_a_call():
    await app.call("run", started=True)
    task = asyncio.ensure_future(app.call("run", started=False))
    await asyncio.sleep(0)
    return task

task = asyncio.new_event_loop().run_until_complete(leave_a_call())
"""


def test_a_call_that_the_program_left_running_does_not_keep_the_process(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    command = [sys.executable, "-c", LEAVE_A_CALL, str(path)]

    done = subprocess.run(command, capture_output=True, text=True, timeout=60)

    assert done.returncode == 0
    assert "1 record was lost: the process ended" in done.stderr
    assert len(replies_in(path)) == 1


def test_records_wait_for_a_locked_database(tmp_path: Path) -> None:
    path = tmp_path / "audit.db"
    SQLite(path).open().close()
    records = Records(SQLite(path))
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        call_add(app_with(records), 5)
        assert not records.flush(0.1)
        other.execute("ROLLBACK")

    assert records.flush(TIMEOUT)
    records.close()

    assert len(replies_in(path)) == 5


def test_a_corrupt_database_loses_records_but_every_call_is_answered(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "audit.db"
    path.write_bytes(b"this was a database once" * 500)
    records = Records(SQLite(path))

    call_add(app_with(records), 3)
    records.close()

    assert "file is not a database" in caplog.text
    assert "3 records were lost" in caplog.text
    assert path.read_bytes().startswith(b"this was a database once")


def test_waiting_records_are_written_when_a_corrupt_database_was_removed(tmp_path: Path) -> None:
    path = tmp_path / "audit.db"
    path.write_bytes(b"this was a database once" * 500)
    records = Records(SQLite(path))
    call_add(app_with(records), 3)
    assert not records.flush(0.1)
    path.unlink()

    assert records.flush(TIMEOUT)
    records.close()

    assert len(replies_in(path)) == 3


def test_a_hanging_sink_delays_no_call_and_lost_records_are_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    sink = MemorySink()
    sink.gate.clear()
    records = Records(sink, max_waiting=10)
    app = app_with(records)

    call_add(app)
    records.flush(0)
    assert sink.entered.wait(TIMEOUT)
    call_add(app, 50)
    records.close(0.1)

    assert "records are being lost" in caplog.text
    assert "51 records were lost: memory takes too long" in caplog.text
    sink.gate.set()


def test_the_number_of_records_lost_by_a_full_queue_is_recorded(
    caplog: pytest.LogCaptureFixture,
) -> None:
    sink = MemorySink()
    sink.gate.clear()
    records = Records(sink, max_waiting=10)
    app = app_with(records)
    call_add(app)
    records.flush(0)
    assert sink.entered.wait(TIMEOUT)
    call_add(app, 50)

    sink.gate.set()
    assert records.flush(TIMEOUT)
    records.close()

    assert len(sink.replies) == 11
    assert sink.lost == 40
    assert "40 were lost" in caplog.text


def test_a_failing_sink_is_retried_and_no_record_is_written_twice() -> None:
    sink = MemorySink()
    sink.failure = RuntimeError("out of order")
    records = Records(sink)
    call_add(app_with(records), 5)
    records.flush(0)
    assert sink.failed.wait(TIMEOUT)

    sink.failure = None
    assert records.flush(TIMEOUT)
    records.close()

    assert len(sink.replies) == 5
    assert [entry.seq for entry in sink.entries] == list(range(1, 8))


def test_an_exception_in_a_rule_loses_the_findings_but_not_the_record(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("answerback.rules.validation.findings_in", broken)
    sink = MemorySink()
    records = Records(sink)

    call_add(app_with(records), 2)
    records.close()

    assert len(sink.replies) == 2
    assert caplog.text.count("could not be checked") == 1


def test_a_reply_is_recorded_as_unchecked_while_the_queue_is_filling() -> None:
    records = Records(MemorySink())
    reply = Reply(data="postgres://admin:Zk3vQ9pLw2@db.internal/main")
    record = CallRecord("tool", "echo", "rest", b"{}", 0.0, 1000, 9, reply)

    checked = records.make_event(record, queue_is_filling=False)
    unchecked = records.make_event(record, queue_is_filling=True)

    assert (len(checked.findings), checked.unchecked) == (1, False)
    assert (unchecked.findings, unchecked.unchecked) == ((), True)


def test_a_tight_loop_of_calls_in_process_loses_no_record() -> None:
    sink = MemorySink()
    records = Records(sink, check=False, max_waiting=1000)
    app = App("busy", records=records)
    app.add_tool(lambda: 1, name="one", inline=True)

    async def call_often() -> None:
        for _ in range(20_000):
            await app.call("one")

    asyncio.run(call_often())
    records.close(TIMEOUT)

    assert (len(sink.replies), sink.lost) == (20_000, 0)
