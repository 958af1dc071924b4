"""The peer of a call from the shell: a person, or whatever reads stderr."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Any

import msgspec

from ..peer import Abilities, Log, NeedsInput, Progress, Question
from .program import tell

_CLEAR = "\r\x1b[K"
_WIDTH = 79


class Terminal:
    """Shows progress in one line that is written over; what a tool logs stays."""

    def __init__(self) -> None:
        self._shown = False
        self.can = Abilities(elicit=is_person() and sys.stdin.isatty())

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
        return prompt(question)

    def hang_up(self) -> None:
        pass

    def finish(self) -> None:
        """Take the line of progress away."""
        if self._shown:
            self._shown = False
            _write(_CLEAR)


def prompt(question: Question) -> dict[str, Any]:
    """An answer to each field of the form; none at all (Ctrl-D) declines."""
    tell(question.message)
    content: dict[str, Any] = {}
    for name, field in question.params["requestedSchema"]["properties"].items():
        label = field.get("description") or field.get("title") or name
        choices = "/".join(map(str, field.get("enum", ())))
        if field.get("type") == "boolean":
            choices = "yes/no"
        _write(f"{label}{f' ({choices})' if choices else ''}: ")
        line = sys.stdin.readline()
        if not line:
            return {"action": "decline"}
        if line.strip() or "default" not in field:
            content[name] = _read(line.strip(), field)
    return {"action": "accept", "content": content}


def _read(text: str, field: dict[str, Any]) -> Any:
    if field.get("type") == "boolean":
        return {"y": True, "yes": True, "n": False, "no": False}.get(text.lower(), text)
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
    from ..render import render

    return render(data if isinstance(data, str) else _encode(data))


def _encode(data: Any) -> str:
    return msgspec.json.encode(data, enc_hook=repr).decode()
