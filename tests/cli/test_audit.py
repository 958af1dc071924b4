"""The output and the exit status of `audit verify|tail|stats`."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.records.support import app_with

from answerback import App, Context
from answerback.cli.audit import run
from answerback.cli.program import Program
from answerback.records import Records, SQLite
from answerback.records.reader import CannotRead

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def audit_db(tmp_path: Path) -> str:
    records = Records(SQLite(tmp_path / "audit.db"))
    app = app_with(records)

    async def calls() -> None:
        for number in range(6):
            await app.call("add", x=number, y=1)
        await app.call("fail")
        await app.call("made-up\x1b[31m")

    asyncio.run(calls())
    records.close()
    return str(tmp_path / "audit.db")


def audit(*arguments: str) -> int:
    return run(Program("answerback"), arguments)


def test_verify_prints_the_number_of_records_and_that_all_links_hold(
    audit_db: str, capsys: Capture
) -> None:
    assert audit("verify", audit_db) == 0

    output = capsys.readouterr().out
    assert "10 records in 1 chain" in output
    assert "all links are intact" in output


def test_verify_says_what_it_cannot_prove_unless_a_head_is_given(
    audit_db: str, capsys: Capture
) -> None:
    audit("verify", audit_db, "--json")
    found = json.loads(capsys.readouterr().out)
    assert found["head_given"] is False

    audit("verify", audit_db)
    assert "would go unnoticed" in capsys.readouterr().out

    audit("verify", audit_db, "--head", found["heads"][0]["hash"])
    assert "would go unnoticed" not in capsys.readouterr().out


def test_verify_fails_if_the_record_of_a_given_head_is_missing(
    audit_db: str, capsys: Capture
) -> None:
    audit("verify", audit_db, "--json")
    head = json.loads(capsys.readouterr().out)["heads"][0]["hash"]

    assert audit("verify", audit_db, "--head", head) == 0
    assert audit("verify", audit_db, "--head", "0" * 64) == 1
    assert "a tail was cut" in capsys.readouterr().out


def test_a_shortened_head_is_a_usage_error(audit_db: str) -> None:
    with pytest.raises(SystemExit) as stopped:
        audit("verify", audit_db, "--head", "c093cc947d2c")

    assert stopped.value.code == 2


def test_verify_names_the_first_record_that_was_changed(audit_db: str, capsys: Capture) -> None:
    with closing(sqlite3.connect(audit_db)) as connection, connection:
        connection.execute("UPDATE records SET body = replace(body, 'add', 'sub') WHERE id = 3")

    assert audit("verify", audit_db) == 1
    assert "BROKEN: record 3, number 3 of chain" in capsys.readouterr().out


def test_stats_prints_a_table_with_bars(audit_db: str, capsys: Capture) -> None:
    assert audit("stats", audit_db) == 0

    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["tool", "calls", "failures", "findings", "p50", "p95", "p99"]
    assert lines[1].split()[:4] == ["add", "6", "0", "0"]
    assert lines[1].endswith("█" * 20)
    assert lines[-1] == "8 calls, 2 failures"


def test_stats_counts_a_question_that_nobody_could_answer_as_a_failure(
    tmp_path: Path, capsys: Capture
) -> None:
    records = Records(SQLite(tmp_path / "audit.db"))
    app = App("asking", records=records)

    @app.tool
    async def ask(ctx: Context) -> str:
        return await ctx.elicit("Your name?", str)

    asyncio.run(app.call("ask"))
    records.close()

    assert audit("stats", str(tmp_path / "audit.db"), "--json") == 0
    assert json.loads(capsys.readouterr().out)["failures"] == 1


def test_stats_prints_json_for_programs(audit_db: str, capsys: Capture) -> None:
    assert audit("stats", audit_db, "--json") == 0

    found = json.loads(capsys.readouterr().out)
    rows = {row["tool"]: row for row in found["tools"]}
    assert rows["add"]["calls"] == 6
    assert rows["add"]["p50"] <= rows["add"]["p95"] <= rows["add"]["p99"]
    assert rows["(unknown)"]["failures"] == 1


def test_tail_prints_the_latest_events_without_control_characters(
    audit_db: str, capsys: Capture
) -> None:
    assert audit("tail", audit_db, "-n", "3") == 0

    lines = capsys.readouterr().out.splitlines()
    assert "TOOL_EXECUTION_ERROR" in lines[0]
    assert "made-up" in lines[1]
    assert "\x1b" not in lines[1]
    assert "records_ended" in lines[2]


def test_tail_prints_each_event_as_json_for_programs(audit_db: str, capsys: Capture) -> None:
    audit("tail", audit_db, "--json", "-n", "2")

    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [event["event"] for event in events] == ["mcp_response", "records_ended"]


@pytest.mark.parametrize("subcommand", ["verify", "tail", "stats"])
@pytest.mark.parametrize("body", [b"hello\n", b'{"a":1}\n', b"x,y\n1,2\n", b"\x00\xff", "sqlite"])
def test_a_file_without_records_is_an_error(
    subcommand: str, body: bytes | str, tmp_path: Path, capsys: Capture
) -> None:
    file = tmp_path / "other"
    if isinstance(body, bytes):
        file.write_bytes(body)
    else:
        with closing(sqlite3.connect(file)) as connection, connection:
            connection.execute("CREATE TABLE other (a)")

    with pytest.raises(CannotRead, match="there are no records in it"):
        audit(subcommand, str(file))

    assert capsys.readouterr().out == ""


def test_verify_of_an_empty_file_reports_that_nothing_was_recorded(
    tmp_path: Path, capsys: Capture
) -> None:
    (tmp_path / "audit.jsonl").write_bytes(b"")

    assert audit("verify", str(tmp_path / "audit.jsonl")) == 0
    assert capsys.readouterr().out == "nothing has been recorded yet\n"
