"""One request in flight: the peer of whatever runs for it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from ..peer import Abilities, Level, Log, NeedsInput, Progress, Question
from ..versions import Version
from .messages import Id, notification_frame
from .session import Client, reaches

if TYPE_CHECKING:
    from ..calls.pipeline import Call


class Link(Protocol):
    """The way back to the other end while a request is in flight. A wire has one for each."""

    def send(self, frame: bytes) -> None:
        """Send a notification; never blocks for long, and may be called from any thread."""

    def hang_up(self) -> None:
        """Close the line, if the other end can come back for the answer."""

    async def ask(self, method: str, params: Any) -> msgspec.Raw:
        """Send a request and wait for its result; legacy versions only."""


class _Deaf:
    """Nobody hears what is said before the answer."""

    def send(self, frame: bytes) -> None:
        pass

    def hang_up(self) -> None:
        pass

    async def ask(self, method: str, params: Any) -> msgspec.Raw:
        raise RuntimeError("nobody can be asked on this wire")


DEAF: Link = _Deaf()
_here = threading.local()


def current() -> Exchange | None:
    """The exchange this thread answers."""
    found: Exchange | None = getattr(_here, "exchange", None)
    return found


def digest(question: Question) -> str:
    from hashlib import blake2b

    return blake2b(msgspec.json.encode(question), digest_size=6).hexdigest()


def _sayable(question: Question, version: Version) -> bool:
    fields = question.params.get("requestedSchema", {}).get("properties", {})
    return version.choices or all(field.get("type") != "array" for field in fields.values())


class Exchange:
    """What a request carried beside its parameters, and the line back to who sent it."""

    # Most are never set: there is one for each call.
    caller = ""
    token: Id | None = None
    call: Call | None = None
    cancelled = False
    on_cancel: Callable[[], object] | None = None
    answers: Mapping[str, Any] = MappingProxyType({})
    """What the client answered, by the key of the question."""
    _asked = 0
    _last = float("-inf")

    def __init__(
        self,
        id: Id,
        version: Version,
        client: Client,
        link: Link,
        *,
        level: Level | None = None,
    ) -> None:
        self.id = id
        self.version = version
        self.client = client
        self.link = link
        self.level = level

    def __enter__(self) -> Exchange:
        """While it is entered, code on this thread finds it by `current()`."""
        _here.exchange = self
        return self

    def __exit__(self, *_: object) -> None:
        _here.exchange = None

    def cancel(self) -> None:
        """Nobody waits for it any more; may be called from any thread."""
        self.cancelled = True
        if self.call is not None:
            self.call.cancelled = True
        if self.on_cancel is not None:
            self.on_cancel()

    @property
    def can(self) -> Abilities:
        client = self.client
        return Abilities(elicit=client.form, sample=client.sampling, roots=client.roots)

    def begin(self, call: Call) -> None:
        """Tie the call to this request; it may have been cancelled already."""
        self.call = call
        call.cancelled = self.cancelled or call.cancelled

    def end(self) -> None:
        """Let go of the call, which leads back here: a circle would wait for the collector."""
        self.call = None

    def notify(self, note: Progress | Log) -> None:
        if self.cancelled:
            return  # After a cancellation nothing more is said of a request.
        if isinstance(note, Progress):
            self._send_progress(note)
        elif self.level is not None and reaches(note.level, self.level):
            self._send_log(note)

    def hang_up(self) -> None:
        self.link.hang_up()

    async def ask(self, question: Question) -> Any:
        """Legacy asks over the line. Modern looks whether the client sent the answer along."""
        if self.version.modern:
            return self._answer_to(question)
        if not (self.client.can(question) and _sayable(question, self.version)):
            raise NeedsInput({"question": question})
        return msgspec.json.decode(await self.link.ask(question.method, question.params))

    def _answer_to(self, question: Question) -> Any:
        """By its place and its wording, so that an answer never meets another question."""
        self._asked += 1
        key = question.key or f"{self._asked}-{digest(question)}"
        if key in self.answers:
            return self.answers[key]
        raise NeedsInput({key: question})

    def _send_log(self, note: Log) -> None:
        params = {"level": note.level, "data": note.data}
        if note.logger is not None:
            params["logger"] = note.logger
        try:
            frame = notification_frame("notifications/message", params)
        except (TypeError, ValueError, RecursionError):
            frame = notification_frame("notifications/message", params | {"data": str(note.data)})
        self.link.send(frame)

    def _send_progress(self, note: Progress) -> None:
        # Progress must grow; what does not is not worth telling.
        if self.token is None or not self._last < note.progress < float("inf"):
            return
        self._last = note.progress
        params: dict[str, Any] = {"progressToken": self.token, "progress": note.progress}
        if note.total is not None:
            params["total"] = note.total
        if note.message is not None and self.version.progress_messages:
            params["message"] = note.message
        self.link.send(notification_frame("notifications/progress", params))
