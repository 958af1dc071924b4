"""The argument parser for every command.

This is a separate module because argparse is slow to import and not always needed.
"""

from __future__ import annotations

import re
import sys
from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any, NoReturn

from ..core.author_errors import did_you_mean, similar_names
from .program import COMMANDS, Program, print_text, printable


class PrintableParser(ArgumentParser):
    """Prints help and errors with terminal control characters escaped."""

    def _print_message(self, message: str, file: Any = None) -> None:
        if file is sys.stdout:
            print_text(printable(message))
        elif message:
            super()._print_message(printable(message), file)

    def error(self, message: str) -> NoReturn:
        """Suggest a similar flag for an unknown one."""
        unknown = re.search(r"unrecognized arguments: (--[\w-]+)", message)
        flags = set(re.findall(r"--[\w-]+", self.format_help()))
        hint = did_you_mean(similar_names(unknown[1], flags), quoted=False) if unknown else ""
        super().error(f"{message}; {hint}" if hint else message)


def subcommand_parsers(
    program: Program, command: str, subcommands: Mapping[str, tuple[str, object]]
) -> tuple[ArgumentParser, dict[str, ArgumentParser]]:
    """Return a command's parser, and its subcommands' parsers by name.

    Each subcommand has a summary and the function that runs it.
    """
    prog = f"{program.name} {command}"
    parser = PrintableParser(prog=prog, description=COMMANDS[command], allow_abbrev=False)
    names = "|".join(subcommands)
    group = parser.add_subparsers(dest="subcommand", required=True, metavar=names)
    return parser, {
        name: group.add_parser(name, help=text, description=text)
        for name, (text, _) in subcommands.items()
    }
