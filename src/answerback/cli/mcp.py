"""`mcp`: the tools to a language model's host, over stdin and stdout."""

from __future__ import annotations

import os
from collections.abc import Sequence

from ..wires.stdout import take_stdin, take_stdout
from .program import Program, tell

_BY_HAND = """\
this is for a language model's host to run, and waits for JSON-RPC, a message in each line:
  {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
Ctrl-D ends it"""


def run(program: Program, arguments: Sequence[str]) -> int:
    given = program.parser_with_target("mcp").parse_args(arguments)
    # Before the author's module is loaded: it may print and read as well.
    out, source = take_stdout(), take_stdin()
    app = program.load(given.target)
    from ..wires.stdio.stdio_server import StdioServer

    if os.isatty(source):
        tell(_BY_HAND)
    StdioServer(app, out, source).run()
    return 0
