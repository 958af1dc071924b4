"""The command line: finds a command's module, and imports it only then."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from ..errors import AnswerbackError
from .program import (
    COMMANDS,
    LOADING,
    CannotWrite,
    Program,
    print_text,
    printable,
    program_name,
    write_stderr,
)

if TYPE_CHECKING:
    from ..app import App

_USAGE_ERROR = 2
_CANNOT_WRITE = 74
_UNAVAILABLE = 69
# These commands may be started without a stdout, or find another way to report.
_WITHOUT_OUTPUT = ("serve", "mcp", "cgi")
# Programs start these commands and wait for them; garbage collection costs milliseconds at start.
_STARTED_OFTEN = ("mcp", "call")
# The exit statuses that a shell reports for SIGINT and SIGPIPE.
_INTERRUPTED, _BROKEN_PIPE = 130, 141


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `answerback COMMAND TARGET …` and return the exit status."""
    return _run(Program("answerback"), sys.argv[1:] if arguments is None else arguments)


def remind_to_run(app_name: str) -> None:
    """Say what is missing in a program that was given a command but did not run its App."""
    file, command = os.path.basename(sys.argv[0]), sys.argv[1]
    if command in COMMANDS and file.endswith(".py"):
        write_stderr(
            f"{file} has an App but does not run it, so nothing was done; "
            f"add {app_name}.run() at its end, or type: answerback {command} {file}"
        )


def run_app(app: App, arguments: Sequence[str] | None = None) -> None:
    """Run `python calculator.py COMMAND …`; exits the process unless the status is 0.

    A file that a web server runs as a CGI program needs no command.
    """
    if LOADING.get():
        return
    if arguments is None:
        # A web server may turn the query string into arguments (RFC 3875), and any client can
        # choose that, so under CGI the arguments are ignored.
        arguments = ("cgi",) if "GATEWAY_INTERFACE" in os.environ else sys.argv[1:]
    status = _run(Program(program_name(sys.argv[0]), app), arguments)
    if status:
        sys.exit(status)


def _run(program: Program, arguments: Sequence[str]) -> int:
    command, *rest = arguments or ("--help",)
    try:
        if sys.stdout is None and command not in _WITHOUT_OUTPUT:
            raise CannotWrite("cannot write to stdout: it is closed")
        try:
            status = _run_command(program, command, rest)
        except SystemExit:  # argparse printed the help, or an error.
            print_text("")
            raise
        # A wire writes by itself; it leaves nothing in the buffer of `sys.stdout`.
        if command not in _WITHOUT_OUTPUT:
            print_text("")
        return status
    except AnswerbackError as exc:
        return _print_error(exc)
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        return _BROKEN_PIPE


def _run_command(program: Program, command: str, arguments: Sequence[str]) -> int:
    if command not in COMMANDS:
        return _run_without_command(program, command)
    if command in _STARTED_OFTEN:
        from ..server.interpreter_settings import collect_garbage_less_often

        collect_garbage_less_often()
    status: int = import_module(f".{command}", __name__).run(program, arguments)
    return status


def _run_without_command(program: Program, word: str) -> int:
    """Print the help, the version, or an error about an unknown command."""
    from . import help as texts

    match word:
        case "-h" | "--help" | "help":
            print_text(printable(texts.help_text(program)))
            return 0
        case "-V" | "--version" | "version":
            print_text(printable(texts.version_text(program)))
            return 0
    write_stderr(texts.unknown_command(program, word))
    return _USAGE_ERROR


def _print_error(exc: AnswerbackError) -> int:
    """Print the error in one line, below the traceback if the author's own module failed."""
    from .target import CannotLoad

    cause = exc.__cause__ if isinstance(exc, CannotLoad) else None
    if cause is not None:
        import traceback

        write_stderr("".join(traceback.format_exception(cause)).rstrip())
    write_stderr(f"error: {exc}")
    if isinstance(exc, CannotWrite):
        return _CANNOT_WRITE
    return _UNAVAILABLE if exc.code == "UNAVAILABLE" else _USAGE_ERROR
