"""`mcp`: the tools to a language model's host, over stdin and stdout."""

from __future__ import annotations

from collections.abc import Sequence

from ..wires.stdout import take_stdout
from .program import Program


def run(program: Program, arguments: Sequence[str]) -> int:
    given = program.parser_with_target("mcp").parse_args(arguments)
    out = take_stdout()
    app = program.load(given.target)
    from ..wires.stdio import Stdio

    Stdio(app, out).run()
    return 0
