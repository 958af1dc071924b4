"""`serve`: serves the tools over HTTP."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..calls.runtime import runtime_on_loop
from ..errors import AnswerbackError
from ..registry.declarations import registry_of
from ..server.http.server_options import BadOption
from ..server.interpreter_settings import collect_garbage_less_often, switch_threads_sooner
from ..server.standard_streams import keep_stderr
from ..server.uvicorn.listening import base_url, bind, remove_unix_socket
from .program import Program, require_widgets, write_stderr
from .serve_flags import check_together, parser, serve_options, serve_widgets
from .state_options import open_state_of
from .target import program_folder
from .task_file import open_task_store

if TYPE_CHECKING:
    from argparse import Namespace
    from socket import socket

    from ..app import App
    from ..calls.runtime import Runtime
    from ..records import Records, Sink
    from ..server.http.server_options import ServeOptions

_SUFFIXES = (".db", ".sqlite", ".sqlite3", ".jsonl")


class CannotRecord(AnswerbackError):
    code = "CANNOT_RECORD"


def run(program: Program, arguments: Sequence[str]) -> int:
    options = parser(program).parse_args(arguments)
    check_together(options)
    given = None
    if options.reload:
        from ..server.uvicorn.reload import inherited

        given = inherited()
    server = serve_options(options, restarted=given is not None and not given.is_first)
    if options.reload and given is None:
        return _reload(program, options.target, server)
    app = require_widgets(program.load_tagged(options.target, options))
    runtime = _runtime(app, options)
    serve_widgets(runtime, options)
    # It needs uvicorn, which `serve --help` does not.
    from ..server.uvicorn.uvicorn_server import serve

    keep_stderr()
    collect_garbage_less_often()
    switch_threads_sooner()
    wants_test_tokens = options.dev_auth or (app.auth is not None and not app.auth.has_own_url)
    if given is not None:
        if wants_test_tokens:
            _accept_test_tokens(runtime, server, given.listener)
        return serve(runtime, server, given.listener)
    listener = bind(server)
    try:
        if wants_test_tokens:
            _accept_test_tokens(runtime, server, listener)
        return serve(runtime, server, listener)
    finally:
        remove_unix_socket(server)


def _runtime(app: App, options: Namespace) -> Runtime:
    records = task_store = None
    if options.audit is not None:
        records = _open_records(options.audit, options.audit_keep)
    if options.tasks is not None:
        task_store = open_task_store(options.tasks)
    runtime = runtime_on_loop(
        registry_of(app), records=records, task_store=task_store, debug=options.debug
    )
    shared = open_state_of(options)
    if shared is not None:
        from ..server.shared_state import use_state

        use_state(runtime, shared)
    if options.no_tasks:
        if shared is None:
            raise BadOption("--no-tasks needs --state: other hosts run the tasks")
        runtime.task_slots = 0
    return runtime


def _accept_test_tokens(runtime: Runtime, server: ServeOptions, listener: socket) -> None:
    """Replace the app's issuer by this server; raises BadOption."""
    from ..auth import OAuth
    from ..auth.development import development_of

    if not isinstance(runtime.auth, OAuth):
        raise BadOption("--dev-auth stands in for the issuer of an app with auth=OAuth(...)")
    base = base_url(server, listener)
    try:
        runtime.auth = development_of(runtime.auth, base)
    except ValueError:
        raise BadOption(f"test tokens are for this machine alone, and not for {base}") from None


def _reload(program: Program, target: str | None, server: ServeOptions) -> int:
    from ..server.uvicorn.reload import serve_and_reload

    folder = program_folder(program.app, target)
    listener = bind(server)
    try:
        return serve_and_reload(listener, folder)
    finally:
        remove_unix_socket(server)


def _open_records(path: str, keep: Sequence[str]) -> Records:
    """Open the records; raises CannotRecord for an impossible path, warns of other problems."""
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
