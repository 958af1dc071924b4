"""Reply: the result of a call, the same on every wire; `success` and `failure` make one."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, Generic, TypeVar, overload

import msgspec

from .content import Block, Text
from .contract import Contract, Dialect
from .errors import CODES, UNKNOWN_ERROR, Code, ToolError, find_code
from .shape import Shape

T = TypeVar("T")

FINISHED_MARKS = frozenset({"content", "isError", "success", "error"})
"""An object without any of these members is not a finished reply."""


class Error(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why a call failed.

    `kind` is a code in the table of codes, whose status an error with an unknown code has.
    """

    code: str
    message: str
    details: Any = None
    retryable: bool | None = None
    hint: str | None = None
    kind: str | None = None

    @classmethod
    def of(cls, exc: ToolError) -> Error:
        """Return the error for an exception."""
        # A subclass may pass an exception on without a message of its own.
        argument = exc.args[0] if len(exc.args) == 1 else None
        is_chained = not exc.message and isinstance(argument, BaseException)
        message: Any = argument if is_chained else exc.message or str(exc) or exc.code
        # Every error without a kind has that of UNKNOWN_ERROR.
        kind = exc.kind if exc.kind not in (exc.code, UNKNOWN_ERROR) else None
        return cls(exc.code, message, exc.details, exc.retryable, exc.hint, kind)

    @property
    def row(self) -> Code:
        """The row of this error in the table of codes."""
        return find_code(self.code, self.kind)


class Reply(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """The result of a call: content, data or an error."""

    content: tuple[Block, ...] = ()
    data: T | msgspec.UnsetType = msgspec.UNSET
    error: Error | None = None
    meta: dict[str, Any] = {}
    timestamp: datetime = msgspec.field(default_factory=partial(datetime.now, UTC))
    encoded: bytes | None = None
    """The checked JSON of `data`; dialects insert it without encoding the data again."""
    shape: Shape | None = None
    """How the data is wrapped, where the return annotation does not say it."""
    contract: Contract | None = None
    """The contract of the app that was called; only `app.call` sets it."""

    @property
    def ok(self) -> bool:
        return self.error is None

    def to(self, dialect: Dialect = "mcp") -> dict[str, Any]:
        """Return the JSON object that *dialect* sends for this reply.

        The contract is that of the app that was called; for a reply that no app made it is
        `envelope` for the envelope and `standard` for the others.
        """
        from .dialects import as_sent

        return as_sent(self, dialect)

    def __eq__(self, other: object) -> bool:
        """Compare what the reply says: all fields up to `timestamp`."""
        if not isinstance(other, Reply):
            return NotImplemented
        return (self.content, self.data, self.error, self.meta, self.timestamp) == (
            other.content,
            other.data,
            other.error,
            other.meta,
            other.timestamp,
        )

    def __hash__(self) -> int:
        return hash((self.content, self.error, self.timestamp))


@overload
def success(
    text: str | None = None, *, meta: dict[str, Any] | None = None, content: Sequence[Block] = ()
) -> Reply[Any]: ...
@overload
def success(
    text: str | None,
    data: T,
    meta: dict[str, Any] | None = None,
    *,
    content: Sequence[Block] = (),
) -> Reply[T]: ...
@overload
def success(
    text: str | None = None,
    *,
    data: T,
    meta: dict[str, Any] | None = None,
    content: Sequence[Block] = (),
) -> Reply[T]: ...
def success(
    text: str | None = None,
    data: Any = msgspec.UNSET,
    meta: dict[str, Any] | None = None,
    *,
    content: Sequence[Block] = (),
) -> Reply[Any]:
    """Make a successful reply of *text*, *data* or both; *content* follows the text."""
    texts = () if text is None else (Text(text),)
    return Reply(content=texts + tuple(content), data=data, meta=meta or {})


def failure(
    message: str,
    code: str = UNKNOWN_ERROR,
    details: Any = None,
    *,
    retryable: bool | None = None,
    hint: str | None = None,
    kind: str | type[ToolError] | None = None,
    meta: dict[str, Any] | None = None,
) -> Reply[Any]:
    """Make a reply with an error; *message* is written for the caller.

    *kind* is the class or the code whose status an error with a *code* of its own has.
    """
    if isinstance(kind, type):
        kind = kind.kind
    if kind is not None and kind not in CODES:
        raise ValueError(f"kind={kind!r} should be a code such as 'NOT_FOUND', or a class")
    if code == UNKNOWN_ERROR and kind is not None:
        code = kind
    own_kind = None if kind == code else kind
    return Reply(error=Error(code, message, details, retryable, hint, own_kind), meta=meta or {})
