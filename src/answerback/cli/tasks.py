"""`tasks`: lists, shows and cancels the tasks in a server's file or in the shared state."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from itertools import islice
from time import time
from typing import TYPE_CHECKING

import msgspec

from ..core.secrets import Masker
from ..dialects.readable import render
from ..server.shared_state import WrongState
from ..tasks.task_record import FINAL, TaskRecord
from ..tasks.task_store import TaskStore
from ..tasks.transitions import cancelled
from .argument_parser import subcommand_parsers
from .program import Program, aligned, positive_int, print_json, print_line, write_stderr
from .store_options import CannotOpenTasks, add_state_options, open_state_of, open_task_store

if TYPE_CHECKING:
    from ..core.json_value import JsonObject


_FILE = "tasks.db"
_PAGE = 500
_MAX_MESSAGE = 60
_NOT_FOUND = 1


def run(program: Program, arguments: Sequence[str]) -> int:
    parser, subparsers = subcommand_parsers(program, "tasks", _SUBCOMMANDS)
    for name, each in subparsers.items():
        if name != "list":
            each.add_argument("id", metavar="ID", help="the task's id, as shown by list")
        text = f"the server's SQLite file (default: {_FILE})"
        each.add_argument("--tasks", metavar="FILE", help=text)
        add_state_options(each)
        text = "the app's name, if the state has tasks from several apps"
        each.add_argument("--app", metavar="NAME", help=text)
        text = "print JSON, for programs; the default if stdout is not a terminal"
        each.add_argument("--json", action="store_true", help=text)
    text = "how many of the latest tasks to show (default: %(default)s)"
    subparsers["list"].add_argument("-n", type=positive_int, default=50, metavar="N", help=text)
    states = ("working", "input_required", *sorted(FINAL))
    subparsers["list"].add_argument("--status", choices=states, help="only the tasks in this state")
    options = parser.parse_args(arguments)
    with _store_of(options) as store:
        return _SUBCOMMANDS[options.subcommand][1](store, options)


@contextmanager
def _store_of(options: Namespace) -> Iterator[TaskStore]:
    shared = None if options.tasks else open_state_of(options)
    if shared is not None:
        from ..tasks.postgres_store import PostgresStore, apps_with_tasks

        with closing(shared):
            app = options.app
            if app is None:
                apps = apps_with_tasks(shared)
                if len(apps) > 1:
                    names = ", ".join(apps)
                    raise WrongState(f"the state has tasks from several apps; pass --app: {names}")
                app = apps[0] if apps else ""
            yield PostgresStore(shared, app)
        return
    path = options.tasks or _FILE
    if not os.path.isfile(path):
        raise CannotOpenTasks(
            f"there is no file {path!r}; pass the file from `serve --tasks` with --tasks, "
            "or the database from `serve --state` with --state"
        )
    with closing(open_task_store(path)) as store:
        yield store


def _list(store: TaskStore, options: Namespace) -> int:
    newest = (
        task for task in _newest(store, options.n + 1) if options.status in (None, task.state)
    )
    found = list(islice(newest, options.n + 1))
    shown = found[: options.n][::-1]
    if _as_json(options):
        for task in shown:
            print_json(msgspec.json.encode(_members(task, with_result=False)))
        return 0
    if not shown:
        print_line(
            "there are no tasks" if options.status is None else f"no task is {options.status}"
        )
        return 0
    rows = [("id", "state", "tool", "age", "message")]
    for task in shown:
        message = _line(Masker(task.arguments).text(task.message))
        short = message if len(message) <= _MAX_MESSAGE else message[: _MAX_MESSAGE - 1] + "…"
        rows.append((task.id, task.state, _line(task.tool), _age(time() - task.created), short))
    print_line("\n".join(aligned(rows)))
    if len(found) > len(shown):
        print_line("\nearlier tasks are not shown; see -n")
    return 0


def _show(store: TaskStore, options: Namespace) -> int:
    task = _found(store, options.id)
    if task is None:
        return _NOT_FOUND
    members = _members(task, with_result=True)
    if _as_json(options):
        print_json(msgspec.json.encode(members))
        return 0
    for name, value in members.items():
        text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
        print_line(f"{name:13} {_line(text)}")
    return 0


def _cancel(store: TaskStore, options: Namespace) -> int:
    task = _found(store, options.id)
    if task is None:
        return _NOT_FOUND
    changed = store.change(task.id, cancelled)
    # No change means that the task has ended, perhaps a moment ago.
    task = changed or store.get(task.id) or task
    if _as_json(options):
        print_json(msgspec.json.encode(_members(task, with_result=False)))
    else:
        print_line("cancelled" if changed is not None else f"it was already {task.state}")
    return 0 if task.state == "cancelled" else 1


def _newest(store: TaskStore, wanted: int) -> Iterator[TaskRecord]:
    after: str | None = None
    while page := store.page(None, after, min(wanted, _PAGE), newest_first=True):
        yield from (task for task in page if not task.is_plain_call)
        after = page[-1].id


def _found(store: TaskStore, id: str) -> TaskRecord | None:
    task = store.get(id)
    if task is None or task.is_plain_call:
        write_stderr(f"no task has the id {id!r}; it never existed, or has expired")
        return None
    return task


def _members(task: TaskRecord, *, with_result: bool) -> JsonObject:
    """Return the task's members to show to people and programs, with secrets masked."""
    masker = Masker(task.arguments)
    members: JsonObject = {
        "id": task.id,
        "state": task.state,
        "tool": task.tool,
        "message": masker.text(task.message),
        "user": None if task.user is None else task.user.subject,
        "wire": task.wire,
        "created": _iso(task.created),
        "changed": _iso(task.changed),
        "expires": None if task.expires is None else _iso(task.expires),
        "worker": task.worker,
        "attempts": task.attempts,
        "arguments": masker.json(task.arguments),
        "questions": {
            key: masker.text(str(each.params.get("message", each.method)))
            for key, each in task.questions.items()
        },
    }
    if with_result and task.result is not None:
        reply = task.reply()
        if reply.encoded is not None:
            members["data"] = masker.json(reply.encoded)
        if reply.error is not None:
            members["error"] = masker.json(msgspec.json.encode(reply.error))
    return {name: value for name, value in members.items() if value not in (None, "", {}, 0)}


def _as_json(options: Namespace) -> bool:
    return options.json or not sys.stdout.isatty()


def _line(text: str) -> str:
    """Return the text on one line, without control characters."""
    return render(" ".join(text.split()))


def _age(seconds: float) -> str:
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


_SUBCOMMANDS = {
    "list": ("list the tasks, latest last", _list),
    "show": ("show everything about one task", _show),
    "cancel": ("cancel a task; the server running it stops it immediately", _cancel),
}
