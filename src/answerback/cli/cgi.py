"""`cgi`: answers one CGI request from a web server."""

from __future__ import annotations

import os
from collections.abc import Sequence

from ..server.cgi import serve
from ..server.process import take_stdin, take_stdout
from .program import Program, write_stderr

_WITHOUT_SERVER = """\
a web server runs this command; to try it by hand, set the CGI variables:
  echo '{"x":7}' | REQUEST_METHOD=POST PATH_INFO=/NAME CONTENT_LENGTH=7 COMMAND
REQUEST_METHOD is not set, so this is treated as a GET request"""


def run(program: Program, arguments: Sequence[str]) -> int:
    target, load = program.target("cgi", arguments)
    # Do this before loading the author's module, which may itself read stdin or print.
    out, source = take_stdout(), take_stdin()
    if "REQUEST_METHOD" not in os.environ:
        write_stderr(_WITHOUT_SERVER.replace("COMMAND", program.command_line("cgi", target)))
    return serve(load, os.environ, out, source)
