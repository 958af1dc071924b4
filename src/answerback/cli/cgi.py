"""`cgi`: answers one CGI request of a web server."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from ..wires.cgi import serve
from ..wires.standard_streams import take_stdin, take_stdout
from .program import Program, add_tag_options, write_stderr

if TYPE_CHECKING:
    from ..app import App

_WITHOUT_SERVER = """\
a web server runs this command; to try it by hand, set the variables of CGI:
  echo '{"x":7}' | REQUEST_METHOD=POST PATH_INFO=/NAME CONTENT_LENGTH=7 COMMAND
REQUEST_METHOD is not set, so this counts as a GET request"""


def run(program: Program, arguments: Sequence[str]) -> int:
    target, load = _target(program, arguments)
    # Before the author's module is loaded: it may print and read as well.
    out, source = take_stdout(), take_stdin()
    if "REQUEST_METHOD" not in os.environ:
        write_stderr(_WITHOUT_SERVER.replace("COMMAND", program.command_line("cgi", target)))
    return serve(load, os.environ, out, source)


def _target(program: Program, arguments: Sequence[str]) -> tuple[str | None, Callable[[], App]]:
    """The target, and the function that loads its App.

    argparse is left out in the usual cases, as each request pays for its import.
    """
    if program.app is not None and not arguments:
        return None, partial(program.load, None)
    if program.app is None and len(arguments) == 1 and not arguments[0].startswith("-"):
        return arguments[0], partial(program.load, arguments[0])
    parser = program.parser_with_target("cgi")
    add_tag_options(parser)
    options = parser.parse_args(arguments)
    return options.target, partial(program.load_tagged, options.target, options)
