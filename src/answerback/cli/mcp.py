"""`mcp`: serves the tools over MCP on stdin and stdout."""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found]  # Not in typeshed; `signal` is slow.
import os
import sys
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from ..registry.declarations import registry_of
from ..server.process import collect_garbage_less_often, keep_stderr, take_stdin, take_stdout
from ..server.stdio import StdioServer
from .program import Program, require_widgets, write_stderr

if TYPE_CHECKING:
    from argparse import Namespace

    from ..app import App
    from .store_options import StdioOptions

# The exit status that a shell reports for SIGTERM.
_TERMINATED = 143
_ON_TERMINAL = """\
this command is meant for MCP hosts; it waits for JSON-RPC on stdin, one message per line:
  {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
Ctrl-D ends it"""


def run(program: Program, arguments: Sequence[str]) -> int:
    options: Namespace | None = None
    load: Callable[[], App]
    # The usual cases skip argparse, because importing it slows down startup.
    if not any(each.startswith("-") for each in arguments):
        _, load = program.target("mcp", arguments)
    else:
        from .store_options import parser

        options = parser(program).parse_args(arguments)
        load = partial(program.load_tagged, options.target, options)
    # Do this before loading the author's module, which may itself read stdin or print.
    out, source = take_stdout(), take_stdin()
    app = require_widgets(load())
    keep_stderr()
    more: StdioOptions = {}
    if options is not None:
        from .store_options import apply_flags

        more = apply_flags(options)
    if os.environ.get("ANSWERBACK_SECRET"):
        # The secret signs the state of questions; report an invalid secret now, not later.
        from ..core.signing import signer_from_environment

        signer_from_environment()
    if os.isatty(source):
        write_stderr(_ON_TERMINAL)
    _exit_on_sigterm()
    # Call this again now that the author's objects exist.
    collect_garbage_less_often()
    server = StdioServer(registry_of(app), out, source, loop=program.loop, **more)
    if program.loop is not None:
        program.loop.on_stop(server.interrupt)
    server.run()
    return 0


def _exit_on_sigterm() -> None:
    """Make SIGTERM end the process like Ctrl-C: `finally` blocks run and records are written.

    A handler set by the author is kept. Hosts stop a stdio server with this signal.
    """

    def exit_once(number: int, frame: object) -> None:
        # A second signal must not end the process while the records are being written.
        signal.signal(number, signal.SIG_IGN)
        sys.exit(_TERMINATED)

    is_default = signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    # Only the main thread can set a handler.
    if is_default and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, exit_once)
