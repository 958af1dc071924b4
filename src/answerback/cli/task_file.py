"""The task file that `--tasks` names."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ..errors import AnswerbackError, Unavailable

if TYPE_CHECKING:
    from argparse import ArgumentParser

    from ..tasks.sqlite_store import SQLiteStore


class CannotOpenTasks(AnswerbackError):
    code = "CANNOT_OPEN_TASKS"


def add_tasks_option(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--tasks",
        metavar="FILE",
        help="keep tasks in this SQLite file, so that they survive a restart",
    )


def open_task_store(path: str) -> SQLiteStore:
    """Open the store in a file, which is created if needed; raises CannotOpenTasks."""
    from ..tasks.sqlite_store import SQLiteStore, UnknownTaskFile

    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder) or os.path.isdir(path):
        raise CannotOpenTasks(f"cannot keep tasks in {path!r}: give a file in a folder that exists")
    store = SQLiteStore(os.path.abspath(path))
    # Opened once before the workers do, so that a problem shows at start-up.
    try:
        store.version()
    except UnknownTaskFile as exc:
        raise CannotOpenTasks(str(exc)) from None
    except Unavailable as exc:
        raise CannotOpenTasks(f"cannot keep tasks in {path!r}: {exc.__cause__}") from None
    finally:
        store.close()
    return store
