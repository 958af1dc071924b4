"""`prompt`: fills in one prompt from the shell."""

from __future__ import annotations

from collections.abc import Sequence

from .call import UnreadableArgument, add_target_options, is_utf8
from .program import Program
from .readable_reply import print_prompt
from .reply_output import print_error

_HELP = """\
name=@file reads the value from a file, name=- from stdin; name=@@x means the text @x.
`list` shows the prompts and their arguments.

Output is text on a terminal, and MCP's JSON in a pipe or a file. Errors go to stderr."""


def run(program: Program, arguments: Sequence[str]) -> int:
    parser = program.parser_with_target("prompt", "NAME [argument=value …] [options]", _HELP)
    parser.add_argument("words", metavar="NAME", nargs="*", help="the prompt, then its arguments")
    add_target_options(parser, program)
    options = parser.parse_intermixed_args([*arguments])
    if not options.words:
        line = program.command_line("list", options.target)
        parser.error(f"name the prompt; `{line} --prompts` shows the prompts")
    name, *pairs = options.words
    if not is_utf8(name):
        raise UnreadableArgument(f"{name!r} is not UTF-8")
    with program.open(program.find_server(options.target), options) as (target, out):
        reply = target.prompt(name, pairs)
    if reply.error is not None:
        advice = target.advice("prompts")
        return print_error(reply, reply.error, target.contract, advice=advice)
    return print_prompt(reply, out)
