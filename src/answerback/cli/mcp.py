"""`mcp`: serves the tools over MCP on stdin and stdout."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from ..wires.standard_streams import take_stdin, take_stdout
from .program import Program, require_widgets, write_stderr

# A shell reports this status for SIGTERM.
_TERMINATED = 143
_ON_TERMINAL = """\
a language model's host runs this command; it waits for JSON-RPC, one message in each line:
  {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
Ctrl-D ends it"""


def run(program: Program, arguments: Sequence[str]) -> int:
    _, load = program.target("mcp", arguments)
    # Before the author's module is loaded: it may print and read as well.
    out, source = take_stdout(), take_stdin()
    app = require_widgets(load())
    if os.environ.get("ANSWERBACK_SECRET"):
        # It signs the state of questions; an invalid one is reported now, not at a question.
        from ..signing import signer_from_environment

        signer_from_environment()
    from ..wires.interpreter_settings import collect_garbage_less_often
    from ..wires.stdio.stdio_server import StdioServer

    if os.isatty(source):
        write_stderr(_ON_TERMINAL)
    _exit_on_sigterm()
    # Again, because the author's objects exist only now.
    collect_garbage_less_often()
    StdioServer(app, out, source).run()
    return 0


def _exit_on_sigterm() -> None:
    """Let SIGTERM end the process as Ctrl-C does: `finally` blocks run, records are written.

    A handler of the author's own stays. Hosts end a server on stdio with this signal.
    """
    # The module behind `signal`, whose import takes a millisecond of each start.
    import _signal as signal  # type: ignore[import-not-found]  # typeshed lacks it
    import threading

    def exit_once(number: int, frame: object) -> None:
        # A second signal must not end the process while the records are being written.
        signal.signal(number, signal.SIG_IGN)
        sys.exit(_TERMINATED)

    is_default = signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    # Only the main thread may set a handler.
    if is_default and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, exit_once)
