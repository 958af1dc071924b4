"""Peer: the other end of a call, usually a client. A call notifies it and asks it questions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Protocol, get_args

import msgspec

Level = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
LEVELS: tuple[Level, ...] = get_args(Level)
"""From the least to the most severe."""


class Progress(msgspec.Struct, frozen=True):
    progress: float
    total: float | None = None
    message: str | None = None


class Log(msgspec.Struct, frozen=True):
    level: Level
    data: Any
    """A value that JSON can express."""
    logger: str | None = None


class Question(msgspec.Struct, frozen=True):
    """A request to the peer: an MCP method and its params."""

    method: Literal["elicitation/create", "sampling/createMessage", "roots/list"]
    params: dict[str, Any]
    key: str | None = None
    """The key of its answer; without one, the question's position and text identify it."""

    @property
    def capability(self) -> str:
        """The capability of MCP that a client needs to answer it."""
        return self.method.partition("/")[0]

    @property
    def message(self) -> str:
        """The text that the user or the model is asked; empty if there is none."""
        if self.method != "sampling/createMessage":
            return str(self.params.get("message", ""))
        contents = [each.get("content") for each in self.params.get("messages", ())]
        return " ".join(str(each["text"]) for each in contents if "text" in (each or ()))


class NeedsInput(BaseException):
    """The call needs answers to *questions*; a later call brings them under the same keys.

    It is a `BaseException`, so that an author's `except Exception` does not swallow it.
    """

    def __init__(self, questions: Mapping[str, Question]) -> None:
        super().__init__(", ".join(question.message for question in questions.values()))
        self.questions = questions


class Abilities(msgspec.Struct, frozen=True):
    """The kinds of question that a peer can answer."""

    elicit: bool = False
    """A user can be asked."""
    sample: bool = False
    """A model can be asked."""
    roots: bool = False
    """The client can list its roots: the directories a tool may work in."""
    ask_again: bool = False
    """The user answers at once, at a terminal, and is asked again after an invalid answer."""


class Peer(Protocol):
    @property
    def cancelled(self) -> bool:
        """Whether the client no longer waits for the outcome."""

    @property
    def can(self) -> Abilities: ...

    def notify(self, note: Progress | Log) -> None:
        """Send a notification; never blocks, and may be called from any thread."""

    def close_stream(self) -> None:
        """Close the response's stream; the client may resume it."""

    async def ask(self, question: Question) -> Any:
        """Ask, and return MCP's result; raises NeedsInput if the answer comes with a later call."""


class NoPeer:
    """The peer of a call that has none: drops progress and sends log messages to `logging`."""

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


NO_PEER: Peer = NoPeer()
