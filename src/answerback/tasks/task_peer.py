"""TaskPeer: the peer of a call that runs as a task."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..core.authentication import User
from ..core.json_value import Json
from ..core.peer import NO_PEER, Abilities, Log, Peer, Progress, Question, find_answer
from .task_record import OpenQuestion, TaskRecord


class TaskPeer(Peer):
    """Reads answers from the task's record; progress becomes its message."""

    def __init__(self, task: TaskRecord, report: Callable[[str], None]) -> None:
        super().__init__()
        self.task = task
        self.id = task.id
        self._report = report
        self._questions = 0
        self._user = None if task.user is None else task.user.as_user()

    @property
    def protocol(self) -> str:
        return self.task.protocol

    @property
    def user(self) -> User | None:
        """The user who created the task."""
        return self._user

    def describe_request(self, wire: str) -> None:
        """Return None: the task outlives its request."""

    @property
    def can(self) -> Abilities:
        return self.task.can

    def notify(self, note: Progress | Log) -> None:
        if isinstance(note, Log):
            # The protocol has no log messages for tasks.
            NO_PEER.notify(note)
        elif not self.cancelled:
            self._report(_progress_text(note))

    async def ask(self, question: Question) -> Json:
        """Return the answer; raises NeedsInput if there is none yet, which ends the run."""
        self._questions += 1
        return find_answer(question, self._questions, self.task.answers)


def _progress_text(note: Progress) -> str:
    """Return the progress as a task's message, such as "3 of 10: reading"."""
    done = f"{note.progress:g}" if note.total is None else f"{note.progress:g} of {note.total:g}"
    return f"{done}: {note.message}" if note.message else done


def open_questions(questions: Mapping[str, Question], can: Abilities) -> dict[str, OpenQuestion]:
    """Return the questions as a task keeps them; empty if the client cannot answer one of them."""
    able = {"elicitation": can.elicit, "sampling": can.sample, "roots": can.roots}
    if not all(able[each.capability] for each in questions.values()):
        return {}
    return {key: OpenQuestion(each.method, each.params) for key, each in questions.items()}
