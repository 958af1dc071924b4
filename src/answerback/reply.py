"""Reply: the result of a call, the same on every wire; `success` and `failure` make one."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, Generic, TypeVar, overload

import msgspec

from .content import Block, Text
from .errors import UNKNOWN_ERROR, Code, ToolError, find_code

T = TypeVar("T")


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
        kind = exc.kind if exc.kind != exc.code else None
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

    @property
    def ok(self) -> bool:
        return self.error is None

    def __eq__(self, other: object) -> bool:
        """Compare all fields but `encoded`."""
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
    meta: dict[str, Any] | None = None,
) -> Reply[Any]:
    """Make a reply with an error; *message* is written for the caller."""
    return Reply(error=Error(code, message, details, retryable, hint), meta=meta or {})
