"""`serve`: serves the tools over HTTP."""

from __future__ import annotations

import os
from argparse import ArgumentParser, ArgumentTypeError, BooleanOptionalAction, Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..calls.runtime import runtime_on_loop
from ..core.event_loop import running_loop
from ..core.limits import MAX_BODY
from ..core.request_info import is_endpoint
from ..registry.declarations import registry_of
from ..server.http.server_options import KEEP_ALIVE, BadOption, ServeOptions, WebOptions
from ..server.process import collect_garbage_less_often, keep_stderr, switch_threads_sooner
from ..server.uvicorn.listening import base_url, bind, remove_unix_socket
from .help import with_start_help
from .program import (
    Program,
    add_log_level_option,
    add_repeatable,
    add_tag_options,
    positive_int,
    require_widgets,
)
from .store_options import (
    add_audit_options,
    add_state_options,
    add_tasks_option,
    open_records,
    open_task_store,
    use_state_of,
)
from .target import program_folder

if TYPE_CHECKING:
    from socket import socket

    from ..app import App
    from ..calls.runtime import Runtime


def run(program: Program, arguments: Sequence[str]) -> int:
    options = parser(program).parse_args(arguments)
    check_together(options)
    if program.loop is None and running_loop() is not None:
        raise BadOption("the event loop is already running; write await app.run_async(['serve'])")
    if program.loop is not None and (options.reload or options.workers > 1):
        raise BadOption("--workers and --reload start processes, which only app.run() can do")
    given = None
    if options.reload:
        from ..server.uvicorn.reload import inherited, serve_and_reload

        given = inherited()
    server = serve_options(options, restarted=given is not None and not given.is_first)
    if options.reload and given is None:
        folder = program_folder(program.app, options.target)
        listener = bind(server)
        try:
            return serve_and_reload(listener, folder)
        finally:
            remove_unix_socket(server)
    app = require_widgets(program.load_tagged(options.target, options))
    server = with_start_help(server, program, options.target, app)
    runtime = _runtime(app, options)
    # Imported here because it needs uvicorn, which `serve --help` does not.
    from ..server.uvicorn.uvicorn_server import serve, serve_on

    keep_stderr()
    collect_garbage_less_often()
    switch_threads_sooner()
    listener = bind(server) if given is None else given.listener
    try:
        if options.dev_auth or (app.auth is not None and not app.auth.has_own_url):
            _accept_test_tokens(runtime, server, listener)
        if program.loop is not None:
            return serve_on(program.loop, runtime, server, listener)
        return serve(runtime, server, listener)
    finally:
        # With --reload, the process that watches the files removes the socket.
        if given is None:
            remove_unix_socket(server)


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
            raise BadOption("--no-tasks needs --state, so that other hosts can run the tasks")
        runtime.task_slots = 0
    if options.url is not None:
        auth = runtime.auth
        if auth is not None and auth.url not in ("", options.url):
            raise BadOption(f"--url is {options.url}, but the app's auth= has {auth.url}")
        runtime.url = options.url
    # This rereads widget files after each change.
    runtime.development = options.reload or options.debug
    return runtime


def _accept_test_tokens(runtime: Runtime, server: ServeOptions, listener: socket) -> None:
    """Replace the app's issuer with this server; raises BadOption."""
    from ..auth import OAuth
    from ..auth.development import development_of

    if not isinstance(runtime.auth, OAuth):
        found = "no auth=" if runtime.auth is None else f"auth={type(runtime.auth).__name__}(...)"
        raise BadOption(f"--dev-auth needs an app with auth=OAuth(...); this one has {found}")
    base = base_url(server, listener)
    try:
        runtime.auth = development_of(runtime.auth, base)
    except ValueError:
        raise BadOption(f"test tokens only work on this machine, not for {base}") from None


def parser(program: Program) -> ArgumentParser:
    made = program.parser_with_target("serve")
    _add_address(made)
    text = "the largest request body (default: 4 MiB)"
    made.add_argument("--max-body", type=positive_int, default=MAX_BODY, metavar="BYTES", help=text)
    text = "accept this Host header too, such as tools.example.com"
    add_repeatable(made, "--allow-host", "NAME", text)
    text = "accept requests from this Origin, such as https://example.com"
    add_repeatable(made, "--allow-origin", "URL", text)
    text = "trust forwarded headers from this address or network"
    add_repeatable(made, "--trust-proxy", "ADDRESS", text)
    text = "serve MCP without sessions, like Access(sessions=False)"
    made.add_argument("--stateless", action="store_true", help=text)
    text = "accept test tokens issued by this server; on this machine only"
    made.add_argument("--dev-auth", action="store_true", help=text)
    text = "restart when one of the program's Python files changes; reload widgets"
    made.add_argument("--reload", action="store_true", help=text)
    text = "send exception messages to the caller; on this machine only"
    made.add_argument("--debug", action="store_true", help=text)
    text = "show browsers a page for calling the tools (default: only on this machine)"
    made.add_argument("--console", action=BooleanOptionalAction, help=text)
    add_log_level_option(made)
    made.add_argument("--access-log", action="store_true", help="log a line for each request")
    add_audit_options(made)
    add_tasks_option(made)
    add_state_options(made)
    text = "do not run tasks here; the workers that share --state run them"
    made.add_argument("--no-tasks", action="store_true", help=text)
    add_tag_options(made)
    return made


def _add_address(parser: ArgumentParser) -> None:
    text = "the address to listen on (default: HOST in the environment, or 127.0.0.1)"
    parser.add_argument("--host", help=text)
    text = "the port; 0 picks a free one (default: PORT in the environment, or 8000)"
    parser.add_argument("--port", type=port_number, help=text)
    parser.add_argument("--uds", metavar="PATH", help="listen on this unix socket instead")
    parser.add_argument("--tls-cert", metavar="FILE", help="serve HTTPS with this certificate")
    parser.add_argument("--tls-key", metavar="FILE", help="the certificate's private key")
    text = "the path at which a proxy exposes this server, such as /tools"
    parser.add_argument("--root-path", default="", metavar="PATH", help=text)
    text = "the URL of the MCP endpoint as clients know it, such as https://example.com/mcp"
    parser.add_argument("--url", type=_endpoint, help=text)
    text = "worker processes (default: 1)"
    parser.add_argument("--workers", type=positive_int, default=1, metavar="N", help=text)
    parser.add_argument(
        "--keep-alive",
        type=positive_int,
        default=KEEP_ALIVE,
        metavar="SECONDS",
        help="close a connection after this long without a request; set it longer than the "
        f"timeout of a proxy in front (default: {KEEP_ALIVE})",
    )
    text = "after SIGTERM, keep serving this long with /readyz at 503 (default: exit immediately)"
    parser.add_argument("--drain", type=positive_int, metavar="SECONDS", help=text)


def _endpoint(text: str) -> str:
    if not is_endpoint(text):
        raise ArgumentTypeError(f"must be a full URL such as https://example.com/mcp, not {text!r}")
    return text


def port_number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text[:10]) < 65536):
        raise ArgumentTypeError(f"must be a number from 0 to 65535, not {text!r}")
    return int(text)


def check_together(options: Namespace) -> None:
    """Raise BadOption for mutually exclusive flags."""
    if options.reload and options.workers > 1:
        raise BadOption("--reload runs one process; leave out --workers, or --reload")
    if options.reload and options.drain:
        raise BadOption("--reload restarts immediately; leave out --drain, or --reload")
    if options.state is not None and options.tasks is not None:
        raise BadOption("--state already stores the tasks; leave out --tasks")
    if options.uds is not None and (options.host is not None or options.port is not None):
        raise BadOption("--uds replaces --host and --port; leave them out")


def serve_options(options: Namespace, *, restarted: bool = False) -> ServeOptions:
    """Return the server's options; raises BadOption for mutually exclusive values."""
    port = options.port
    if port is None:
        try:
            port = port_number(os.environ.get("PORT") or "8000")
        except ArgumentTypeError as exc:
            raise BadOption(f"PORT in the environment {exc}; --port overrides it") from None
    return ServeOptions(
        host=options.host or os.environ.get("HOST") or "127.0.0.1",
        port=port,
        uds=options.uds,
        tls_cert=options.tls_cert,
        tls_key=options.tls_key,
        root_path=options.root_path,
        workers=options.workers,
        keep_alive=options.keep_alive,
        drain=options.drain or 0,
        log_level=options.log_level,
        access_log=options.access_log,
        debug=options.debug,
        console=options.console,
        restarted=restarted,
        web=WebOptions(
            max_body=options.max_body,
            hosts=(*options.allow_host,),
            origins=(*options.allow_origin,),
            trusted_proxies=(*options.trust_proxy,),
            only_addresses=True,
            sessions=not options.stateless,
        ),
    )
