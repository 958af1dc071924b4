"""The program that was started: `answerback` itself, or a file that runs its own App."""

from __future__ import annotations

import sys
from contextlib import suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from argparse import ArgumentParser

    from ..app import App

COMMANDS = {
    "serve": "serve the tools over HTTP: REST, MCP, OpenAPI and health on one port",
    "mcp": "serve the tools to a language model's host, over stdin and stdout",
    "call": "call one tool from the shell",
    "list": "show the tools and what they take",
    "openapi": "print the OpenAPI 3.1 document",
    "cgi": "answer one CGI request, as a web server asks for it",
    "lint": "check recorded replies against the rules, and repair them",
    "rule": "explain a rule, or list them all",
    "schema": "print the JSON Schema of a reply in a dialect",
    "audit": "show what was answered, and prove that the records of it are whole",
}

WITHOUT_TARGET = {
    "lint": "replies.jsonl",
    "rule": "AB101",
    "schema": "mcp",
    "audit": "stats audit.db",
}
"""The commands that need no App, with an example of what they take instead."""

LOADING: ContextVar[bool] = ContextVar("LOADING", default=False)
"""Whether a command is loading its target; an `app.run()` in there is not meant for it."""


class Program:
    """With an App it needs no target: `python calculator.py list`."""

    def __init__(self, name: str, app: App | None = None) -> None:
        self.name = name
        self.app = app

    def line(self, command: str, target: str | None = None) -> str:
        """How the command is written, up to its own arguments."""
        words = (self.name, command, target if self.app is None else None)
        return " ".join(word for word in words if word)

    def parser(self, command: str, usage: str = "[options]", **more: Any) -> ArgumentParser:
        """A parser of all that follows the command; *more* is argparse's own."""
        from argparse import ArgumentParser, RawDescriptionHelpFormatter
        from functools import partial

        alone = command in WITHOUT_TARGET
        more.setdefault("epilog", None if self.app or alone else _TARGET)
        return ArgumentParser(
            prog=self.line(command),
            usage=f"{self.line(command, None if alone else 'TARGET')} {usage}".rstrip(),
            description=COMMANDS[command],
            # To ask the terminal for its width, argparse imports shutil, for each call.
            formatter_class=partial(RawDescriptionHelpFormatter, width=88),
            allow_abbrev=False,
            **more,
        )

    def parser_with_target(self, command: str, usage: str = "[options]") -> ArgumentParser:
        parser = self.parser(command, usage)
        if self.app is None:
            parser.add_argument("target", metavar="TARGET", help="where the App is")
        else:
            parser.set_defaults(target=None)
        return parser

    def load(self, target: str | None) -> App:
        if self.app is not None:
            return self.app
        from .target import load

        return load(target or "")


_TARGET = """\
TARGET is where the App is: calculator.py, dir/calculator.py:app or package.module:app.
Without a name it is the only App there."""


def tell(text: str) -> None:
    """Say it on stderr, if there is one."""
    if sys.stderr is not None:
        with suppress(OSError):
            sys.stderr.write(f"{text}\n")
