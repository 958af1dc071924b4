"""`serve`: serves the tools over HTTP."""

from __future__ import annotations

import os
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..errors import AnswerbackError
from ..limits import MAX_BODY
from ..wires.http.options import ServeOptions, WebOptions
from .program import Program, add_tag_options, positive_int, write_stderr

if TYPE_CHECKING:
    from ..records import Records, Sink

_SUFFIXES = (".db", ".sqlite", ".sqlite3", ".jsonl")


class CannotRecord(AnswerbackError):
    code = "CANNOT_RECORD"


def run(program: Program, arguments: Sequence[str]) -> int:
    parser = _parser(program)
    add_tag_options(parser)
    options = parser.parse_args(arguments)
    web = WebOptions(
        max_body=options.max_body,
        hosts=(*options.allow_host,),
        origins=(*options.allow_origin,),
        trusted_proxies=(*options.trust_proxy,),
        only_addresses=True,
    )
    server = ServeOptions(host=options.host, port=options.port, workers=options.workers, web=web)
    app = program.load_tagged(options.target, options)
    if options.audit is not None:
        app.records = _open_records(options.audit, options.audit_keep)
    from ..wires.interpreter_settings import collect_garbage_less_often, switch_threads_sooner
    from ..wires.server.uvicorn_server import serve

    collect_garbage_less_often()
    switch_threads_sooner()
    return serve(app, app.handlers, server)


def _parser(program: Program) -> ArgumentParser:
    parser = program.parser_with_target("serve")
    parser.add_argument(
        "--host", default="127.0.0.1", help="the address to listen on (default: %(default)s)"
    )
    parser.add_argument(
        "--port", type=_port, default=8000, help="0 takes a free one (default: %(default)s)"
    )
    parser.add_argument(
        "--workers", type=positive_int, default=1, metavar="N", help="worker processes (default: 1)"
    )
    parser.add_argument(
        "--max-body",
        type=positive_int,
        default=MAX_BODY,
        metavar="BYTES",
        help="the largest request body (default: 4 MiB)",
    )
    parser.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="accept this Host header too, such as tools.example.com; may be repeated",
    )
    parser.add_argument(
        "--allow-origin",
        action="append",
        default=[],
        metavar="URL",
        help="accept requests of this Origin, such as https://example.com; may be repeated",
    )
    parser.add_argument(
        "--trust-proxy",
        action="append",
        default=[],
        metavar="ADDRESS",
        help="use the forwarded headers of this address or network; may be repeated",
    )
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
    return parser


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text[:10]) < 65536):
        raise ArgumentTypeError(f"must be a number from 0 to 65535, not {text!r}")
    return int(text)


def _open_records(path: str, keep: Sequence[str]) -> Records:
    """Raises CannotRecord for a path that cannot work; any other problem is a warning."""
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
    return Records(sink, arguments="arguments" in keep, content="content" in keep)
