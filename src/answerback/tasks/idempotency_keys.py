"""Idempotency keys: which are valid, and when a key belongs to another call."""

from __future__ import annotations

from ..errors import Conflict, InvalidInput
from .task_record import TaskRecord

MAX_KEY = 255
"""Maximum characters in an idempotency key."""


class KeyReused(Conflict):
    """The idempotency key belongs to a call with another tool or other arguments."""

    code = "KEY_REUSED"


def checked_key(key: str | None) -> str | None:
    """Return the client's idempotency key; raises InvalidInput if it is not a valid name."""
    if key is None or (0 < len(key) <= MAX_KEY and all("!" <= char <= "~" for char in key)):
        return key
    raise InvalidInput(
        f"The idempotency key should be 1 to {MAX_KEY} characters of ASCII, without spaces",
        hint="use a new random UUID for each call, and the same one to repeat it",
    )


def checked_repeat(found: TaskRecord, task: TaskRecord) -> TaskRecord:
    """Return the task with the idempotency key of *task*; raises KeyReused if the calls differ."""
    if found.fingerprint != task.fingerprint:
        raise KeyReused(
            "This idempotency key was used for another call",
            hint="use a new key for each call; send the same arguments to repeat one",
        )
    return found
