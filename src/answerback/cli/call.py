"""`call`: calls one tool from the shell."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, get_args

import msgspec

from ..calls.call import Call
from ..contract import Dialect
from ..core.reply import Error, Reply
from ..core.shape import RESULT, Shape
from ..dialects import HttpReply, write
from ..registry.declarations import registry_of
from ..server.single_call import call_once
from ..server.standard_streams import Stdout, take_stdin, take_stdout
from .call_arguments import read_arguments
from .program import (
    NO_SERVER,
    NoSuchTarget,
    Program,
    add_repeatable,
    add_server_options,
    add_tag_options,
    printable,
    printable_json,
    write_json,
    write_stderr,
    write_stdout,
)
from .terminal_peer import TerminalPeer, stderr_is_terminal

if TYPE_CHECKING:
    from argparse import ArgumentParser

    from ..app import App
    from .program import Options, ServerTarget

_VALUES_HELP = """\
A value is read by its argument's type: x=7 tags=a,b when=2026-01-31 loud=yes
name=@file reads the value from a file, name=- from stdin; name=@@x is the text @x.
For a list the file has one item in each line, or is JSON.
NAME --help shows the arguments of a tool.

A terminal gets text to read; a pipe or a file gets JSON. Errors go to stderr.

TARGET may be the URL of any MCP server. If it asks for a login, a terminal opens the page in
your browser; the tokens are kept in answerback/logins.json in your folder of settings."""


def run(program: Program, arguments: Sequence[str]) -> int:
    options = _options(program, arguments)
    words: list[str] = options.words
    target = words.pop(0) if program.app is None and words else None
    if options.help and not words:
        _parser(program).print_help()
        return 0
    if program.app is None and target is None:
        _parser(program).error("name the file of the tool first, such as calculator.py")
    server = _find_server(program, target, words)
    if (options.transport or options.inherit_env) and server is None:
        _parser(program).error(NO_SERVER)
    # Before the author's module is loaded: it may print and read as well.
    out, stdin = take_stdout(), take_stdin()
    if server is not None:
        from .remote import call_remote

        return call_remote(server, words, options, out, stdin)
    app = program.load_tagged(target, options)
    if not words or ("=" in words[0] and words[0] not in app.tools):
        return _print_tools(app)
    name, *pairs = words
    name = name.encode("utf-8", "replace").decode()
    if options.help and name in app.tools:
        from .tool_help import tool_help

        text = tool_help(app.tools[name], program.command_line("call", target))
        write_stdout(out, f"{printable(text)}\n".encode())
        return 0
    reply = _call(app, name, pairs, options, stdin)
    if reply.error is not None:
        list_command = program.command_line("list", target)
        advice = None if name in app.tools else f"`{list_command}` shows the tools"
        return _print_error(app, reply, reply.error, options.dialect, advice)
    shape = reply.shape or app.tools[name].shape
    written = write(reply, options.dialect or app.contract.http, shape, app.contract)
    return print_success(reply, shape, written, options.dialect, out)


def _options(program: Program, arguments: Sequence[str]) -> Options:
    """Read the options; without any, skip argparse, because its import costs each call time."""
    if not any(each.startswith("-") for each in arguments):
        none = dict.fromkeys(("help", "json", "dialect", "user", "transport", "inherit_env"))
        return SimpleNamespace(words=[*arguments], tag=[], exclude_tag=[], **none)
    parser = _parser(program)
    options, unknown = parser.parse_known_intermixed_args([*arguments])
    if unknown:
        name = unknown[0].lstrip("-").partition("=")[0] or "x"
        parser.error(f"{unknown[0]} is not an option; write an argument as {name}=value")
    if options.scope and options.user is None:
        parser.error("--scope needs --user")
    return options


def _find_server(program: Program, target: str | None, words: Sequence[str]) -> ServerTarget | None:
    """Return the server; raises NoSuchTarget with advice if a tool's name may be in its place."""
    has_name = bool(words) and "=" not in words[0]
    try:
        server = program.find_server(target)
    except NoSuchTarget as exc:
        if has_name:
            raise
        import shlex

        line = program.command_line("call", shlex.join(["calculator.py", target or "", *words]))
        raise NoSuchTarget(exc.reason, f"name the file of the tool first: {line}") from None
    if isinstance(server, list) and len(server) == 1 and not has_name:
        # A forgotten target would start any program that has the name of a tool.
        line = program.command_line("list", target)
        raise NoSuchTarget("name the tool to call", f"`{line}` shows the tools")
    return server


def _parser(program: Program) -> ArgumentParser:
    from argparse import SUPPRESS

    parser = program.parser("call", "NAME [argument=value …] [options]", add_help=False)
    parser.description = f"{parser.description}\n\n{_VALUES_HELP}"
    parser.add_argument("words", nargs="*", help=SUPPRESS)
    parser.add_argument("-h", "--help", action="store_true", help="show this, or a tool's own help")
    parser.add_argument("--json", metavar="OBJECT", help="the arguments as JSON, @file or -")
    parser.add_argument(
        "--dialect",
        choices=get_args(Dialect),
        help="print JSON in this dialect (piped: the contract's)",
    )
    parser.add_argument("--user", metavar="NAME", help="call as this user, for tools with gates")
    add_repeatable(parser, "--scope", "SCOPE", "a scope of the user")
    add_tag_options(parser)
    add_server_options(parser, program)
    return parser


def _print_tools(app: App) -> int:
    """Print the error for a call without a tool's name, with the tools to choose from."""
    from .list import list_tools

    write_stderr(f"error: name the tool to call\n\n{list_tools(app)}")
    return 2


def _call(app: App, name: str, pairs: Sequence[str], options: Options, stdin: int) -> Reply[Any]:
    arguments = read_arguments(app.tools.get(name), pairs, options.json, stdin)
    if isinstance(arguments, Reply):
        return arguments
    peer = TerminalPeer(stdin)
    call = Call(name, arguments, peer, wire="call")
    if options.user is not None:
        from ..core.authentication import User

        # The app's issuer, so that the gates' links are for the user who logs in there.
        issuer = "" if app.auth is None else app.auth.issuer
        call.user = User(subject=options.user, issuer=issuer, scopes=frozenset(options.scope))
    try:
        return call_once(registry_of(app), call)
    finally:
        peer.clear_progress()


def print_success(
    reply: Reply[Any], shape: Shape, written: HttpReply, dialect: Dialect | None, out: Stdout
) -> int:
    """Print text on a terminal; print JSON to a pipe, or if a dialect is requested."""
    is_raw = not written.media_type.endswith("json")
    if out.is_terminal and (is_raw or dialect is None):
        from .readable_reply import reply_text

        write_stdout(out, f"{reply_text(reply, shape)}\n".encode())
    elif is_raw:
        write_stdout(out, written.body)
    else:
        write_json(out, written.body)
    return 0


def _print_error(
    app: App, reply: Reply[Any], error: Error, dialect: Dialect | None, advice: str | None
) -> int:
    """Print text and *advice* for a person, or a line of JSON for a program."""
    if dialect is None and stderr_is_terminal():
        from .readable_reply import error_text

        write_stderr(error_text(error, advice))
        return error.row.exit
    body = write(reply, dialect or app.contract.http, RESULT, app.contract).body
    is_rest = dialect is None and app.contract.http == "rest"
    if is_rest and app.contract.error_text != "json":
        # A pipe has no HTTP status, which the rest dialect relies on, so the code is added; but
        # a contract with errors in JSON defines all members of that JSON.
        members = {**msgspec.json.decode(body), "code": error.code}
        body = msgspec.json.encode(members | ({"hint": error.hint} if error.hint else {}))
    write_stderr(printable_json(body.decode()))
    return error.row.exit
