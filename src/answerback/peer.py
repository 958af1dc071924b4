"""The other end of a call: what it can do, how it is told things, how it is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args

import msgspec

if TYPE_CHECKING:
    from .call import Call

Level = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
LEVELS: tuple[Level, ...] = get_args(Level)
"""From the least to the gravest."""


class Abilities(msgspec.Struct, frozen=True):
    """What the other end can do for a running tool."""

    answers: bool = False
    """There is somebody who can be asked a question."""


class Progress(msgspec.Struct, frozen=True):
    progress: float
    total: float | None = None
    message: str | None = None


class Log(msgspec.Struct, frozen=True):
    level: Level
    data: Any
    logger: str | None = None


class Question(msgspec.Struct, frozen=True):
    """What a tool needs to know before it can go on; `schema` says what an answer looks like."""

    message: str
    schema: dict[str, Any]


class NeedsInput(BaseException):
    """The call cannot go on without an answer.

    Not an `Exception`, so that no author's `except Exception` swallows it.
    """

    def __init__(self, question: Question) -> None:
        super().__init__(question.message)
        self.question = question


class Peer(Protocol):
    @property
    def can(self) -> Abilities: ...

    def notify(self, note: Progress | Log) -> None:
        """Tell the other end; never blocks, and may be called from any thread."""

    async def ask(self, question: Question) -> Any:
        """Ask the other end; raises NeedsInput where the answer comes with another call."""


class Nobody:
    """No one is listening: progress is dropped, what a tool logs goes to the log."""

    can = Abilities()

    def notify(self, note: Progress | Log) -> None:
        if isinstance(note, Log):
            import logging

            level = logging.getLevelNamesMapping().get(note.level.upper(), logging.ERROR)
            level = logging.INFO if note.level == "notice" else level
            logging.getLogger("answerback.tools").log(level, "%s", note.data)

    async def ask(self, question: Question) -> Any:
        raise NeedsInput(question)


NOBODY: Peer = Nobody()


class Context:
    """What a running tool knows about its call, and its line to the other end."""

    __slots__ = ("_call",)

    def __init__(self, call: Call) -> None:
        self._call = call

    @property
    def tool(self) -> str:
        return self._call.name

    @property
    def wire(self) -> str:
        return self._call.wire

    @property
    def cancelled(self) -> bool:
        """Whether the caller no longer waits; a long tool looks now and then, and stops."""
        return self._call.cancelled

    def progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Say how far the tool has come; may be called from any thread."""
        self._call.peer.notify(Progress(progress, total, message))

    def log(self, data: Any, level: Level = "info") -> None:
        """Say something beside the reply; may be called from any thread."""
        self._call.peer.notify(Log(level, data, self._call.name))
