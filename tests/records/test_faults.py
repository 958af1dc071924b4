"""Whatever happens to a sink, calls are answered, and what was lost is told."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest
from tests.records.kept import BOUND, Memory, app_with, events_in, replies_in

from answerback import App, Reply
from answerback.records import JSONL, Records, SQLite
from answerback.records.call_record import Answered
from answerback.records.reader import read
from answerback.records.verify import verify


def call(app: App, times: int = 1) -> None:
    """Calls that must be answered, whatever the sink does."""

    async def run() -> None:
        for number in range(times):
            reply = await asyncio.wait_for(app.call("add", x=number, y=1), BOUND)
            assert reply.data == number + 1

    asyncio.run(run())


def test_a_full_disk_costs_records_and_no_calls(caplog: pytest.LogCaptureFixture) -> None:
    records = Records(JSONL("/dev/full"))

    call(app_with(records), 20)
    records.close()

    assert "No space left on device" in caplog.text
    assert "20 records were lost" in caplog.text


def test_one_record_that_was_lost_is_told_as_one(caplog: pytest.LogCaptureFixture) -> None:
    records = Records(JSONL("/dev/full"))

    call(app_with(records))
    records.close()

    assert "1 record was lost" in caplog.text


FULL = """
import asyncio, logging, resource, signal, sys
from tests.records.kept import app_with
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
def test_what_waited_for_room_on_the_disk_is_written_when_there_is_some(
    sink: str, tmp_path: Path
) -> None:
    path = tmp_path / "audit"
    command = [sys.executable, "-c", FULL.format(sink=sink), str(path)]

    done = subprocess.run(command, capture_output=True, text=True, timeout=60)

    assert done.stdout == "flushed while full: False\nflushed afterwards: True\n", done.stderr
    assert "records cannot be written" in done.stderr
    assert "records are written to" in done.stderr
    assert len(replies_in(path)) == 1010
    assert verify(str(path)).holds


def test_records_wait_for_a_locked_database(tmp_path: Path) -> None:
    path = tmp_path / "audit.db"
    SQLite(path).open().close()
    records = Records(SQLite(path))
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        call(app_with(records), 5)
        assert not records.flush(0.1)
        other.execute("ROLLBACK")

    assert records.flush(BOUND)
    records.close()

    assert len(replies_in(path)) == 5


def test_a_corrupt_database_costs_records_and_no_calls(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "audit.db"
    path.write_bytes(b"this was a database once" * 500)
    records = Records(SQLite(path))

    call(app_with(records), 3)
    records.close()

    assert "file is not a database" in caplog.text
    assert "3 records were lost" in caplog.text
    assert path.read_bytes().startswith(b"this was a database once")


def test_a_database_that_is_mended_is_taken_up_again(tmp_path: Path) -> None:
    path = tmp_path / "audit.db"
    path.write_bytes(b"this was a database once" * 500)
    records = Records(SQLite(path))
    call(app_with(records), 3)
    assert not records.flush(0.1)
    path.unlink()

    assert records.flush(BOUND)
    records.close()

    assert len(replies_in(path)) == 3


@pytest.mark.parametrize("sink", [SQLite, JSONL])
@pytest.mark.parametrize("moved", [True, False])
def test_a_file_that_is_moved_or_removed_is_made_anew_and_no_record_goes_nowhere(
    sink: type[SQLite | JSONL], moved: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "audit"
    records = Records(sink(path))
    app = app_with(records)
    call(app, 3)
    assert records.flush()
    for file in tmp_path.iterdir():
        if moved:
            file.rename(file.with_name(f"old-{file.name.removeprefix('audit')}"))
        else:
            file.unlink()

    call(app, 4)
    assert records.flush(BOUND)
    records.close()

    assert len(replies_in(path)) == 4
    assert verify(str(path)).holds
    assert "moved or removed" in caplog.text
    assert not moved or len(replies_in(tmp_path / "old-")) == 3


@pytest.mark.parametrize("sink", [SQLite, JSONL])
def test_a_file_that_is_moved_alone_keeps_its_records_and_the_new_one_has_the_rest(
    sink: type[SQLite | JSONL], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path, old = tmp_path / "audit", tmp_path / "audit.1"
    records = Records(sink(path))
    app = app_with(records)
    call(app, 100)
    assert records.flush(BOUND)
    path.rename(old)

    call(app, 100)
    assert records.flush(BOUND)
    records.close()

    assert [len(replies_in(old)), len(replies_in(path))] == [100, 100]
    assert verify(str(old)).holds
    assert verify(str(path)).holds
    assert "0 were lost; 100 from before are in the file that was there" in caplog.text


@pytest.mark.parametrize("sink", [SQLite, JSONL])
def test_records_that_go_with_a_removed_file_are_told_as_lost(
    sink: type[SQLite | JSONL], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "audit"
    records = Records(sink(path))
    app = app_with(records)
    call(app, 3)
    assert records.flush(BOUND)
    path.unlink()

    call(app, 4)
    assert records.flush(BOUND)
    records.close()

    assert "3 were lost, 3 of them with the file that was removed" in caplog.text
    assert len(replies_in(path)) == 4


@pytest.mark.parametrize("sink", [SQLite, JSONL])
def test_a_file_that_is_removed_before_the_end_is_told_as_lost(
    sink: type[SQLite | JSONL], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "audit"
    records = Records(sink(path))
    call(app_with(records), 3)
    assert records.flush(BOUND)
    path.unlink()

    records.close()

    assert f"3 records were lost: {path} was removed" in caplog.text


def test_records_are_written_while_a_reader_has_not_read_to_the_end(tmp_path: Path) -> None:
    path = tmp_path / "audit.db"
    records = Records(SQLite(path))
    app = app_with(records)
    call(app, 600)
    assert records.flush(BOUND)
    reader = read(str(path))
    next(reader)

    call(app, 50)
    written = records.flush(BOUND)
    rest = sum(1 for _ in reader)
    records.close()

    assert written
    assert rest == 650


@pytest.mark.parametrize("sink", [SQLite, JSONL])
def test_the_last_records_are_written_although_the_file_was_moved_just_before_the_end(
    sink: type[SQLite | JSONL], tmp_path: Path
) -> None:
    path, old = tmp_path / "audit", tmp_path / "audit.1"
    records = Records(sink(path))
    app = app_with(records)
    call(app, 3)
    assert records.flush(BOUND)
    path.rename(old)

    call(app, 4)
    records.close()

    assert [len(replies_in(old)), len(replies_in(path))] == [3, 4]


def test_a_chain_that_was_not_begun_when_its_file_was_moved_begins_in_the_new_one(
    tmp_path: Path,
) -> None:
    path, old = tmp_path / "audit.db", tmp_path / "audit.1.db"
    first, second = Records(SQLite(path)), Records(SQLite(path))
    call(app_with(first), 3)
    first.close()
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        call(app_with(second), 4)
        assert not second.flush(0.5)
        path.rename(old)
        other.execute("ROLLBACK")

    assert second.flush(BOUND)
    second.close()

    assert [len(replies_in(old)), len(replies_in(path))] == [3, 4]
    assert verify(str(path)).broken == ""


WRITES = """
import asyncio, sys
from tests.records.kept import app_with
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
def test_a_file_that_is_moved_often_while_three_processes_write_it_loses_nothing(
    sink: str, tmp_path: Path
) -> None:
    path = tmp_path / "audit"
    command = [sys.executable, "-c", WRITES.format(sink=sink), str(path)]
    writers = [subprocess.Popen(command) for _ in range(3)]
    moved: list[Path] = []

    for writer in writers:
        while not has_ended(writer):
            if path.exists():
                moved.append(path.rename(tmp_path / f"audit.{len(moved)}"))
    files = [*moved, path] if path.exists() else moved

    assert [writer.returncode for writer in writers] == [0, 0, 0]
    assert [verify(str(file)).broken for file in files] == [""] * len(files)
    assert sum(len(replies_in(file)) for file in files) == 3 * 60 * 50


def has_ended(process: subprocess.Popen[bytes]) -> bool:
    try:
        process.wait(0.03)
    except subprocess.TimeoutExpired:
        return False
    return True


HALF_WRITTEN = """
import os, signal, sqlite3, sys

connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA cache_size = 1")
connection.execute("BEGIN IMMEDIATE")
connection.execute("UPDATE records SET body = 'half written'")
connection.executemany(
    "INSERT INTO records (chain, seq, hash, body) VALUES ('x', 1, 'x', ?)", [("x" * 4000,)] * 50
)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_batch_that_a_killed_process_half_wrote_is_taken_back_when_the_file_is_read(
    tmp_path: Path,
) -> None:
    path = tmp_path / "audit.db"
    records = Records(SQLite(path))
    call(app_with(records), 30)
    records.close()
    subprocess.run([sys.executable, "-c", HALF_WRITTEN, str(path)], check=False, timeout=BOUND)
    assert (tmp_path / "audit.db-journal").stat().st_size

    verdict = verify(str(path))

    assert verdict.holds
    assert len(replies_in(path)) == 30


@pytest.mark.parametrize("sink", [SQLite, JSONL])
def test_two_that_write_one_file_both_begin_anew_in_another(
    sink: type[SQLite | JSONL], tmp_path: Path
) -> None:
    path = tmp_path / "audit"
    both = [Records(sink(path)), Records(sink(path))]
    for records in both:
        call(app_with(records), 3)
        assert records.flush()
    for file in tmp_path.iterdir():
        file.unlink()

    for records in both:
        call(app_with(records), 4)
        assert records.flush(BOUND)
    for records in both:
        records.close()

    assert verify(str(path)).holds
    assert [head.ended for head in verify(str(path)).heads] == [True, True]
    assert len(replies_in(path)) == 8


@pytest.mark.parametrize("sink", [SQLite, JSONL])
def test_records_are_for_their_owner_alone(sink: type[SQLite | JSONL], tmp_path: Path) -> None:
    records = Records(sink(tmp_path / "audit"))
    call(app_with(records))
    assert records.flush()

    modes = {file.name: file.stat().st_mode & 0o777 for file in tmp_path.iterdir()}
    records.close()

    assert set(modes.values()) == {0o600}


def test_a_sink_that_hangs_holds_up_no_call_and_its_losses_are_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    sink = Memory()
    sink.gate.clear()
    records = Records(sink, most=10)
    app = app_with(records)

    call(app)
    records.flush(0)
    assert sink.entered.wait(BOUND)
    call(app, 50)
    records.close(0.1)

    assert "records are being lost" in caplog.text
    assert "51 records were lost: memory takes too long" in caplog.text
    sink.gate.set()


def test_a_queue_that_overflows_counts_what_it_loses_and_records_the_count(
    caplog: pytest.LogCaptureFixture,
) -> None:
    sink = Memory()
    sink.gate.clear()
    records = Records(sink, most=10)
    app = app_with(records)
    call(app)
    records.flush(0)
    assert sink.entered.wait(BOUND)
    call(app, 50)

    sink.gate.set()
    assert records.flush(BOUND)
    records.close()

    assert len(sink.replies) == 11
    assert sink.lost == 40
    assert "40 were lost" in caplog.text


def test_a_sink_that_raises_is_tried_again_and_nothing_is_written_twice() -> None:
    sink = Memory()
    sink.failure = RuntimeError("out of order")
    records = Records(sink)
    call(app_with(records), 5)
    records.flush(0)
    assert sink.failed.wait(BOUND)

    sink.failure = None
    assert records.flush(BOUND)
    records.close()

    assert len(sink.replies) == 5
    assert [entry.seq for entry in sink.entries] == list(range(1, 8))


def test_a_fault_in_checking_costs_the_findings_and_not_the_record(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("answerback.rules.own_replies.findings_in", broken)
    sink = Memory()
    records = Records(sink)

    call(app_with(records), 2)
    records.close()

    assert len(sink.replies) == 2
    assert caplog.text.count("could not be checked") == 1


def test_a_reply_that_there_is_no_time_to_check_is_recorded_and_says_so() -> None:
    records = Records(Memory())
    told = Reply(data="postgres://admin:Zk3vQ9pLw2@db.internal/main")
    item = Answered("tool", "echo", "rest", b"{}", 0.0, 1000, 9, told)

    assert records.event(item, hurried=False).findings
    hurried = records.event(item, hurried=True)

    assert hurried.unchecked
    assert hurried.findings == ()


KILLED = """
import asyncio, sys
from tests.records.kept import app_with
from answerback.records import Records, {sink}

records = Records({sink}(sys.argv[1]), check=False)
app = app_with(records)

async def calls():
    done = 0
    while True:
        for number in range(500):
            await app.call("add", x=number, y=1)
        done += 500
        if records.flush():
            print(done, flush=True)

asyncio.run(calls())
"""


@pytest.mark.parametrize("sink", ["SQLite", "JSONL"])
def test_after_a_kill_the_store_holds_all_that_was_flushed(sink: str, tmp_path: Path) -> None:
    path = tmp_path / "audit"
    command = [sys.executable, "-c", KILLED.format(sink=sink), str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        flushed = [int(process.stdout.readline()) for _ in range(4)][-1]
        process.send_signal(signal.SIGKILL)
        rest = process.stdout.read().split()
    flushed = int(rest[-1]) if rest else flushed

    verdict = verify(str(path))
    assert verdict.holds
    assert not verdict.heads[0].ended
    assert len(replies_in(path)) >= flushed

    records = Records(SQLite(path) if sink == "SQLite" else JSONL(path))
    call(app_with(records), 2)
    records.close()
    assert verify(str(path)).holds


def test_a_forked_process_writes_with_a_thread_and_a_chain_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "audit.db"
    records = Records(SQLite(path), check=False)
    app = app_with(records)
    call(app, 3)
    assert records.flush()

    pid = os.fork()
    if pid == 0:
        call(app, 4)
        records.close()
        os._exit(0)
    os.waitpid(pid, 0)
    call(app, 2)
    records.close()

    verdict = verify(str(path))
    assert verdict.holds
    assert sorted(head.records for head in verdict.heads) == [6, 7]
    assert len({event.process for event in events_in(path) if event.process}) == 2


def test_several_threads_record_at_once_and_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "audit.db"
    records = Records(SQLite(path), check=False)
    app = app_with(records)
    threads = [threading.Thread(target=call, args=(app, 200)) for _ in range(4)]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(BOUND)
    records.close()

    assert len(replies_in(path)) == 800
    assert verify(str(path)).holds
