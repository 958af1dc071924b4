"""`worker`: runs the tasks that servers on other hosts create."""

from __future__ import annotations

from collections.abc import Sequence

from ..calls.runtime import runtime_on_loop
from ..registry.declarations import registry_of
from ..server.http.server_options import ServeOptions, WebOptions
from ..server.process import collect_garbage_less_often, keep_stderr, switch_threads_sooner
from ..server.shared_state import WrongState
from ..server.uvicorn.listening import bind
from .program import Program, add_log_level_option, add_tag_options, positive_int
from .serve import port_number
from .store_options import add_audit_options, add_state_options, open_records, use_state_of


def run(program: Program, arguments: Sequence[str]) -> int:
    parser = program.parser_with_target("worker")
    add_state_options(parser)
    text = "how many tasks run at a time (default: the app's limit)"
    parser.add_argument("--concurrency", type=positive_int, metavar="N", help=text)
    text = "the address for the health pages (default: %(default)s)"
    parser.add_argument("--host", default="127.0.0.1", help=text)
    text = "the port for the health pages (default: a free one)"
    parser.add_argument("--port", type=port_number, default=0, help=text)
    add_log_level_option(parser)
    add_audit_options(parser)
    add_tag_options(parser)
    options = parser.parse_args(arguments)
    app = program.load_tagged(options.target, options)
    runtime = runtime_on_loop(registry_of(app), records=open_records(options))
    if not use_state_of(options, runtime):
        raise WrongState("a worker needs --state, the database that it shares with the servers")
    # Imported here because it needs uvicorn, which `worker --help` does not.
    from ..server.uvicorn.uvicorn_server import serve

    runtime.task_slots = options.concurrency
    server = ServeOptions(
        host=options.host,
        port=options.port,
        log_level=options.log_level,
        web=WebOptions(only_health=True, only_addresses=True),
    )
    keep_stderr()
    collect_garbage_less_often()
    switch_threads_sooner()
    return serve(runtime, server, bind(server))
