"""`serve`: serves the tools over HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..calls.runtime import runtime_on_loop
from ..core.event_loop import running_loop
from ..registry.declarations import registry_of
from ..server.http.server_options import BadOption
from ..server.interpreter_settings import collect_garbage_less_often, switch_threads_sooner
from ..server.standard_streams import keep_stderr
from ..server.uvicorn.listening import base_url, bind, remove_unix_socket
from .program import Program, require_widgets
from .record_file import open_records
from .serve_flags import check_together, parser, serve_options, serve_widgets
from .start_help import with_start_help
from .state_options import use_state_of
from .target import program_folder
from .task_file import open_task_store

if TYPE_CHECKING:
    from argparse import Namespace
    from socket import socket

    from ..app import App
    from ..calls.runtime import Runtime
    from ..server.http.server_options import ServeOptions


def run(program: Program, arguments: Sequence[str]) -> int:
    options = parser(program).parse_args(arguments)
    check_together(options)
    _check_loop(program, options)
    given = None
    if options.reload:
        from ..server.uvicorn.reload import inherited

        given = inherited()
    server = serve_options(options, restarted=given is not None and not given.is_first)
    if options.reload and given is None:
        return _reload(program, options.target, server)
    app = require_widgets(program.load_tagged(options.target, options))
    server = with_start_help(server, program, options.target, app)
    runtime = _runtime(app, options)
    serve_widgets(runtime, options)
    # It needs uvicorn, which `serve --help` does not.
    from ..server.uvicorn.uvicorn_server import serve, serve_on

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
        if program.loop is not None:
            return serve_on(program.loop, runtime, server, listener)
        return serve(runtime, server, listener)
    finally:
        remove_unix_socket(server)


def _check_loop(program: Program, options: Namespace) -> None:
    """Raise BadOption if an event loop is in the way, or cannot run what the options ask for."""
    if program.loop is None and running_loop() is not None:
        raise BadOption("the event loop is already running; write await app.run_async(['serve'])")
    if program.loop is not None and (options.reload or options.workers > 1):
        raise BadOption("--workers and --reload start processes, which only app.run() can do")


def _runtime(app: App, options: Namespace) -> Runtime:
    runtime = runtime_on_loop(
        registry_of(app),
        records=open_records(options),
        task_store=None if options.tasks is None else open_task_store(options.tasks),
        debug=options.debug,
    )
    is_shared = use_state_of(options, runtime)
    if options.no_tasks:
        if not is_shared:
            raise BadOption("--no-tasks needs --state: other hosts run the tasks")
        runtime.task_slots = 0
    return runtime


def _accept_test_tokens(runtime: Runtime, server: ServeOptions, listener: socket) -> None:
    """Replace the app's issuer by this server; raises BadOption."""
    from ..auth import OAuth
    from ..auth.development import development_of

    if not isinstance(runtime.auth, OAuth):
        found = "no auth=" if runtime.auth is None else f"auth={type(runtime.auth).__name__}(...)"
        raise BadOption(f"--dev-auth needs an app with auth=OAuth(...); this one has {found}")
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
