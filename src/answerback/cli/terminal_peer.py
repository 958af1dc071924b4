"""The peer for `call`: shows progress and log messages on stderr, and asks questions there."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, TextIO

import msgspec

from ..core.peer import NO_ABILITIES, Abilities, Log, NeedsInput, Peer, Progress, Question
from .program import printable_line, write_stderr

if TYPE_CHECKING:
    from ..core.json_value import Json, JsonObject


_CLEAR_LINE = "\r\x1b[K"
_MAX_WIDTH = 79


class TerminalPeer(Peer):
    """Shows progress on one line that the next update overwrites; log messages stay.

    The user can be asked questions only if both *stdin* and stderr are terminals.
    """

    can = NO_ABILITIES

    def __init__(self, stdin: int) -> None:
        super().__init__()
        self.stdin = stdin
        self._shows_progress = False
        has_user = stderr_is_terminal() and os.isatty(stdin)
        self.can = Abilities(elicit=has_user, ask_again=has_user)

    def notify(self, note: Progress | Log) -> None:
        if isinstance(note, Log):
            self.show_line(f"{note.level}: {_printable(note.data)}".replace("\n", "\n  "))
        elif stderr_is_terminal():
            self._shows_progress = True
            share = f"{note.progress / note.total:.0%}" if note.total else f"{note.progress:g}"
            line = f"{share} {_printable(note.message or '')}".replace("\n", " ")
            _write(_CLEAR_LINE + line[:_MAX_WIDTH])

    async def ask(self, question: Question) -> Json:
        """Ask the user at the terminal; raises NeedsInput if there is no user to ask."""
        if question.method != "elicitation/create" or not self.can.elicit:
            raise NeedsInput({"question": question})
        self.clear_progress()
        source = self._input
        write_stderr(question.message)
        schema = question.params["requestedSchema"]
        content: JsonObject = {}
        for name, field in schema["properties"].items():
            label = field.get("description") or field.get("title") or name
            words = field.get("enum") or field.get("items", {}).get("enum", ())
            choices = "yes/no" if field.get("type") == "boolean" else "/".join(map(str, words))
            if field.get("type") == "array":
                choices += ", comma-separated" if choices else "comma-separated"
            _write(printable_line(f"{label}{f' ({choices})' if choices else ''}: "))
            line = source.readline()
            if not line:  # End of input (Ctrl-D).
                write_stderr("")
                return {"action": "decline"}
            answer = line.strip()
            must_answer = name in schema.get("required", ()) and "default" not in field
            if answer or must_answer:
                content[name] = _parse_answer(answer, field)
        return {"action": "accept", "content": content}

    @cached_property
    def _input(self) -> TextIO:
        encoding, errors = sys.stdin.encoding, sys.stdin.errors
        return open(self.stdin, encoding=encoding, errors=errors, closefd=False)

    def show_line(self, text: str) -> None:
        """Write a line to stderr, replacing the progress line."""
        self.clear_progress()
        write_stderr(text)

    def clear_progress(self) -> None:
        """Erase the progress line, if one is shown."""
        if self._shows_progress:
            self._shows_progress = False
            _write(_CLEAR_LINE)


def stderr_is_terminal() -> bool:
    """Return whether someone may be watching stderr."""
    return sys.stderr is not None and sys.stderr.isatty()


def _parse_answer(text: str, field: JsonObject) -> Json:
    """Convert the answer to the field's type; an invalid one stays a string."""
    match field.get("type"):
        case "boolean":
            return {"y": True, "yes": True, "n": False, "no": False}.get(text.lower(), text)
        case "array":
            return [each for item in text.split(",") if (each := item.strip())]
        case "integer" | "number":
            with suppress(msgspec.MsgspecError):
                return msgspec.json.decode(text, type=int | float)
    return text


def _write(text: str) -> None:
    with suppress(OSError):
        sys.stderr.write(text)
        sys.stderr.flush()


def _printable(data: Json) -> str:
    """Return the data as text without control characters that could affect the terminal."""
    # Imported here because most tools send no progress or log messages.
    from ..dialects.readable import render

    text = data if isinstance(data, str) else msgspec.json.encode(data, enc_hook=repr).decode()
    return render(text)
