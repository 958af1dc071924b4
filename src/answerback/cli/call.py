"""`call`: one call from the shell."""

from __future__ import annotations

from argparse import SUPPRESS, ArgumentParser
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, get_args

from ..call import Call
from ..contract import Dialect
from ..dialects import write
from ..reply import Error, Reply
from ..shape import RESULT
from ..wires.once import call_once
from ..wires.stdout import Stdout, take_stdout
from .given import arguments_for
from .program import Program, tell
from .terminal import Terminal, is_person

if TYPE_CHECKING:
    from ..app import App

_VALUES = """\
A value is read by its argument's type: x=7 tags=a,b when=2026-01-31 loud=yes
name=@file gives what a file holds, name=- what comes on stdin; name=@@x is a plain @x.
NAME --help shows what a tool takes."""


def run(program: Program, arguments: Sequence[str]) -> int:
    parser = _parser(program)
    given = parser.parse_intermixed_args([*arguments])
    words: list[str] = given.words
    target = words.pop(0) if program.app is None and words else None
    if given.help and not words:
        parser.print_help()
        return 0
    if program.app is None and target is None:
        parser.error("say where the tool is, such as calculator.py")
    # Before the author's module is loaded: it may print as well.
    out = take_stdout()
    app = program.load(target)
    if not words:
        return _ask_which(app)
    name, *pairs = words
    name = name.encode("utf-8", "replace").decode()
    if given.help and name in app.tools:
        from .manual import manual

        out.write(f"{manual(app.tools[name], program.line('call', target))}\n".encode())
        return 0
    return _show(app, name, _reply(app, name, pairs, given.json), given.dialect, out)


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


def _reply(app: App, name: str, pairs: Sequence[str], whole: str | None) -> Reply[Any]:
    arguments = arguments_for(app.tools.get(name), pairs, whole)
    if isinstance(arguments, Reply):
        return arguments
    terminal = Terminal()
    try:
        return call_once(app, Call(name, arguments, terminal, wire="call"))
    finally:
        terminal.finish()


def _show(app: App, name: str, reply: Reply[Any], dialect: Dialect | None, out: Stdout) -> int:
    """Words for a person, the dialect's JSON for a program or where it is asked for."""
    tool = app.tools.get(name)
    shape = tool.shape if tool is not None and reply.ok else RESULT
    written = write(reply, dialect or "rest", shape, app.contract)
    if reply.error is not None:
        _tell_error(reply.error, written.body.decode(), plain=dialect is None)
        return reply.error.row.exit
    raw = not written.media_type.endswith("json")
    if out.is_terminal and (raw or dialect is None):
        from .readable import readable

        out.write(f"{readable(reply, shape)}\n".encode())
    else:
        out.write(written.body if raw else written.body + b"\n")
    return 0


def _tell_error(error: Error, body: str, *, plain: bool) -> None:
    """Words for a person; for a program the body, in the last line."""
    if plain and is_person():
        from .readable import readable_error

        body = readable_error(error)
    elif plain and error.hint:
        # The plainest dialect has no place for it, and programs are run by those who read.
        tell(f"hint: {error.hint}")
    tell(body)
