"""The changes of a task's record, each a pure function that a store applies as one atomic step.

A function returns the changed record, or None if the change is not allowed: the task has ended, or
the worker that asks has lost its claim. So the rules are in one place for every store.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ..core.reply import Error, Reply
from ..core.shape import Shape
from ..errors import Conflict, ToolError
from .stored_reply import dump_reply
from .task_record import FINAL, OpenQuestion, State, TaskRecord

_replace = msgspec.structs.replace
_MAX_MESSAGE = 1000
MAX_LOSSES = 5
"""After so many workers that died an idempotent task is not started again."""
GRACE = 300.0
"""The seconds that a client has at least to read the result of a task."""


def claimed(task: TaskRecord, *, worker: str, now: float, lease: float) -> TaskRecord | None:
    """A worker begins to run a task that waits."""
    if not task.is_waiting:
        return None
    return _replace(
        task,
        worker=worker,
        lease=now + lease,
        fence=task.fence + 1,
        attempts=task.attempts + 1,
    )


def reported(
    task: TaskRecord, *, worker: str, fence: int, message: str, now: float
) -> TaskRecord | None:
    """The function reported its progress."""
    if not _holds(task, worker, fence):
        return None
    return _replace(task, message=message[:_MAX_MESSAGE], changed=now)


def finished(
    task: TaskRecord,
    *,
    worker: str,
    fence: int,
    reply: Reply[Any],
    now: float,
    shape: Shape | None = None,
) -> TaskRecord | None:
    """The function returned or failed; *shape* is how the data of the reply is wrapped."""
    if not _holds(task, worker, fence):
        return None
    error = reply.error
    # MCP sends such an error as a JSON-RPC error, and not as a result.
    state: State = "failed" if error is not None and error.row.rpc is not None else "completed"
    message = "" if error is None else error.message
    return _ended(task, state, message, now, dump_reply(reply, shape))


def asked(
    task: TaskRecord, *, worker: str, fence: int, questions: Mapping[str, OpenQuestion], now: float
) -> TaskRecord | None:
    """The function asked the client. The task waits without a worker until all is answered."""
    if not _holds(task, worker, fence):
        return None
    new = {key: each for key, each in questions.items() if key not in task.answers}
    return _replace(task, state="input_required", questions=new, worker="", lease=0.0, changed=now)


def answered(task: TaskRecord, *, answers: Mapping[str, Any], now: float) -> TaskRecord | None:
    """The client answered some of the questions; answers to other keys are ignored."""
    if task.state != "input_required":
        return None
    known = {key: each for key, each in answers.items() if key in task.questions}
    if not known:
        return None
    still_open = {key: each for key, each in task.questions.items() if key not in known}
    return _replace(
        task,
        state="input_required" if still_open else "working",
        questions=still_open,
        answers={**task.answers, **known},
        changed=now,
    )


def cancelled(task: TaskRecord, *, now: float) -> TaskRecord | None:
    """The client wants no result; a function that runs may go on, and its result is discarded."""
    if task.state in FINAL:
        return None
    error = Conflict("The task was cancelled", code="CANCELLED")
    return _ended(task, "cancelled", error.message, now, dump_reply(Reply(error=Error.of(error))))


def refused(
    task: TaskRecord, *, worker: str, fence: int, error: ToolError, now: float
) -> TaskRecord | None:
    """The task cannot be carried out."""
    return _failed(task, error, now) if _holds(task, worker, fence) else None


def given_up(
    task: TaskRecord, *, worker: str, fence: int, now: float, is_shutdown: bool = False
) -> TaskRecord | None:
    """The worker of a task died: an idempotent task waits for another one, any other task fails.

    So does an idempotent task after several workers, which it may have ended itself.
    """
    if not _holds(task, worker, fence):
        return None
    losses = task.losses + (not is_shutdown)
    if task.idempotent and losses < MAX_LOSSES:
        return _replace(task, worker="", lease=0.0, losses=losses)
    error = ToolError(
        "The worker of this task ended before the task did; it may have taken effect",
        code="WORKER_LOST",
        retryable=False,
        hint="look at what the call changes before you call again",
    )
    return _failed(task, error, now)


def _failed(task: TaskRecord, error: ToolError, now: float) -> TaskRecord:
    reply: Reply[Any] = Reply(error=Error.of(error))
    return _ended(task, "failed", error.message, now, dump_reply(reply))


def _holds(task: TaskRecord, worker: str, fence: int) -> bool:
    """Whether the worker still has its claim on the task."""
    return task.state == "working" and task.worker == worker and task.fence == fence


def _ended(task: TaskRecord, state: State, message: str, now: float, result: bytes) -> TaskRecord:
    return _replace(
        task,
        state=state,
        expires=None if task.expires is None else max(task.expires, now + GRACE),
        message=message[:_MAX_MESSAGE],
        changed=now,
        result=result,
        questions={},
        worker="",
        lease=0.0,
    )
