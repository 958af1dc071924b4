"""`cgi`: one request from a web server."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial

from ..wires.cgi import serve
from ..wires.stdout import take_stdin, take_stdout
from .program import Program, tell

_BY_HAND = """\
this is for a web server to run; by hand, set what one sets:
  echo '{"x":7}' | REQUEST_METHOD=POST PATH_INFO=/NAME CONTENT_LENGTH=7 COMMAND
no REQUEST_METHOD is set, so this is taken for a GET"""


def run(program: Program, arguments: Sequence[str]) -> int:
    target = _target(program, arguments)
    # Before the author's module is loaded: it may print and read as well.
    out, source = take_stdout(), take_stdin()
    if "REQUEST_METHOD" not in os.environ:
        tell(_BY_HAND.replace("COMMAND", program.line("cgi", target)))
    return serve(partial(program.load, target), os.environ, out, source)


def _target(program: Program, arguments: Sequence[str]) -> str | None:
    """Without argparse where it can be: each request pays for every import."""
    if program.app is not None and not arguments:
        return None
    if program.app is None and len(arguments) == 1 and not arguments[0].startswith("-"):
        return arguments[0]
    target: str | None = program.parser_with_target("cgi", usage="").parse_args(arguments).target
    return target
