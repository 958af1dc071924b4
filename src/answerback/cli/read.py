"""`read`: reads one resource from the shell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from ..calls.failures import invalid_arguments
from ..core.reply import Reply, failure
from ..core.shape import BARE
from ..errors import NotFound
from ..protocol.listing import find_resource
from ..registry.declarations import registry_of
from ..server.process import take_stdin, take_stdout
from ..tools.resource import contents_of
from ..types.problems import InvalidArguments
from .call import add_user_options, call_as_user
from .program import Program, add_server_options, add_tag_options, refuse_server_options
from .reply_output import add_output_options, check_output, print_error, print_reply

if TYPE_CHECKING:
    from ..app import App
    from .program import Options

_HELP = """\
Output is text on a terminal. In a pipe or a file, it is the unchanged content, or JSON if there are
several contents. Errors go to stderr. `list` shows the resources."""


def run(program: Program, arguments: Sequence[str]) -> int:
    parser = program.parser_with_target("read", "URI [options]", _HELP)
    parser.add_argument("uri", metavar="URI", help="the resource, such as config://app")
    add_output_options(parser)
    add_user_options(parser)
    add_tag_options(parser)
    add_server_options(parser, program)
    options = parser.parse_args(arguments)
    server = program.find_server(options.target)
    check_output(options)
    # Do this before loading the author's module, which may itself read stdin or print.
    out, stdin = take_stdout(), take_stdin()
    if server is not None:
        from .remote import read_remote

        return read_remote(server, options, out, stdin)
    refuse_server_options(options)
    app = program.load_tagged(options.target, options)
    reply = _read(app, options.uri, options, stdin)
    if reply.error is not None:
        advice = f"`{program.command_line('list', options.target)} --resources` shows them"
        return print_error(reply, reply.error, app.contract, options.dialect, advice)
    return print_reply(reply, BARE, app.contract, options, out, as_file=True)


def _read(app: App, uri: str, options: Options, stdin: int) -> Reply[Any]:
    try:
        found = find_resource(registry_of(app), uri, None)
    except InvalidArguments as exc:
        return Reply(error=invalid_arguments(exc))
    if found is None:
        return failure(f"Resource not found: {uri}", NotFound.code)
    resource, arguments = found
    reply = call_as_user(app, resource.uri, arguments, options, stdin, "resources")
    if reply.error is not None:
        return reply
    contents = tuple(contents_of(resource, uri, reply))
    return msgspec.structs.replace(reply, content=contents, data=msgspec.UNSET, encoded=None)
