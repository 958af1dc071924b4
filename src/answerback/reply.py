"""The canonical answer to a call, and the ways an author makes one."""

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
    """Why a call failed. `kind` is what a code of the author's own counts as."""

    code: str
    message: str
    details: Any = None
    retryable: bool | None = None
    hint: str | None = None
    kind: str | None = None

    @classmethod
    def of(cls, exc: ToolError) -> Error:
        message = exc.message or str(exc) or exc.code
        kind = exc.kind if exc.kind != exc.code else None
        return cls(exc.code, message, exc.details, exc.retryable, exc.hint, kind)

    @property
    def row(self) -> Code:
        """What every wire says about this error."""
        return find_code(self.code, self.kind)


class Reply(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """What a call comes to; the same on every wire."""

    content: tuple[Block, ...] = ()
    data: T | msgspec.UnsetType = msgspec.UNSET
    error: Error | None = None
    meta: dict[str, Any] = {}
    timestamp: datetime = msgspec.field(default_factory=partial(datetime.now, UTC))
    encoded: bytes | None = None
    """The checked JSON of `data`, made once and spliced into whatever is sent."""

    @property
    def ok(self) -> bool:
        return self.error is None

    def __eq__(self, other: object) -> bool:
        """Equal in what they say; how far they are encoded does not count."""
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
    text: str | None = None, *, content: Sequence[Block] = (), meta: dict[str, Any] | None = None
) -> Reply[Any]: ...
@overload
def success(
    text: str | None,
    data: T,
    *,
    content: Sequence[Block] = (),
    meta: dict[str, Any] | None = None,
) -> Reply[T]: ...
@overload
def success(
    text: str | None = None,
    *,
    data: T,
    content: Sequence[Block] = (),
    meta: dict[str, Any] | None = None,
) -> Reply[T]: ...
def success(
    text: str | None = None,
    data: Any = msgspec.UNSET,
    *,
    content: Sequence[Block] = (),
    meta: dict[str, Any] | None = None,
) -> Reply[Any]:
    """A reply that says *text*, *data*, or both; *content* follows the text."""
    own = () if text is None else (Text(text),)
    return Reply(content=own + tuple(content), data=data, meta=meta or {})


def failure(
    message: str,
    *,
    code: str = UNKNOWN_ERROR,
    details: Any = None,
    retryable: bool | None = None,
    hint: str | None = None,
    meta: dict[str, Any] | None = None,
) -> Reply[Any]:
    """A reply that says what went wrong, in words meant for the caller."""
    return Reply(error=Error(code, message, details, retryable, hint), meta=meta or {})
