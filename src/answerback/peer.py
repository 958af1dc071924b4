"""The other end of a call: what it can do, how it is told things, how it is asked."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal, Protocol, get_args

import msgspec

Level = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
LEVELS: tuple[Level, ...] = get_args(Level)
"""From the least to the gravest."""


class Progress(msgspec.Struct, frozen=True):
    progress: float
    total: float | None = None
    message: str | None = None


class Log(msgspec.Struct, frozen=True):
    level: Level
    data: Any
    logger: str | None = None


class Question(msgspec.Struct, frozen=True):
    """What the other end is asked, in MCP's words."""

    method: Literal["elicitation/create", "sampling/createMessage", "roots/list"]
    params: dict[str, Any]
    key: str | None = None
    """What its answer goes by; without one, its place and its wording."""

    @property
    def message(self) -> str:
        return str(self.params.get("message", "The tool asks for what only a client can tell."))


class NeedsInput(BaseException):
    """The call cannot go on without answers; they come with another call, under these keys.

    Not an `Exception`, so that no author's `except Exception` swallows it.
    """

    def __init__(self, questions: Mapping[str, Question]) -> None:
        super().__init__(", ".join(question.message for question in questions.values()))
        self.questions = questions


class Ask(msgspec.Struct, frozen=True):
    """Marks a parameter that the user is asked for: `sure: Annotated[bool, Ask("Delete all?")]`.

    It is no argument: a model cannot give the answer itself.
    """

    message: str


def ask_of(annotation: Any) -> Ask | None:
    """The question that a parameter is annotated with."""
    marks = getattr(annotation, "__metadata__", ())
    return next((mark for mark in marks if isinstance(mark, Ask)), None)


class Header(msgspec.Struct, frozen=True):
    """Marks an argument that MCP clients also say in a header, `Mcp-Param-NAME`.

    Boxes on the way can then see it: never mark a secret.
    """

    name: str

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", self.name):
            raise ValueError(f"{self.name!r} cannot be part of a header's name")


def header_of(annotation: Any) -> Header | None:
    """The header that a parameter is annotated with."""
    marks = getattr(annotation, "__metadata__", ())
    return next((mark for mark in marks if isinstance(mark, Header)), None)


class Abilities(msgspec.Struct, frozen=True):
    """What the other end can be asked."""

    elicit: bool = False
    """There is a user who can be asked."""
    sample: bool = False
    """There is a model that can be asked."""
    roots: bool = False
    again: bool = False
    """The user is there in person, and is asked again where an answer does not fit."""


class Peer(Protocol):
    @property
    def can(self) -> Abilities: ...

    @property
    def cancelled(self) -> bool:
        """Whether the client no longer waits for the outcome."""

    def notify(self, note: Progress | Log) -> None:
        """Tell the other end; never blocks, and may be called from any thread."""

    def close_stream(self) -> None:
        """Close the response's stream; the client may resume it."""

    async def ask(self, question: Question) -> Any:
        """Ask, and give the result as MCP words it; raises NeedsInput where it comes later."""


class Nobody:
    """No one is listening: progress is dropped, what a tool logs goes to the log."""

    can = Abilities()
    cancelled = False

    def notify(self, note: Progress | Log) -> None:
        if isinstance(note, Log):
            import logging

            level = logging.getLevelNamesMapping().get(note.level.upper(), logging.ERROR)
            level = logging.INFO if note.level == "notice" else level
            logging.getLogger("answerback.tools").log(level, "%s", note.data)

    def close_stream(self) -> None:
        pass

    async def ask(self, question: Question) -> Any:
        raise NeedsInput({"question": question})


NOBODY: Peer = Nobody()
