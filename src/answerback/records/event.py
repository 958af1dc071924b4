"""Events: one for each reply, and some about the records themselves (started, lost, ended).

Sinks open a store for them; the locks are for processes that write to the same file.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime
from typing import Any, Protocol, Self

import msgspec

REPLY = "mcp_response"
ISSUE = "mcp_response_format_issue"
STARTED = "records_started"
LOST = "records_lost"
ENDED = "records_ended"

CANCELLED = "CANCELLED"
"""The code for a call that was cancelled before there was a reply."""
ASKED = "ASKED"
"""The code for a call that asked its client, which answers in another call; not a failure."""


class Issue(msgspec.Struct, frozen=True, omit_defaults=True):
    """One rule's finding in a reply."""

    rule: str
    name: str
    severity: str
    pointer: str
    message: str


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One event. Events about replies have a `kind`; events about the records have none."""

    event: str
    """What happened, such as `mcp_response` or `records_lost`."""
    time: datetime
    """When the call arrived."""
    kind: str = ""
    """tool, resource, prompt or completion."""
    tool: str = ""
    """The name of the tool, prompt or resource."""
    wire: str = ""
    """The wire on which the call arrived."""
    version: str = ""
    """The MCP version, if the call used MCP."""
    caller: str = ""
    """The client's address, if the wire knows it."""
    user: str = ""
    """A digest of the user's issuer and subject, if the app's `auth=` authenticated one."""
    request: str = ""
    """The JSON-RPC request's id."""
    duration_us: int = 0
    """How long the call took, in microseconds."""
    size: int = 0
    """The size in bytes of the reply's data, content and error message, regardless of dialect."""
    code: str = ""
    """The error code; empty if the call succeeded."""
    findings: tuple[Issue, ...] = ()
    """The rules that the reply broke."""
    unchecked: bool = False
    """True if the rules did not run: the queue was filling up, or a rule raised an exception."""
    reference: str = ""
    """The reference in a masked error message, under which the traceback was logged."""
    attempts: int = 0
    """How many times the function was started, if the tool has `limit=`, `breaker=` or `retry=`."""
    breaker: str = ""
    """The state of the tool's breaker after the call: closed, open or half-open."""
    opened: bool = False
    """True if this call opened the breaker."""
    returned: int = 0
    """How many items, lines or characters the reply has, if it was cut to fit its tool's budget."""
    total: int = 0
    """How many there were before the cut, in the part that lost the most if several were cut."""
    digest: str = ""
    """A hash of the arguments, independent of white space and member order."""
    trace: str = ""
    """The W3C traceparent, if a sink supports tracing."""
    arguments: Any = None
    """The arguments, masked, if they are kept."""
    reply: Any = None
    """The content and the data, masked, if they are kept."""
    omitted: tuple[str, ...] = ()
    """Which of `arguments` and `reply` should have been kept but were empty or too large."""
    lost: int = 0
    """How many records were lost."""
    why: str = ""
    """Why records were lost."""
    process: int = 0
    """The id of the process that started the chain."""
    after: str = ""
    """The hash of the newest record in the store when this process started its chain."""

    @property
    def is_reply(self) -> bool:
        """Whether the event is about a reply."""
        return bool(self.kind)

    @property
    def failed(self) -> bool:
        """Whether the call failed."""
        return self.code not in ("", ASKED)


class Entry(msgspec.Struct, frozen=True, gc=False):
    """An event and its position in the hash chain of the process that wrote it."""

    chain: str
    """The id of the chain; each process has one."""
    seq: int
    """The entry's number in its chain."""
    hash: str
    """The SHA-256 of the previous hash and the body."""
    body: bytes
    """The event's JSON; the hash covers these bytes."""
    event: Event
    """The event."""


class Store(Protocol):
    """An open sink. Only one thread uses it, and its methods may block."""

    def newest(self) -> str:
        """Return the hash of the newest record, or "" if there is none or it is unknown."""

    def holds(self, record_hash: str) -> bool:
        """Return whether a recent record has this hash; called after the store is reopened."""

    def write(self, batch: Sequence[Entry]) -> None:
        """Write the whole batch, or raise an exception and write none of it."""

    def close(self) -> None:
        """Close the store; nothing is written afterwards."""


class Sink(Protocol):
    """A destination for events.

    A sink is created before a fork. Each process that writes to it opens it after the fork.
    """

    def open(self) -> Store:
        """Open the sink in this process."""


class WriteOnlySink:
    """A sink that is its own store. It cannot be read back, so its chain is never restarted."""

    def open(self) -> Self:
        return self

    def newest(self) -> str:
        return ""

    def holds(self, record_hash: str) -> bool:
        return True

    def close(self) -> None:
        pass


@contextmanager
def file_lock(fd: int) -> Iterator[None]:
    """Hold an exclusive lock on an open file.

    Windows has no flock, so nothing is locked there, and only one process may write to a file.
    """
    try:
        import fcntl
    except ImportError:
        yield
        return
    fcntl.flock(fd, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(fd, fcntl.LOCK_UN)


@contextmanager
def folder_lock(path: str) -> Iterator[None]:
    """Hold an exclusive lock on *path*'s folder, which stays the same if the file is moved."""
    if os.name == "nt":  # Windows does not allow an open file to be moved.
        yield
        return
    folder = os.open(os.path.dirname(os.path.abspath(path)), os.O_RDONLY)
    with ExitStack() as stack:
        stack.callback(os.close, folder)
        with suppress(OSError):  # Some network file systems do not support flock.
            stack.enter_context(file_lock(folder))
        yield
