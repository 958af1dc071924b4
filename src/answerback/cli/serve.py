"""`serve`: the tools over HTTP."""

from __future__ import annotations

import os
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..errors import AnswerbackError
from ..limits import MAX_BODY
from ..wires.http.options import ServeOptions, WebOptions
from .program import Program, tell

if TYPE_CHECKING:
    from ..records import Records, Sink

_ENDS = (".db", ".sqlite", ".sqlite3", ".jsonl")


class CannotRecord(AnswerbackError):
    code = "CANNOT_RECORD"


def run(program: Program, arguments: Sequence[str]) -> int:
    given = _parser(program).parse_args(arguments)
    web = WebOptions(
        max_body=given.max_body, hosts=(*given.allow_host,), origins=(*given.allow_origin,)
    )
    options = ServeOptions(host=given.host, port=given.port, workers=given.workers, web=web)
    app = program.load(given.target)
    if given.audit is not None:
        app.records = _records_in(given.audit, given.audit_keep)
    from ..wires.server.uvicorn_server import serve

    return serve(app, app.handlers, options)


def _parser(program: Program) -> ArgumentParser:
    parser = program.parser_with_target("serve")
    parser.add_argument(
        "--host", default="127.0.0.1", help="the address to listen on (default: %(default)s)"
    )
    parser.add_argument(
        "--port", type=_port, default=8000, help="0 takes a free one (default: %(default)s)"
    )
    parser.add_argument(
        "--workers", type=_positive, default=1, metavar="N", help="processes (default: 1)"
    )
    parser.add_argument(
        "--max-body",
        type=_positive,
        default=MAX_BODY,
        metavar="BYTES",
        help="the largest request (default: 4 MiB)",
    )
    parser.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="answer to this Host too, such as tools.example.com; may be repeated",
    )
    parser.add_argument(
        "--allow-origin",
        action="append",
        default=[],
        metavar="URL",
        help="let pages of this site call, such as https://example.com; may be repeated",
    )
    parser.add_argument(
        "--audit", metavar="FILE", help="record each reply here (.db, .sqlite, .sqlite3 or .jsonl)"
    )
    parser.add_argument(
        "--audit-keep",
        action="append",
        default=[],
        choices=("arguments", "content"),
        help="record these as well, without what looks like a secret",
    )
    return parser


def _positive(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text[:10])):
        raise ArgumentTypeError(f"must be a whole number from 1 on, not {text!r}")
    return int(text)


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text[:10]) < 65536):
        raise ArgumentTypeError(f"must be a number from 0 to 65535, not {text!r}")
    return int(text)


def _records_in(path: str, keep: Sequence[str]) -> Records:
    """Raises CannotRecord for a file that there cannot be; any other trouble is only told."""
    from ..records import JSONL, Records, SQLite

    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder) or os.path.isdir(path):
        raise CannotRecord(f"cannot record in {path!r}: give a file in a folder that is there")
    end = os.path.splitext(path)[1].lower()
    if end not in _ENDS:
        there = "let its name end in .db, .sqlite or .sqlite3 for SQLite, or in .jsonl"
        raise CannotRecord(f"cannot record in {path!r}: {there}")
    sink: Sink = JSONL(path) if end == ".jsonl" else SQLite(path)
    # Opened once before any worker does: what is wrong with it is better known now.
    try:
        sink.open().close()
    except Exception as exc:  # noqa: BLE001 -- it may get well again, and calls are answered anyway
        tell(f"warning: {path} cannot be written as yet ({exc}); what is lost will be told")
    return Records(sink, arguments="arguments" in keep, content="content" in keep)
