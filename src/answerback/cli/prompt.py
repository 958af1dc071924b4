"""`prompt`: fills in one prompt from the shell."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.author_errors import did_you_mean, similar_names
from ..core.reply import Reply, failure
from ..errors import NotFound
from ..registry.declarations import registry_of
from ..server.process import take_stdin, take_stdout
from .call import add_user_options, call_as_user, read_arguments
from .program import Program, add_server_options, add_tag_options, refuse_server_options
from .readable_reply import print_prompt
from .reply_output import print_error

_HELP = """\
name=@file reads the value from a file, name=- from stdin; name=@@x means the text @x.
`list` shows the prompts and their arguments.

Output is text on a terminal, and MCP's JSON in a pipe or a file. Errors go to stderr."""


def run(program: Program, arguments: Sequence[str]) -> int:
    parser = program.parser_with_target("prompt", "NAME [argument=value …] [options]", _HELP)
    parser.add_argument("words", metavar="NAME", nargs="*", help="the prompt, then its arguments")
    add_user_options(parser)
    add_tag_options(parser)
    add_server_options(parser, program)
    options = parser.parse_intermixed_args([*arguments])
    if not options.words:
        line = program.command_line("list", options.target)
        parser.error(f"name the prompt; `{line} --prompts` shows the prompts")
    options.name, *options.pairs = options.words
    server = program.find_server(options.target)
    # Do this before loading the author's module, which may itself read stdin or print.
    out, stdin = take_stdout(), take_stdin()
    if server is not None:
        from .remote import prompt_remote

        return prompt_remote(server, options, out, stdin)
    refuse_server_options(options)
    app = program.load_tagged(options.target, options)
    prompts = registry_of(app).prompts
    name = options.name
    given = read_arguments(prompts.get(name), options.pairs, None, stdin)
    if name not in prompts:
        hint = did_you_mean(similar_names(name, prompts))
        reply = failure(f"Prompt not found: {name}", NotFound.code, hint=hint or None)
    elif isinstance(given, Reply):
        reply = given
    else:
        # The reply has one block per message, and the roles are in its meta.
        reply = call_as_user(app, prompts[name].name, given, options, stdin, "prompts")
    if reply.error is not None:
        advice = f"`{program.command_line('list', options.target)} --prompts` shows them"
        return print_error(reply, reply.error, app.contract, None, advice)
    return print_prompt(reply.meta["roles"], reply.content, prompts[name].description, out)
