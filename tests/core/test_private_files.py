"""Files of tasks, replies and records: no other user can read them, however they came to be."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.records.support import app_with, call_add

from answerback.fitting.reply_store import SQLiteReplies
from answerback.records import JSONL, Records, SQLite
from answerback.tasks.sqlite_store import SQLiteStore


def keep_tasks(path: Path) -> None:
    store = SQLiteStore(path)
    store.version()
    store.close()


def keep_replies(path: Path) -> None:
    store = SQLiteReplies(str(path))
    store.forget_session("ended")
    store.close()


def record_in_sqlite(path: Path) -> None:
    _record(Records(SQLite(path)))


def record_in_jsonl(path: Path) -> None:
    _record(Records(JSONL(path)))


def _record(records: Records) -> None:
    call_add(app_with(records), 1)
    assert records.flush(60)
    records.close()


WRITERS = pytest.mark.parametrize(
    "write", [keep_tasks, keep_replies, record_in_sqlite, record_in_jsonl]
)
Write = Callable[[Path], None]


@WRITERS
def test_the_target_of_a_dangling_link_is_created_private(write: Write, tmp_path: Path) -> None:
    link, target = tmp_path / "link", tmp_path / "target"
    link.symlink_to(target)

    write(link)

    assert _mode(target) == 0o600


@WRITERS
@pytest.mark.parametrize(("before", "after"), [(0o644, 0o600), (0o666, 0o600), (0o640, 0o640)])
def test_an_existing_file_is_closed_to_all_users_but_keeps_a_group_of_its_own(
    write: Write, before: int, after: int, tmp_path: Path
) -> None:
    path = tmp_path / "file"
    path.touch()
    path.chmod(before)

    write(path)

    assert _mode(path) == after


def _mode(path: Path) -> int:
    return os.stat(path).st_mode & 0o777
