"""The parser of every command.

A separate module, because argparse is slow to import and not every command needs it.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from typing import Any

from .program import print_text, printable


class PrintableParser(ArgumentParser):
    """Prints help and errors without characters that a terminal would obey."""

    def _print_message(self, message: str, file: Any = None) -> None:
        if file is sys.stdout:
            print_text(printable(message))
        elif message:
            super()._print_message(printable(message), file)
