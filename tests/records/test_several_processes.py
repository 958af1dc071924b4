"""Several processes, threads and readers of one file, and processes that are killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from tests.records.support import TIMEOUT, app_with, call_add, events_in, replies_in

from answerback.records import JSONL, Records, SQLite
from answerback.records.hash_chain import verify
from answerback.records.reader import read


def test_records_are_written_while_a_reader_is_in_the_middle_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "audit.db"
    records = Records(SQLite(path))
    app = app_with(records)
    call_add(app, 600)
    assert records.flush(TIMEOUT)
    reader = read(str(path))
    next(reader)

    call_add(app, 50)
    written = records.flush(TIMEOUT)
    rest = sum(1 for _ in reader)
    records.close()

    assert written
    assert rest == 650


WRITE_HALF_A_BATCH = """
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


def test_reading_rolls_back_the_unfinished_batch_of_a_killed_process(tmp_path: Path) -> None:
    path = tmp_path / "audit.db"
    records = Records(SQLite(path))
    call_add(app_with(records), 30)
    records.close()
    subprocess.run(
        [sys.executable, "-c", WRITE_HALF_A_BATCH, str(path)], check=False, timeout=TIMEOUT
    )
    assert (tmp_path / "audit.db-journal").stat().st_size

    verdict = verify(str(path))

    assert verdict.holds
    assert len(replies_in(path)) == 30


WRITE_UNTIL_KILLED = """
import asyncio, sys
from tests.records.support import app_with
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
def test_a_killed_process_loses_no_flushed_record(sink: str, tmp_path: Path) -> None:
    path = tmp_path / "audit"
    command = [sys.executable, "-c", WRITE_UNTIL_KILLED.format(sink=sink), str(path)]
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
    call_add(app_with(records), 2)
    records.close()
    assert verify(str(path)).holds


def test_a_forked_process_writes_a_chain_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "audit.db"
    records = Records(SQLite(path), check=False)
    app = app_with(records)
    call_add(app, 3)
    assert records.flush()

    pid = os.fork()
    if pid == 0:
        call_add(app, 4)
        records.close()
        os._exit(0)
    os.waitpid(pid, 0)
    call_add(app, 2)
    records.close()

    verdict = verify(str(path))
    assert verdict.holds
    assert sorted(head.records for head in verdict.heads) == [6, 7]
    assert len({event.process for event in events_in(path) if event.process}) == 2


def test_concurrent_threads_lose_no_records(tmp_path: Path) -> None:
    path = tmp_path / "audit.db"
    records = Records(SQLite(path), check=False)
    app = app_with(records)
    threads = [threading.Thread(target=call_add, args=(app, 200)) for _ in range(4)]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT)
    records.close()

    assert len(replies_in(path)) == 800
    assert verify(str(path)).holds
