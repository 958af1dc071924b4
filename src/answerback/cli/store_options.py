"""The flags for files and databases: records, tasks and the shared state."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypedDict

from ..core.log import set_up_logging
from ..errors import AnswerbackError, Unavailable
from ..server.shared_state import STATE, STATE_LISTEN, WrongState, state_of, use_state
from .program import Options, Program, add_log_level_option, add_tag_options, write_stderr

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from ..calls.runtime import Runtime
    from ..records import Records, Sink
    from ..state.shared import SharedState
    from ..tasks.sqlite_store import SQLiteStore


_SUFFIXES = (".db", ".sqlite", ".sqlite3", ".jsonl")


class CannotRecord(AnswerbackError):
    code = "CANNOT_RECORD"


def add_audit_options(parser: ArgumentParser) -> None:
    text = "record each reply here (.db, .sqlite, .sqlite3 or .jsonl)"
    parser.add_argument("--audit", metavar="FILE", help=text)
    bodies = ("arguments", "content")
    text = "also record these, with secrets masked"
    parser.add_argument("--audit-keep", action="append", default=[], choices=bodies, help=text)


def open_records(options: Options) -> Records | None:
    """Open the records; raises CannotRecord for an unusable path, and warns of other problems."""
    path: str | None = options.audit
    if path is None:
        return None
    from ..records import JSONL, Records, SQLite

    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder) or os.path.isdir(path):
        raise CannotRecord(f"cannot record in {path!r}: choose a file in an existing folder")
    suffix = os.path.splitext(path)[1].lower()
    if suffix not in _SUFFIXES:
        names = "its name must end in .db, .sqlite or .sqlite3 for SQLite, or in .jsonl"
        raise CannotRecord(f"cannot record in {path!r}: {names}")
    sink: Sink = JSONL(path) if suffix == ".jsonl" else SQLite(path)
    # Open the file once before the workers do, so that problems show up at startup.
    try:
        sink.open().close()
    except Exception as exc:  # noqa: BLE001 -- the writer retries, and calls are answered anyway
        write_stderr(f"warning: {path} cannot be written now ({exc}); lost records will be logged")
    return Records(
        sink, arguments="arguments" in options.audit_keep, content="content" in options.audit_keep
    )


class CannotOpenTasks(AnswerbackError):
    code = "CANNOT_OPEN_TASKS"


def add_tasks_option(parser: ArgumentParser) -> None:
    text = "keep tasks in this SQLite file, so that they survive a restart"
    parser.add_argument("--tasks", metavar="FILE", help=text)


def open_task_store(path: str) -> SQLiteStore:
    """Open the task store in a file, creating it if needed; raises CannotOpenTasks."""
    from ..tasks.sqlite_store import SQLiteStore, UnknownTaskFile

    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder) or os.path.isdir(path):
        raise CannotOpenTasks(f"cannot keep tasks in {path!r}: choose a file in an existing folder")
    store = SQLiteStore(os.path.abspath(path))
    # Open it once before the workers do, so that problems show up at startup.
    try:
        store.version()
    except UnknownTaskFile as exc:
        raise CannotOpenTasks(str(exc)) from None
    except Unavailable as exc:
        raise CannotOpenTasks(f"cannot keep tasks in {path!r}: {exc.__cause__}") from None
    finally:
        store.close()
    return store


def add_state_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--state",
        metavar="URL",
        help="share tasks, keys and sessions with other hosts in this PostgreSQL database "
        f"(default: {STATE} in the environment)",
    )
    parser.add_argument(
        "--state-listen",
        metavar="URL",
        help="the database itself, if --state goes through a pooler such as pgbouncer "
        f"(default: {STATE_LISTEN})",
    )
    text = "create or update the state tables first"
    parser.add_argument("--state-init", action="store_true", help=text)


def open_state_of(options: Namespace) -> SharedState | None:
    """Return the state named by the options or the environment; None if neither names one.

    Raises WrongState or CannotUseState.
    """
    shared = state_of(options.state, listen=options.state_listen, init=options.state_init)
    if shared is None and (options.state_listen or options.state_init):
        raise WrongState(f"--state-listen and --state-init need --state, or {STATE}")
    return shared


def use_state_of(options: Namespace, runtime: Runtime) -> bool:
    """Keep the runtime's state where the options say; return whether they name a database."""
    return use_state(runtime, open_state_of(options))


class StdioOptions(TypedDict, total=False):
    """The StdioServer arguments set by flags."""

    records: Records | None
    task_store: SQLiteStore | None
    debug: bool


def parser(program: Program) -> ArgumentParser:
    made = program.parser_with_target("mcp")
    text = "send exception messages to the client; reload widgets"
    made.add_argument("--debug", action="store_true", help=text)
    add_log_level_option(made)
    add_audit_options(made)
    add_tasks_option(made)
    add_tag_options(made)
    return made


def apply_flags(options: Namespace) -> StdioOptions:
    """Set up logging and open the files; raises CannotRecord or CannotOpenTasks."""
    set_up_logging(options.log_level)
    return {
        "records": open_records(options),
        "task_store": None if options.tasks is None else open_task_store(options.tasks),
        "debug": options.debug,
    }
