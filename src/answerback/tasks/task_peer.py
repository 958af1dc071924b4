"""TaskPeer: the peer of a call that runs as a task; and the answers that a creation collects."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from ..peer import NO_PEER, Abilities, Log, NeedsInput, Peer, Progress, Question
from .task_record import OpenQuestion, Task

if TYPE_CHECKING:
    from ..authentication import User
    from ..versions import Version


class KeptRequest:
    """Stands for the request, which a task outlives: only the user is left of it."""

    def __init__(self, user: User | None) -> None:
        self.user = user

    def describe_request(self, wire: str) -> None:
        """`ctx.request` is None inside a task."""


class TaskPeer:
    """Answers come from the record of the task; progress becomes its message."""

    def __init__(self, task: Task, report: Callable[[str], None]) -> None:
        self.task = task
        self._report = report
        self._questions = 0
        self.cancelled = False
        self.on_cancel: Callable[[], object] | None = None
        # The records of calls read these three.
        self.id = task.id
        self.version = _version(task.protocol)
        self.http = KeptRequest(None if task.user is None else task.user.as_user())

    @property
    def can(self) -> Abilities:
        return self.task.can

    def notify(self, note: Progress | Log) -> None:
        if isinstance(note, Log):
            # The protocol has no log messages for tasks.
            NO_PEER.notify(note)
        elif not self.cancelled:
            self._report(progress_text(note))

    def close_stream(self) -> None:
        """Nothing: a task has no stream."""

    async def ask(self, question: Question) -> Any:
        """Return the answer; raises NeedsInput if there is none yet, which ends this run."""
        self._questions += 1
        key = question.key or f"{self._questions}-{_digest(question)}"
        if key in self.task.answers:
            return self.task.answers[key]
        raise NeedsInput({key: question})


class AnswerKeeper:
    """The peer of a creation: keeps the answers to the questions that come before the run."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        self.kept: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._peer, name)

    async def ask(self, question: Question) -> Any:
        answer = await self._peer.ask(question)
        if question.key is not None:
            self.kept[question.key] = answer
        return answer


def progress_text(note: Progress) -> str:
    """The progress as the message of a task, such as "3 of 10: reading"."""
    done = f"{note.progress:g}" if note.total is None else f"{note.progress:g} of {note.total:g}"
    return f"{done}: {note.message}" if note.message else done


def open_questions(questions: Mapping[str, Question], can: Abilities) -> dict[str, OpenQuestion]:
    """The questions as a task keeps them; empty if the client cannot answer one of them."""
    able = {"elicitation": can.elicit, "sampling": can.sample, "roots": can.roots}
    if not all(able[each.capability] for each in questions.values()):
        return {}
    return {key: OpenQuestion(each.method, each.params) for key, each in questions.items()}


def _digest(question: Question) -> str:
    from hashlib import blake2b

    return blake2b(msgspec.json.encode(question), digest_size=6).hexdigest()


def _version(protocol: str) -> Version | None:
    from ..versions import STATEFUL, STATELESS

    return STATELESS.get(protocol) or STATEFUL.get(protocol)
