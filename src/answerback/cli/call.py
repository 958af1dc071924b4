"""`call`: calls one tool from the shell."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from ..core.reply import Reply
from ..errors import ToolError
from ..registry.declarations import registry_of
from ..server.standard_streams import take_stdin, take_stdout
from .call_arguments import in_quotes, read_arguments
from .program import (
    SERVER_OPTIONS,
    NoSuchTarget,
    Program,
    add_server_options,
    add_tag_options,
    printable,
    refuse_server_options,
    write_stderr,
    write_stdout,
)
from .reply_output import (
    add_output_options,
    check_output,
    first_items,
    print_error,
    print_reply,
)
from .user_call import add_user_options, call_as_user

if TYPE_CHECKING:
    from argparse import ArgumentParser

    from ..app import App
    from .program import Options, ServerTarget

_OWN_OPTIONS = ("help", "json", "dialect", "output", "limit", "user", "scope")
_VALUES_HELP = """\
A value is read by its argument's type: x=7 tags=a,b when=2026-01-31 loud=yes
name=@file reads the value from a file, name=- from stdin; name=@@x is the text @x.
For a list the file has one item in each line, or is JSON.
NAME --help shows the arguments of a tool.

A terminal gets text to read; a pipe or a file gets JSON. Errors go to stderr.

If a URL asks for a login, a terminal opens the page in your browser; the tokens are kept in
answerback/logins.json in your folder of settings."""


class NotATool(ToolError):
    """The name is that of a prompt or a resource."""

    code = kind = "TOOL_NOT_FOUND"


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
    if server is None:
        refuse_server_options(options)
    check_output(options)
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
    if name not in app.tools and (other := _other_command(app, name)) is not None:
        kind, command = other
        line = program.command_line(command, target)
        raise NotATool(f"{name!r} is a {kind}, not a tool; write: {line} {name}")
    reply = _call(app, name, pairs, options, stdin)
    if reply.error is not None:
        list_command = program.command_line("list", target)
        advice = None if name in app.tools else f"`{list_command}` shows the tools"
        return print_error(reply, reply.error, app.contract, options.dialect, advice)
    shape = reply.shape or app.tools[name].shape
    reply = first_items(reply, options.limit)
    return print_reply(reply, shape, app.contract, options, out)


def _other_command(app: App, name: str) -> tuple[str, str] | None:
    """Return what *name* is instead of a tool, and its command; None if it is unknown."""
    registry = registry_of(app)
    if name in registry.prompts:
        return "prompt", "prompt"
    return ("resource", "read") if name in registry.resources else None


def _options(program: Program, arguments: Sequence[str]) -> Options:
    """Read the options; without any, skip argparse, because its import costs each call time."""
    if not any(each.startswith("-") for each in arguments):
        none = dict.fromkeys((*_OWN_OPTIONS, *SERVER_OPTIONS))
        return SimpleNamespace(words=[*arguments], tag=[], exclude_tag=[], **none)
    parser = _parser(program)
    if arguments[-1] == "--json":
        parser.error(
            "--json needs the arguments as a JSON object, such as --json '{\"x\": 7}'; "
            "if you want the reply as JSON, write | cat at the end"
        )
    options, unknown = parser.parse_known_intermixed_args([*arguments])
    if unknown:
        flag = unknown[0].partition("=")[0]
        name = flag.lstrip("-") or "x"
        parser.error(f"{flag} is not an option; write an argument as {name}=value")
    return options


def _find_server(program: Program, target: str | None, words: Sequence[str]) -> ServerTarget | None:
    """Return the server; raises NoSuchTarget with advice if a tool's name may be in its place."""
    has_name = bool(words) and "=" not in words[0]
    try:
        server = program.find_server(target)
    except NoSuchTarget as exc:
        if has_name:
            raise
        line = program.command_line("call", in_quotes("calculator.py", target or "", *words))
        raise NoSuchTarget(exc.reason, f"name the file of the tool first: {line}") from None
    if isinstance(server, list) and len(server) == 1 and has_name and words[0].endswith(".py"):
        command = f"{target} {words[0]} mcp"
        raise NoSuchTarget(
            f"{words[0]!r} is a file, not a tool", f"put quotes around a command: {command!r}"
        )
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
    add_output_options(parser)
    parser.add_argument(
        "--limit", metavar="N", type=_count, help="print the first N items of a list"
    )
    add_user_options(parser)
    add_tag_options(parser)
    add_server_options(parser, program)
    return parser


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text[:9]) > 0):
        from argparse import ArgumentTypeError

        raise ArgumentTypeError(f"{text!r} should be a number from 1")
    return int(text[:9])


def _print_tools(app: App) -> int:
    """Print the error for a call without a tool's name, with the tools to choose from."""
    from .list import list_tools

    write_stderr(f"error: name the tool to call\n\n{list_tools(app)}")
    return 2


def _call(app: App, name: str, pairs: Sequence[str], options: Options, stdin: int) -> Reply[Any]:
    arguments = read_arguments(app.tools.get(name), pairs, options.json, stdin)
    if isinstance(arguments, Reply):
        return arguments
    return call_as_user(app, name, arguments, options, stdin)
