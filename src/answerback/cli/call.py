"""`call`: one call from the shell."""

from __future__ import annotations

from argparse import SUPPRESS, ArgumentParser
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, get_args

from ..calls.call import Call
from ..contract import Dialect
from ..dialects import write
from ..reply import Error, Reply
from ..shape import RESULT
from ..wires.single_call import call_once
from ..wires.stdout import Stdout, take_stdin, take_stdout
from .call_arguments import arguments_for
from .program import Program, tell
from .terminal_peer import Terminal, is_person

if TYPE_CHECKING:
    from ..app import App

_VALUES = """\
A value is read by its argument's type: x=7 tags=a,b when=2026-01-31 loud=yes
name=@file gives what a file holds, name=- what comes on stdin; name=@@x is a plain @x.
For a list such a file has one item in each line, or is JSON.
NAME --help shows what a tool takes.

A terminal gets text to read; a pipe or a file gets JSON. Errors go to stderr."""


def run(program: Program, arguments: Sequence[str]) -> int:
    parser = _parser(program)
    given, strange = parser.parse_known_intermixed_args([*arguments])
    if strange:
        name = strange[0].lstrip("-").partition("=")[0] or "x"
        parser.error(f"{strange[0]} is no option; an argument is written {name}=value")
    words: list[str] = given.words
    target = words.pop(0) if program.app is None and words else None
    if given.help and not words:
        parser.print_help()
        return 0
    if program.app is None and target is None:
        parser.error("say where the tool is, such as calculator.py")
    # Before the author's module is loaded: it may print and read as well.
    out, stdin = take_stdout(), take_stdin()
    app = program.app or _loaded(program, target or "", words)
    if not words or ("=" in words[0] and words[0] not in app.tools):
        return _ask_which(app)
    name, *pairs = words
    name = name.encode("utf-8", "replace").decode()
    if given.help and name in app.tools:
        from .tool_help import manual

        out.write(f"{manual(app.tools[name], program.line('call', target))}\n".encode())
        return 0
    reply = _reply(app, name, pairs, given.json, stdin)
    if reply.error is not None:
        advice = None if name in app.tools else f"`{program.line('list', target)}` shows the tools"
        return _tell_error(app, reply, reply.error, given.dialect, advice)
    return _show(app, name, reply, given.dialect, out)


def _loaded(program: Program, target: str, words: Sequence[str]) -> App:
    from .target import NoSuchModule

    try:
        return program.load(target)
    except NoSuchModule as exc:
        if words and "=" not in words[0]:
            raise
        # Where the target should be stands the name of a tool.
        import shlex

        line = program.line("call", shlex.join(["calculator.py", target, *words]))
        raise NoSuchModule(f"{exc}; say where the tool is as well: {line}") from None


def _parser(program: Program) -> ArgumentParser:
    parser = program.parser("call", "NAME [argument=value …] [options]", add_help=False)
    parser.description = f"{parser.description}\n\n{_VALUES}"
    parser.add_argument("words", nargs="*", help=SUPPRESS)
    parser.add_argument("-h", "--help", action="store_true", help="show this, or a tool's own help")
    parser.add_argument("--json", metavar="OBJECT", help="the arguments as JSON, @file or -")
    parser.add_argument(
        "--dialect", choices=get_args(Dialect), help="print JSON, in this form (piped: rest)"
    )
    return parser


def _ask_which(app: App) -> int:
    from .list import listed

    tell(f"error: say which tool to call\n\n{listed(app)}")
    return 2


def _reply(app: App, name: str, pairs: Sequence[str], whole: str | None, stdin: int) -> Reply[Any]:
    arguments = arguments_for(app.tools.get(name), pairs, whole, stdin)
    if isinstance(arguments, Reply):
        return arguments
    terminal = Terminal(stdin)
    try:
        return call_once(app, Call(name, arguments, terminal, wire="call"))
    finally:
        terminal.finish()


def _show(app: App, name: str, reply: Reply[Any], dialect: Dialect | None, out: Stdout) -> int:
    """Words for a person, the dialect's JSON for a program or where it is asked for."""
    shape = app.tools[name].shape
    written = write(reply, dialect or "rest", shape, app.contract)
    raw = not written.media_type.endswith("json")
    if out.is_terminal and (raw or dialect is None):
        from .readable_reply import readable

        out.write(f"{readable(reply, shape)}\n".encode())
    else:
        out.write(written.body if raw else written.body + b"\n")
    return 0


def _tell_error(
    app: App, reply: Reply[Any], error: Error, dialect: Dialect | None, advice: str | None
) -> int:
    """Words for a person, who gets *advice* too; for a program the body, in the last line."""
    if dialect is None and is_person():
        from .readable_reply import readable_error

        tell(readable_error(error, advice))
        return error.row.exit
    if dialect is None and error.hint:
        # The plainest dialect has no place for it, and programs are run by those who read.
        tell(f"hint: {error.hint}")
    tell(write(reply, dialect or "rest", RESULT, app.contract).body.decode())
    return error.row.exit
