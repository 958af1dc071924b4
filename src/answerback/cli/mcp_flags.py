"""The flags of `mcp`; without any, this module is not imported."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from ..server.log_level import set_up_logging
from .program import Program, add_log_level_option, add_tag_options
from .store_options import add_audit_options, add_tasks_option, open_records, open_task_store

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from ..records import Records
    from ..tasks.sqlite_store import SQLiteStore


class StdioOptions(TypedDict, total=False):
    """The arguments of StdioServer that flags decide."""

    records: Records | None
    task_store: SQLiteStore | None
    debug: bool


def parser(program: Program) -> ArgumentParser:
    made = program.parser_with_target("mcp")
    text = "send the text of exceptions to the client; read widgets anew"
    made.add_argument("--debug", action="store_true", help=text)
    add_log_level_option(made)
    add_audit_options(made)
    add_tasks_option(made)
    add_tag_options(made)
    return made


def apply_flags(options: Namespace) -> StdioOptions:
    """Set up the log, and open the files; raises CannotRecord or CannotOpenTasks."""
    set_up_logging(options.log_level)
    return {
        "records": open_records(options),
        "task_store": None if options.tasks is None else open_task_store(options.tasks),
        "debug": options.debug,
    }
