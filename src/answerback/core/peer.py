"""Peer: the other end of a call, usually a client. A call notifies it and asks it questions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args

import msgspec

if TYPE_CHECKING:
    from .authentication import User
    from .json_value import Json
    from .request_info import RequestInfo

Level = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
LEVELS: tuple[Level, ...] = get_args(Level)
"""Log levels, from the least to the most severe."""


class Progress(msgspec.Struct, frozen=True):
    progress: float
    total: float | None = None
    message: str | None = None


class Log(msgspec.Struct, frozen=True):
    """A log message."""

    level: Level
    """How severe it is."""
    data: Any
    """A value that JSON can express."""
    logger: str | None = None
    """The name of the component that logged it."""


class Question(msgspec.Struct, frozen=True):
    """A request to the peer: an MCP method and its params."""

    method: Literal["elicitation/create", "sampling/createMessage", "roots/list"]
    params: dict[str, Any]
    key: str | None = None
    """The key for its answer; without one, the question's position and text identify it."""

    @property
    def capability(self) -> str:
        """The MCP capability that a client needs to answer it."""
        return self.method.partition("/")[0]

    @property
    def message(self) -> str:
        """The question for the user or the model; empty if there is none."""
        if self.method != "sampling/createMessage":
            return str(self.params.get("message", ""))
        contents = [each.get("content") for each in self.params.get("messages", ())]
        return " ".join(str(each["text"]) for each in contents if "text" in (each or ()))


class NeedsInput(BaseException):
    """The call needs answers to *questions*; a later call sends them under the same keys.

    It is a `BaseException`, so that an author's `except Exception` does not swallow it.
    """

    def __init__(self, questions: Mapping[str, Question]) -> None:
        super().__init__(", ".join(question.message for question in questions.values()))
        self.questions = questions


class Abilities(msgspec.Struct, frozen=True):
    """The kinds of question that a peer can answer."""

    elicit: bool = False
    """Whether a user can be asked."""
    sample: bool = False
    """Whether a model can be asked."""
    roots: bool = False
    """Whether the client can list its roots: the directories a tool may work in."""
    ask_again: bool = False
    """Whether the user answers immediately at a terminal and is asked again after a bad answer."""


NO_ABILITIES = Abilities()


class RequestSource(Protocol):
    """A call's request, as received by its wire; every Peer is one."""

    @property
    def user(self) -> User | None:
        """The user that the app's `auth=` authenticated."""

    def describe_request(self, wire: str) -> RequestInfo | None:
        """Return the request's data for `ctx.request`; None inside a task, which outlives it."""


class Cancellation:
    """A call's cancellation state, and the callbacks to run on cancellation. Thread-safe.

    It needs no lock: whichever thread takes a callback from the list calls it.
    """

    cancelled = False
    """Whether the client is no longer waiting for the outcome."""

    def on_cancel(self, callback: Callable[[], object]) -> Callable[[], None]:
        """Call *callback* when the call is cancelled, or immediately if it already has been.

        It is called on the cancelling thread. Returns a function that removes the callback.
        """
        # Atomic, so that two threads get the same list. Most calls need no list.
        vars(self).setdefault("_callbacks", []).append(callback)
        if self.cancelled:
            self._call_back()
        return partial(self._remove, callback)

    def cancel(self) -> None:
        """Record that the client is no longer waiting for the outcome, and call the callbacks."""
        self.cancelled = True
        self._call_back()

    def _call_back(self) -> None:
        callbacks: list[Callable[[], object]] = vars(self).get("_callbacks", [])
        while callbacks:
            try:
                callback = callbacks.pop(0)
            except IndexError:  # Another thread has taken it.
                return
            callback()

    def _remove(self, callback: Callable[[], object]) -> None:
        with suppress(ValueError):
            vars(self)["_callbacks"].remove(callback)


class Peer(Cancellation):
    """The other end of a call. A subclass overrides the methods that its wire supports."""

    id: int | str | None = None
    """The id of an MCP request or of a task."""

    @property
    def protocol(self) -> str:
        """The MCP version, such as "2025-11-25"; empty if the call did not use MCP."""
        return ""

    @property
    def session_key(self) -> str:
        """Identifies the MCP session; empty if there is none."""
        return ""

    @property
    def can(self) -> Abilities:
        return NO_ABILITIES

    @property
    def user(self) -> User | None:
        """The user that the app's `auth=` authenticated."""
        return None

    def describe_request(self, wire: str) -> RequestInfo | None:
        """Return the request's data for `ctx.request`; None inside a task, which outlives it."""
        from .request_info import RequestInfo

        return RequestInfo(wire)

    def notify(self, note: Progress | Log) -> None:
        """Send a notification without blocking. May be called from any thread."""

    def release_stream(self) -> None:
        """Allow the response stream to start: the call has passed the gates."""

    def close_stream(self) -> None:
        """Close the response stream; the client may resume it."""

    async def ask(self, question: Question) -> Any:
        """Ask, and return MCP's result; raise NeedsInput if a later call will bring the answer."""
        raise NeedsInput({"question": question})


def find_answer(question: Question, number: int, answers: Mapping[str, Any]) -> Json:
    """Return the answer from *answers*, received before the call ran, or raise NeedsInput.

    A question without a key is identified by its *number* in the call and its digest, so an answer
    matches only its own question.
    """
    key = question.key
    if not key:
        from hashlib import blake2b

        digest = blake2b(msgspec.json.encode(question), digest_size=6).hexdigest()
        key = f"{number}-{digest}"
    if key in answers:
        return answers[key]
    raise NeedsInput({key: question})


class NoPeer(Peer):
    """The peer for a call without one: drops progress and sends log messages to `logging`."""

    def on_cancel(self, callback: Callable[[], object]) -> Callable[[], None]:
        """Do nothing: such calls are never cancelled, and all of them share this peer."""
        return _nothing

    def notify(self, note: Progress | Log) -> None:
        if isinstance(note, Log):
            import logging

            level = logging.getLevelNamesMapping().get(note.level.upper(), logging.ERROR)
            level = logging.INFO if note.level == "notice" else level
            logging.getLogger("answerback.tools").log(level, "%s", note.data)


def _nothing() -> None: ...


NO_PEER: Peer = NoPeer()
