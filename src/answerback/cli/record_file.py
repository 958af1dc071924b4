"""The file of records that `--audit` names."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ..errors import AnswerbackError
from .program import Options, write_stderr

if TYPE_CHECKING:
    from argparse import ArgumentParser

    from ..records import Records, Sink

_SUFFIXES = (".db", ".sqlite", ".sqlite3", ".jsonl")


class CannotRecord(AnswerbackError):
    code = "CANNOT_RECORD"


def add_audit_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--audit", metavar="FILE", help="record each reply here (.db, .sqlite, .sqlite3 or .jsonl)"
    )
    parser.add_argument(
        "--audit-keep",
        action="append",
        default=[],
        choices=("arguments", "content"),
        help="record these as well, with secrets masked",
    )


def open_records(options: Options) -> Records | None:
    """Open the records; raises CannotRecord for an impossible path, warns of other problems."""
    path: str | None = options.audit
    if path is None:
        return None
    from ..records import JSONL, Records, SQLite

    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder) or os.path.isdir(path):
        raise CannotRecord(f"cannot record in {path!r}: give a file in a folder that exists")
    suffix = os.path.splitext(path)[1].lower()
    if suffix not in _SUFFIXES:
        names = "its name must end in .db, .sqlite or .sqlite3 for SQLite, or in .jsonl"
        raise CannotRecord(f"cannot record in {path!r}: {names}")
    sink: Sink = JSONL(path) if suffix == ".jsonl" else SQLite(path)
    # Open the file once before the workers do, so that a problem shows at start-up.
    try:
        sink.open().close()
    except Exception as exc:  # noqa: BLE001 -- the writer retries, and calls are answered anyway
        write_stderr(f"warning: {path} cannot be written now ({exc}); lost records will be logged")
    return Records(
        sink, arguments="arguments" in options.audit_keep, content="content" in options.audit_keep
    )
