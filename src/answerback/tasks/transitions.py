"""The changes to a task's record, each a pure function that a store applies as one atomic step.

Each function takes the record and the store's time. It returns the changed record, or None if the
change is not allowed: the task has ended, or the worker has lost its claim. This keeps the rules
in one place for every store.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ..core.reply import Error, Reply
from ..core.shape import Shape
from ..errors import Conflict, ToolError
from .task_record import FINAL, OpenQuestion, State, TaskRecord, dump_reply

_replace = msgspec.structs.replace
_MAX_MESSAGE = 1000
GRACE = 300.0
"""The minimum number of seconds that a client has to read a task's result."""
MAX_LOSSES = 5
"""After this many dead workers, an idempotent task is not restarted."""


def claimed(task: TaskRecord, now: float, *, worker: str, lease: float) -> TaskRecord | None:
    """Claim a waiting task for a worker."""
    if not task.is_waiting:
        return None
    return _replace(
        task,
        worker=worker,
        lease=now + lease,
        fence=task.fence + 1,
        attempts=task.attempts + 1,
    )


def released(task: TaskRecord, now: float, *, worker: str, fence: int) -> TaskRecord | None:
    """Release a claimed task whose function has not started; it waits for a worker again."""
    if not _holds(task, worker, fence):
        return None
    return _replace(task, worker="", lease=0.0, attempts=task.attempts - 1)


def reported(
    task: TaskRecord, now: float, *, worker: str, fence: int, message: str
) -> TaskRecord | None:
    """Set the progress that the function reported."""
    if not _holds(task, worker, fence):
        return None
    return _replace(task, message=message[:_MAX_MESSAGE], changed=now)


def finished(
    task: TaskRecord,
    now: float,
    *,
    worker: str,
    fence: int,
    reply: Reply[Any],
    shape: Shape | None = None,
) -> TaskRecord | None:
    """Finish a task whose function has ended; *shape* says how the reply's data is wrapped."""
    if not _holds(task, worker, fence):
        return None
    error = reply.error
    # MCP sends such an error as a JSON-RPC error, not as a result.
    state: State = "failed" if error is not None and error.row.rpc is not None else "completed"
    return _ended(task, state, now, reply, shape)


def asked(
    task: TaskRecord, now: float, *, worker: str, fence: int, questions: Mapping[str, OpenQuestion]
) -> TaskRecord | None:
    """Add the function's questions. The task waits without a worker until all are answered."""
    if not _holds(task, worker, fence):
        return None
    new = {key: each for key, each in questions.items() if key not in task.answers}
    return _replace(task, state="input_required", questions=new, worker="", lease=0.0, changed=now)


def answered(task: TaskRecord, now: float, *, answers: Mapping[str, Any]) -> TaskRecord | None:
    """Add the client's answers to some of the questions; ignore answers to other keys."""
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


def cancelled(task: TaskRecord, now: float) -> TaskRecord | None:
    """Cancel a task; a running function may continue, and its result is discarded."""
    if task.state in FINAL:
        return None
    error = Conflict("The task was cancelled", code="CANCELLED")
    return _ended(task, "cancelled", now, Reply(error=Error.of(error)))


def refused(
    task: TaskRecord, now: float, *, worker: str, fence: int, error: ToolError
) -> TaskRecord | None:
    """Fail a task that cannot be carried out."""
    if not _holds(task, worker, fence):
        return None
    return _ended(task, "failed", now, Reply(error=Error.of(error)))


def given_up(
    task: TaskRecord, now: float, *, worker: str, fence: int, is_shutdown: bool = False
) -> TaskRecord | None:
    """Give up a task whose worker died: an idempotent one waits for another worker, others fail.

    An idempotent task also fails after several dead workers, because it may have killed them.
    """
    if not _holds(task, worker, fence):
        return None
    losses = task.losses + (not is_shutdown)
    if task.idempotent and losses < MAX_LOSSES:
        return _replace(task, worker="", lease=0.0, losses=losses)
    error = ToolError(
        "The worker ended before this task did; the task may have taken effect",
        code="WORKER_LOST",
        retryable=False,
        hint="check what the call changed before you call again",
    )
    return _ended(task, "failed", now, Reply(error=Error.of(error)))


def _holds(task: TaskRecord, worker: str, fence: int) -> bool:
    """Return whether the worker still holds its claim on the task."""
    return task.state == "working" and task.worker == worker and task.fence == fence


def _ended(
    task: TaskRecord, state: State, now: float, reply: Reply[Any], shape: Shape | None = None
) -> TaskRecord:
    message = "" if reply.error is None else reply.error.message
    return _replace(
        task,
        state=state,
        expires=None if task.expires is None else max(task.expires, now + GRACE),
        message=message[:_MAX_MESSAGE],
        changed=now,
        result=dump_reply(reply, shape),
        questions={},
        worker="",
        lease=0.0,
    )
