"""`answerback tasks`: lists, shows and cancels the tasks in a file."""

from __future__ import annotations

import json
from pathlib import Path
from time import time

import pytest
from tests.cli.conftest import Run
from tests.steps import steps_of

from answerback.cli.program import main
from answerback.core.limits import TaskLimits
from answerback.tasks.sqlite_store import SQLiteStore
from answerback.tasks.task_record import KEYS, TaskRecord

SECRET = "correct-horse-battery"


@pytest.fixture
def store(tmp_path: Path) -> SQLiteStore:
    """A file with one task, whose message has a secret and control characters."""
    store = SQLiteStore(tmp_path / "tasks.db", durable=False)
    arguments = json.dumps({"year": 2025, "password": SECRET}).encode()
    message = f"reading\n\x1b[31m with {SECRET}"
    now = time()
    task = TaskRecord(
        id="a" * 27,
        tool="report",
        arguments=arguments,
        message=message,
        created=now,
        changed=now,
        expires=now + 60,
    )
    store.add(task, TaskLimits())
    return store


def test_list_shows_a_table_without_secrets_and_control_characters(
    store: SQLiteStore, on_a_terminal: Run
) -> None:
    done = on_a_terminal("tasks", "list", "--tasks", store.path)

    header, row = done.stdout.splitlines()
    assert header.split() == ["id", "state", "tool", "age", "message"]
    assert row.split()[:3] == ["a" * 27, "working", "report"]
    assert SECRET not in row
    assert "\x1b" not in row


def test_list_prints_json_lines_where_stdout_is_no_terminal(
    store: SQLiteStore, answerback: Run
) -> None:
    done = answerback("tasks", "list", "--tasks", store.path)

    task = json.loads(done.stdout)
    assert task["id"] == "a" * 27
    assert task["arguments"] == {"year": 2025, "password": "***"}


def test_list_shows_the_latest_tasks_the_latest_last(
    store: SQLiteStore, on_a_terminal: Run
) -> None:
    _add(store, 3)

    some = on_a_terminal("tasks", "list", "-n", "2", "--tasks", store.path).stdout.splitlines()
    all_of_them = on_a_terminal("tasks", "list", "-n", "4", "--tasks", store.path).stdout

    assert [line.split()[0] for line in some[1:3]] == ["task-1", "task-2"]
    assert some[4:] == ["earlier tasks are not shown; see -n"]
    assert len(all_of_them.splitlines()) == 5


def test_list_reads_only_the_tasks_that_it_shows(
    store: SQLiteStore, capsys: pytest.CaptureFixture[str]
) -> None:
    def steps_of_list() -> int:
        return steps_of(lambda: main(["tasks", "list", "-n", "5", "--tasks", store.path]))

    _add(store, 20)
    steps_of_list()
    few = steps_of_list()
    _add(store, 1_000, "more")
    many = steps_of_list()

    assert len(capsys.readouterr().out.splitlines()) == 15
    assert many < few * 1.2


def _add(store: SQLiteStore, count: int, name: str = "task") -> None:
    for number in range(count):
        task = TaskRecord(id=f"{name}-{number}", tool="job", arguments=b"{}", created=1, changed=1)
        store.add(task, TaskLimits())


def test_show_prints_a_line_for_each_member(store: SQLiteStore, on_a_terminal: Run) -> None:
    done = on_a_terminal("tasks", "show", "a" * 27, "--tasks", store.path)

    names = [line.split()[0] for line in done.stdout.splitlines()]
    assert names[:4] == ["id", "state", "tool", "message"]
    assert SECRET not in done.stdout


def test_cancel_ends_the_task_and_a_second_time_says_so(
    store: SQLiteStore, on_a_terminal: Run
) -> None:
    first, second = (
        on_a_terminal("tasks", "cancel", "a" * 27, "--tasks", store.path) for _ in range(2)
    )

    task = store.get("a" * 27)
    assert task is not None
    assert task.state == "cancelled"
    assert (first.exit, first.stdout.split()) == (0, ["cancelled"])
    assert (second.exit, second.stdout.strip()) == (0, "it was already cancelled")


def test_an_unknown_id_and_a_plain_call_are_no_tasks(store: SQLiteStore, answerback: Run) -> None:
    now = time()
    call = TaskRecord(
        id="b" * 27, tool="pay", arguments=b"{}", owner=KEYS, created=now, changed=now
    )
    store.add(call, TaskLimits())

    unknown = answerback("tasks", "show", "nothing", "--tasks", store.path)
    plain = answerback("tasks", "cancel", "b" * 27, "--tasks", store.path)

    assert (unknown.exit, plain.exit) == (1, 1)
    assert "no task has the id 'nothing'" in unknown.stderr


@pytest.mark.parametrize("name", ["none.db", "notes.txt", "."])
def test_a_file_that_is_not_one_of_tasks_is_refused(
    name: str, tmp_path: Path, answerback: Run
) -> None:
    (tmp_path / "notes.txt").write_text("buy milk " * 100)

    done = answerback("tasks", "list", "--tasks", str(tmp_path / name))

    assert done.exit == 2
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "none.db").exists()
