"""`read`: reads one resource from the shell."""

from __future__ import annotations

from collections.abc import Sequence

from .call import UnreadableArgument, add_target_options, is_utf8
from .program import Program
from .reply_output import add_output_options, check_output, print_reply

_HELP = """\
Output is text on a terminal. In a pipe or a file, it is the unchanged content, or JSON if there are
several contents. Errors go to stderr. `list` shows the resources."""


def run(program: Program, arguments: Sequence[str]) -> int:
    parser = program.parser_with_target("read", "URI [options]", _HELP)
    parser.add_argument("uri", metavar="URI", help="the resource, such as config://app")
    add_output_options(parser)
    add_target_options(parser, program)
    options = parser.parse_args(arguments)
    if not is_utf8(options.uri):
        raise UnreadableArgument(f"{options.uri!r} is not UTF-8")
    server = program.find_server(options.target)
    check_output(options)
    with program.open(server, options) as (target, out):
        reply = target.read(options.uri)
    advice = target.advice("resources")
    return print_reply(reply, target.contract, options, out, advice=advice, as_file=True)
