"""TaskRecord: the single record of a call that outlives its request."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias

import msgspec

from ..core.authentication import User
from ..core.content import BLOCKS, Block, changed_block
from ..core.json_value import JsonObject
from ..core.peer import Abilities
from ..core.reply import Error, Reply
from ..core.shape import Shape
from ..errors import InvalidInput

_BLOCK_TYPES: dict[str, type[Any]] = {each.type: each for each in BLOCKS}
# Their `_meta` was checked when the block was made, and the check depends on who made it.
_METADATA = ("meta", "content_meta")


class _StoredReply(msgspec.Struct, array_like=True):
    content: list[tuple[str, dict[str, Any]]]
    encoded: bytes | None
    error: Error | None
    meta: dict[str, Any]
    timestamp: datetime
    shape: Shape | None


_replies = msgspec.msgpack.Decoder(_StoredReply)
_encode = msgspec.msgpack.Encoder().encode


def dump_reply(reply: Reply[Any], shape: Shape | None = None) -> bytes:
    """Return a checked reply as bytes; *shape* says how its data is wrapped."""
    encoded = reply.encoded
    if encoded is None and reply.has_data:
        encoded = msgspec.json.encode(reply.data)
    content: list[tuple[str, JsonObject]] = []
    for block in reply.content:
        members: JsonObject = msgspec.to_builtins(block, builtin_types=(bytes,))
        given = {name: value for name, value in members.items() if value is not None}
        content.append((block.type, given))
    shape = reply.shape or shape
    return _encode(
        _StoredReply(
            content,
            encoded,
            reply.error,
            dict(reply.meta),
            reply.timestamp,
            # Additions are decided when the reply is sent: the tool's options may have changed.
            None if shape is None else shape.without_additions(),
        )
    )


def load_reply(stored: bytes) -> Reply[Any]:
    """Return the reply; its data is the decoded JSON."""
    found = _replies.decode(stored)
    encoded = found.encoded
    content: list[Block] = []
    for type, members in found.content:
        metadata = {name: members.pop(name) for name in _METADATA if name in members}
        block: Block = msgspec.convert(members, _BLOCK_TYPES[type])
        content.append(changed_block(block, **metadata) if metadata else block)
    return Reply(
        content=tuple(content),
        data=msgspec.UNSET if encoded is None else msgspec.json.decode(encoded),
        error=found.error,
        meta=found.meta,
        timestamp=found.timestamp,
        encoded=encoded,
        shape=found.shape,
    )


FORMAT = 1
"""The format version of records; records with a later version are not read."""

State: TypeAlias = Literal["working", "input_required", "completed", "failed", "cancelled"]
"""MCP's names. A call whose reply is an error is "completed"; "failed" is for tasks that could not
be carried out, and for errors that MCP sends as JSON-RPC errors."""

KEYS = "keys:"
"""The owner prefix for plain calls with an idempotency key; no user's tasks have it."""

FINAL: frozenset[State] = frozenset({"completed", "failed", "cancelled"})
"""Final states: such a task does not change until it is removed."""


class TaskUser(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a user that a task stores, without the token, headers or other claims."""

    subject: str
    issuer: str = ""
    scopes: tuple[str, ...] = ()
    client: str | None = None

    def as_user(self) -> User:
        """Return the task's `ctx.user`."""
        return User(
            subject=self.subject,
            issuer=self.issuer,
            scopes=frozenset(self.scopes),
            client=self.client,
        )


class OpenQuestion(msgspec.Struct, frozen=True):
    """A question that the task is waiting on: an MCP method and its params."""

    method: Literal["elicitation/create", "sampling/createMessage", "roots/list"]
    params: dict[str, Any]


class TaskRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Frozen: `transitions` returns the changed record, and a store replaces the old one.

    Times are in seconds since 1970.
    """

    id: str
    """At least 128 random bits; without auth, anyone who knows the id may use the task."""
    tool: str
    arguments: bytes
    owner: str = ""
    """A digest of the issuer and subject; empty without auth."""
    user: TaskUser | None = None
    wire: str = "memory"
    """The wire that received the call."""
    protocol: str = ""
    """The MCP version; empty on other wires."""
    caller: str = ""
    """The client's address, for call records."""
    can: Abilities = Abilities()
    """The kinds of questions that the client can answer."""
    state: State = "working"
    message: str = ""
    """The latest progress, or why the task ended, for people to read."""
    created: float
    changed: float
    """When the state, message or questions last changed."""
    expires: float | None = None
    """When the record expires; None means never."""
    questions: dict[str, OpenQuestion] = {}
    """The unanswered questions, by key. A key is never used twice in a task."""
    answers: dict[str, Any] = {}
    """MCP's results for the answered questions, by key."""
    result: bytes | None = None
    """The finished reply; `reply()` reads it."""
    idempotency_key: str | None = None
    """Chosen by the client: creating another task with the same key returns this one."""
    fingerprint: bytes = b""
    """A digest of the tool and arguments, which a key is bound to."""
    idempotent: bool = False
    """Whether the call may run again if its worker dies."""
    worker: str = ""
    """The worker that has claimed the task; empty while it waits for one."""
    lease: float = 0.0
    """When the claim expires; its worker renews it."""
    fence: int = 0
    """Incremented with each claim. A worker's write with any other number is discarded."""
    attempts: int = 0
    """How many times the function has been started."""
    losses: int = 0
    """How many of its workers have died."""
    format: int = FORMAT

    @property
    def is_final(self) -> bool:
        return self.state in FINAL

    @property
    def is_plain_call(self) -> bool:
        """Whether this is a plain call with an idempotency key, and not a task."""
        return self.owner.startswith(KEYS)

    @property
    def is_waiting(self) -> bool:
        """Whether the task is waiting for a worker."""
        return self.state == "working" and not self.worker

    @property
    def ttl(self) -> float | None:
        """The seconds from creation to expiry; None if it does not expire."""
        return None if self.expires is None else max(self.expires - self.created, 0.0)

    def reply(self) -> Reply[Any]:
        """Return a finished task's reply; raises ValueError for an unfinished one."""
        if self.result is None:
            raise ValueError(f"the task is {self.state}, and has no reply")
        return load_reply(self.result)


def task_members(task: TaskRecord) -> JsonObject:
    """Return the members of a task that every wire shows, under MCP's names."""
    members: JsonObject = {
        "taskId": task.id,
        "status": task.state,
        "createdAt": iso_time(task.created),
        "lastUpdatedAt": iso_time(task.changed),
    }
    return members | ({"statusMessage": task.message} if task.message else {})


def iso_time(seconds: float) -> str:
    """Return a time in RFC 3339 format, such as 2026-01-31T12:00:00.000Z."""
    when = datetime.fromtimestamp(seconds, UTC)
    return when.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def new_id() -> str:
    """Return an id of 160 random bits, in characters that URLs, headers and file names allow."""
    import secrets

    # On the command line, a word that begins with a hyphen is an option.
    while (id := secrets.token_urlsafe(20)).startswith("-"):
        pass
    return id


def task_user(user: object) -> TaskUser | None:
    """Return the part of *user* that a task stores; None unless *user* is a User from `auth=`."""
    if not isinstance(user, User):
        return None
    return TaskUser(
        subject=user.subject,
        issuer=user.issuer,
        scopes=tuple(sorted(user.scopes)),
        client=user.client,
    )


def fingerprint_of(tool: str, arguments: bytes) -> bytes:
    from hashlib import blake2b

    return blake2b(b"%b\0%b" % (tool.encode(), arguments), digest_size=16).digest()


MAX_KEY = 255
"""The maximum number of characters in an idempotency key."""


def checked_key(key: str | None) -> str | None:
    """Return the client's idempotency key; raises InvalidInput if it is not a valid name."""
    if key is None or (0 < len(key) <= MAX_KEY and all("!" <= char <= "~" for char in key)):
        return key
    raise InvalidInput(
        f"The idempotency key should be 1 to {MAX_KEY} ASCII characters, without spaces",
        hint="use a new random UUID for each call, and the same one to repeat it",
    )
