"""Limits on an app's calls, tasks and stored replies, and on what a client reads from a server."""

from __future__ import annotations

from typing import Any

import msgspec

from .json_value import is_integer, is_number

_MAX_SECONDS = 366 * 24 * 3600


def _check_counts(given: dict[str, Any]) -> None:
    for name, value in given.items():
        if not is_integer(value) or value < 1:
            raise ValueError(f"{name}={value!r} should be a whole number of at least 1")


def _check_seconds(given: dict[str, Any]) -> None:
    for name, value in given.items():
        if not is_number(value) or not 0 < value <= _MAX_SECONDS:
            raise ValueError(f"{name}={value!r} should be a number of seconds, up to a year")


class TaskLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How many tasks may exist, how large their results may be, and how long they are kept."""

    slots: int = 100
    """How many tasks may run at a time in one worker; further tasks wait."""
    queue: int = 10_000
    """How many tasks per tool may wait for a worker; further ones are refused with UNAVAILABLE."""
    per_owner: int = 1_000
    """How many unfinished tasks a user may have; further ones are refused with RATE_LIMITED."""
    result_bytes: int = 4 * 1024 * 1024
    """The largest result; a larger one becomes a TOO_LARGE error."""
    answer_bytes: int = 1024 * 1024
    """The maximum size of the answers that a client sends at once; larger ones are refused."""
    total_bytes: int = 256 * 1024 * 1024
    """The total size of all records; above that, new tasks are refused with UNAVAILABLE."""
    retention: float = 3600.0
    """How many seconds after its creation a task's record is removed."""
    max_retention: float = 7 * 24 * 3600.0
    """The longest retention that a client may request, in seconds."""

    def __post_init__(self) -> None:
        given = msgspec.structs.asdict(self)
        seconds = {name: given.pop(name) for name in ("retention", "max_retention")}
        _check_counts(given)
        _check_seconds(seconds)
        if self.max_retention < self.retention:
            raise ValueError(
                f"max_retention={self.max_retention!r} should be at least the retention,"
                f" {self.retention!r}"
            )


class ReplyLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits on the full replies that are stored for clients that received only a part.

    The owner is the user, else the MCP session, else the client's address. When an owner exceeds
    its limit, its oldest reply is removed; beyond a total limit, the largest owners lose theirs.
    """

    count: int = 10_000
    """How many replies are stored in total."""
    total_bytes: int = 256 * 1024 * 1024
    """The total size of all replies; beyond a few megabytes, they are stored on disk."""
    per_owner: int = 100
    """How many replies are stored for one owner."""
    owner_bytes: int = 64 * 1024 * 1024
    """The total size of the replies stored for one owner."""
    reply_bytes: int = 16 * 1024 * 1024
    """The largest reply that is stored."""
    retention: float = 3600.0
    """How many seconds a reply is stored."""

    def __post_init__(self) -> None:
        given = msgspec.structs.asdict(self)
        retention = given.pop("retention")
        _check_counts(given)
        _check_seconds({"retention": retention})
        for larger in ("owner_bytes", "total_bytes"):
            if given[larger] < self.reply_bytes:
                raise ValueError(
                    f"{larger}={given[larger]!r} should be at least reply_bytes,"
                    f" {self.reply_bytes!r}"
                )


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How many calls, threads and tasks may run at a time, and for how long."""

    threads: int = 40
    """How many plain `def` tools may run at a time; further calls wait for a free thread."""
    calls: int = 1000
    """How many calls may be in flight at a time; further calls are refused with UNAVAILABLE."""
    seconds: float | None = None
    """The timeout for tools without their own `timeout`; None means no timeout."""
    wait: float = 30.0
    """How many seconds a call waits for a thread if no running call ends; then it is refused."""
    gates: float = 10.0
    """How many seconds a gate may take; a call whose gate takes longer is refused."""
    shutdown: float = 30.0
    """How many seconds running calls and the lifespan each have to finish at shutdown."""

    values: int = 200_000
    """How many values a call's arguments may contain if pydantic reads any of them."""
    tasks: TaskLimits = TaskLimits()
    """How many tasks may exist, how large their results may be, and how long they are kept."""
    replies: ReplyLimits = ReplyLimits()
    """Limits on the full replies that are stored for clients that received only a part."""

    def __post_init__(self) -> None:
        if self.threads < 1 or self.calls < 1:
            raise ValueError("limits must let at least one call through")
        if self.values < 1:
            raise ValueError("arguments must have at least one value")
        if self.seconds is not None and self.seconds <= 0:
            raise ValueError(f"a tool cannot take {self.seconds!r} seconds; allow more, or None")
        if self.wait <= 0:
            raise ValueError(f"a call cannot wait {self.wait!r} seconds; allow more")
        if self.gates <= 0:
            raise ValueError(f"a gate cannot take {self.gates!r} seconds; allow more")
        if self.shutdown <= 0:
            raise ValueError(f"a shutdown cannot take {self.shutdown!r} seconds; allow more")
        wrong: object = self.tasks
        if not isinstance(wrong, TaskLimits):
            raise TypeError(f"tasks={wrong!r} should be a TaskLimits from answerback.options")
        wrong = self.replies
        if not isinstance(wrong, ReplyLimits):
            raise TypeError(f"replies={wrong!r} should be a ReplyLimits from answerback.options")


DEFAULT_LIMITS = Limits()
LARGE_BODY = 64 * 1024
"""A body or result of this size is sent in pieces, because joining them would copy it."""
MAX_BODY = 4 * 1024 * 1024
"""The largest request body over HTTP and CGI, in bytes; a server option can change it."""


MAX_BYTES = 64 * 1024 * 1024
"""The largest message, reply or HTTP body, after decompression."""
MAX_WIDE_BYTES = 32 * 1024 * 1024
"""The largest message with non-ASCII characters, which take up to four times the memory."""
MAX_VALUES = 1_000_000
"""The maximum number of values and names in a message; an array or object counts as four."""
MAX_BLOCKS = 10_000
"""Maximum blocks in a reply, contents in a resource, messages in a prompt, entries in a list."""
MAX_LIST_BYTES = 16 * 1024 * 1024
"""Once a list's pages reach this total size, no more pages are requested."""
MAX_INNER_BYTES = 16 * 1024 * 1024
"""The largest text block in a reply that is parsed as JSON."""
MAX_REPAIRED_BYTES = 4 * 1024 * 1024
"""The largest text block that is repaired if it is almost valid JSON."""
LARGE = 64 * 1024
"""Larger messages are decoded and read on a thread, while the caller's timeout keeps running."""
MANY_BLOCKS = 500
"""A reply with more blocks than this is also read on a thread, however small it is."""


class ReceivedLimits(msgspec.Struct, frozen=True):
    """The limits that a caller can change."""

    bytes: int = MAX_BYTES
    values: int = MAX_VALUES


DEFAULT_RECEIVED = ReceivedLimits()
