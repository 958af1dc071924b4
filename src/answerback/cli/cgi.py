"""`cgi`: answers one CGI request of a web server."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial

from ..wires.cgi import serve
from ..wires.standard_streams import take_stdin, take_stdout
from .program import Program, write_stderr

_WITHOUT_SERVER = """\
a web server runs this command; to try it by hand, set the variables of CGI:
  echo '{"x":7}' | REQUEST_METHOD=POST PATH_INFO=/NAME CONTENT_LENGTH=7 COMMAND
REQUEST_METHOD is not set, so this counts as a GET request"""


def run(program: Program, arguments: Sequence[str]) -> int:
    target = _target(program, arguments)
    # Before the author's module is loaded: it may print and read as well.
    out, source = take_stdout(), take_stdin()
    if "REQUEST_METHOD" not in os.environ:
        write_stderr(_WITHOUT_SERVER.replace("COMMAND", program.command_line("cgi", target)))
    return serve(partial(program.load, target), os.environ, out, source)


def _target(program: Program, arguments: Sequence[str]) -> str | None:
    """The target; argparse is left out in the usual cases, as each request pays for its import."""
    if program.app is not None and not arguments:
        return None
    if program.app is None and len(arguments) == 1 and not arguments[0].startswith("-"):
        return arguments[0]
    target: str | None = program.parser_with_target("cgi", usage="").parse_args(arguments).target
    return target
