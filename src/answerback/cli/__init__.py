"""The command line: finds the command, and imports it only then."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from .program import COMMANDS, LOADING, Program, tell

if TYPE_CHECKING:
    from ..app import App

_INTERRUPTED, _NOBODY_READS = 130, 141  # What a shell reports for SIGINT and SIGPIPE.


def main(arguments: Sequence[str] | None = None) -> int:
    """`answerback COMMAND TARGET …`; gives the exit status."""
    return _run(Program("answerback"), sys.argv[1:] if arguments is None else arguments)


def run_app(app: App, arguments: Sequence[str] | None = None) -> None:
    """`python calculator.py COMMAND …`; ends the process unless all went well.

    A file that a web server runs as a CGI program needs no command.
    """
    if LOADING.get():
        return
    if arguments is None:
        # A web server may make arguments of a query, which is a stranger's to choose.
        arguments = ("cgi",) if "GATEWAY_INTERFACE" in os.environ else sys.argv[1:]
    status = _run(Program(f"python {sys.argv[0]}", app), arguments)
    if status:
        sys.exit(status)


def _run(program: Program, arguments: Sequence[str]) -> int:
    from ..errors import AnswerbackError

    command, *rest = arguments or ("--help",)
    try:
        if command not in COMMANDS:
            return _other(program, command)
        from importlib import import_module

        status: int = import_module(f".{command}", __name__).run(program, rest)
        return status
    except AnswerbackError as exc:
        from .trouble import explain

        return explain(exc)
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        return _NOBODY_READS


def _other(program: Program, word: str) -> int:
    """What is asked for without a command; or a command that there is not."""
    from . import help as texts

    match word:
        case "-h" | "--help" | "help":
            sys.stdout.write(texts.help_for(program))
            return 0
        case "-V" | "--version" | "version":
            sys.stdout.write(texts.version_of(program))
            return 0
    tell(texts.unknown(program, word))
    return 2
