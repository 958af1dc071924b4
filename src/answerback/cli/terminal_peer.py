"""The peer of a call from the shell: a person, or whatever reads stderr."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from functools import cached_property
from typing import Any, TextIO

import msgspec

from ..peer import Abilities, Log, NeedsInput, Progress, Question
from .program import tell

_CLEAR = "\r\x1b[K"
_WIDTH = 79


class Terminal:
    """Shows progress in one line that is written over; what a tool logs stays."""

    def __init__(self, stdin: int) -> None:
        self._stdin = stdin
        self._shown = False
        in_person = is_person() and os.isatty(stdin)
        self.can = Abilities(elicit=in_person, ask_again=in_person)

    def notify(self, note: Progress | Log) -> None:
        if isinstance(note, Log):
            self.finish()
            tell(f"{note.level}: {_text(note.data)}")
        elif is_person():
            self._shown = True
            _write(_CLEAR + _bar(note)[:_WIDTH])

    async def ask(self, question: Question) -> Any:
        """Put the question to the person at the terminal, if there is one."""
        if question.method != "elicitation/create" or not self.can.elicit:
            raise NeedsInput({"question": question})
        self.finish()
        return prompt(question, self._typed)

    @cached_property
    def _typed(self) -> TextIO:
        encoding, errors = sys.stdin.encoding, sys.stdin.errors
        return open(self._stdin, encoding=encoding, errors=errors, closefd=False)

    cancelled = False

    def close_stream(self) -> None:
        pass

    def finish(self) -> None:
        """Take the line of progress away."""
        if self._shown:
            self._shown = False
            _write(_CLEAR)


def prompt(question: Question, typed: TextIO) -> dict[str, Any]:
    """An answer to each field of the form, read from *typed*; none at all (Ctrl-D) declines."""
    tell(question.message)
    schema = question.params["requestedSchema"]
    content: dict[str, Any] = {}
    for name, field in schema["properties"].items():
        line = _line(name, field, typed)
        if line is None:
            return {"action": "decline"}
        if line or _is_needed(name, schema):
            content[name] = _read(line, field)
    return {"action": "accept", "content": content}


def _line(name: str, field: dict[str, Any], typed: TextIO) -> str | None:
    """What was typed beside the field's label; None at the end of it all."""
    label = field.get("description") or field.get("title") or name
    choices = "/".join(map(str, field.get("enum") or field.get("items", {}).get("enum", ())))
    if field.get("type") == "boolean":
        choices = "yes/no"
    if field.get("type") == "array":
        choices += ", several with commas" if choices else "several with commas"
    _write(f"{label}{f' ({choices})' if choices else ''}: ")
    line = typed.readline()
    if not line:
        tell("")
        return None
    return line.strip()


def _is_needed(name: str, schema: dict[str, Any]) -> bool:
    return name in schema.get("required", ()) and "default" not in schema["properties"][name]


def _read(text: str, field: dict[str, Any]) -> Any:
    match field.get("type"):
        case "boolean":
            return {"y": True, "yes": True, "n": False, "no": False}.get(text.lower(), text)
        case "array":
            return [each for item in text.split(",") if (each := item.strip())]
        case "integer" | "number":
            with suppress(msgspec.MsgspecError):
                return msgspec.json.decode(text, type=int | float)
    return text


def is_person() -> bool:
    """Whether stderr is a terminal, so that somebody reads it as it comes."""
    return sys.stderr is not None and sys.stderr.isatty()


def _write(text: str) -> None:
    with suppress(OSError):
        sys.stderr.write(text)
        sys.stderr.flush()


def _bar(note: Progress) -> str:
    share = f"{note.progress / note.total:.0%}" if note.total else f"{note.progress:g}"
    return f"{share} {_text(note.message or '')}".replace("\n", " ")


def _text(data: Any) -> str:
    # Imported here: most tools say nothing beside their reply.
    from ..dialects.readable import render

    return render(data if isinstance(data, str) else _encode(data))


def _encode(data: Any) -> str:
    return msgspec.json.encode(data, enc_hook=repr).decode()
