"""Reply: a call's result, the same on every wire; `success` and `failure` make one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from enum import Enum
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, cast, overload

import msgspec

from ..contract import Contract, Dialect
from ..errors import CODES, UNKNOWN_ERROR, Code, ToolError, code_name, find_code, words_of
from .content import BLOCKS, Block, Text, check_meta
from .shape import Shape

T = TypeVar("T")
M = TypeVar("M", bound=Mapping[str, Any])

if TYPE_CHECKING:
    # Type variable defaults are newer than Python 3.11, and only type checkers need them.
    from typing_extensions import TypeVar as TypeVarWithDefault

    from ..dialects.seen_reply import SeenReply

    MetaT = TypeVarWithDefault("MetaT", bound=Mapping[str, Any], default=Any)

    class _Typed(Generic[T, MetaT]):
        """The types of the data and the metadata."""
else:
    MetaT = dict[str, Any]

    class _Typed:
        """At run time, the data's type is the only parameter."""

        def __class_getitem__(cls, parameters):
            return Generic[parameters[0]]


_compared_fields = attrgetter("content", "data", "error", "meta", "timestamp")
RESULT_MEMBERS = frozenset({"content", "structuredContent", "isError", "_meta", "resultType"})
ENVELOPE_MEMBERS = frozenset(
    {"success", "timestamp", "content", "data", "error", "message", "meta"}
)
REPLY_MARKS = frozenset(
    {
        *("content", "isError", "is_error", "success", "error", "ok", "errors"),
        *("errorMessages", "message", "title", "detail", "status", "state", "result", "results"),
    }
)
"""An object without any of these members is neither a finished reply nor an error object."""


class Error(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why a call failed."""

    code: str
    """An UPPER_SNAKE name, such as NOT_FOUND."""
    message: str
    """What happened, for the caller."""
    details: Any = None
    """JSON for programs."""
    retryable: bool | None = None
    """Whether the same call may succeed later; None if the code decides."""
    hint: str | None = None
    """What the caller can do."""
    kind: str | None = None
    """A known code; an error with a custom code borrows its statuses."""

    @classmethod
    def of(cls, exc: ToolError) -> Error:
        """Return the error for an exception."""
        # A subclass may be raised with an exception instead of a message.
        argument = exc.args[0] if len(exc.args) == 1 else None
        code = code_name(exc.code)
        is_chained = not exc.message and isinstance(argument, BaseException)
        message: Any = argument if is_chained else exc.message or str(exc) or words_of(code)
        # Errors without a kind have the kind UNKNOWN_ERROR.
        kind = exc.kind if exc.kind not in (code, UNKNOWN_ERROR) else None
        details = exc.details
        if exc.retry_after is not None and (details is None or isinstance(details, dict)):
            details = {"retry_after": exc.retry_after, **(details or {})}
        return cls(code, message, details, exc.retryable, exc.hint, kind)

    @property
    def row(self) -> Code:
        """This error's row in the table of codes."""
        return find_code(self.code, self.kind)


class Cut(msgspec.Struct, frozen=True):
    """A list or string in the data that is sent only in part."""

    path: str
    """The path in the returned data: "items", "user.posts", "" for the data itself."""
    returned: int
    """How much of it is sent."""
    total: int
    """How much there is in all."""
    unit: Literal["items", "lines", "characters"] = "items"
    """The unit of both counts."""


class Received(msgspec.Struct, frozen=True):
    """The source of a reply made by `read`: the value, where its data was, and what was wrong."""

    raw: Any = None
    data_from: str | None = None
    findings: tuple[Any, ...] = ()
    hidden_failures: Callable[[Reply[Any]], tuple[Any, ...]] | None = None
    """Finds signs of a failure in a successful reply; called only when `findings` is read."""


class Reply(msgspec.Struct, _Typed[T, MetaT], frozen=True, kw_only=True):
    """A call's result: content, data or an error.

    `Reply[Data]` declares the data's type; `Reply[Data, Meta]` also declares the type of `meta`.
    """

    content: tuple[Block, ...] = ()
    """The blocks, in the order in which they are sent."""
    data: T = cast("Any", msgspec.UNSET)
    """The data, if `ok` and `has_data`; else UNSET, so that type checkers need no other test."""
    error: Error | None = None
    """Why the call failed; None if it succeeded."""
    meta: MetaT = cast("Any", {})
    """Metadata for hosts and widgets; models do not read it."""
    timestamp: datetime = msgspec.field(default_factory=partial(datetime.now, UTC))
    """When the reply was made (UTC)."""
    encoded: bytes | None = None
    """The checked JSON of `data`; dialects insert it without encoding the data again."""
    shape: Shape | None = None
    """How the data is wrapped, unless the return annotation decides it."""
    contract: Contract | None = None
    """The called app's contract; only `app.call` sets it."""
    cuts: tuple[Cut, ...] = ()
    """What was left out because the reply exceeded its tool's budget."""
    received: Received | None = None
    """The source of a reply made by `read`; it holds `raw`, `data_from` and `findings`."""

    # Hidden from type checkers, which read the parameters from `_Typed`.
    if not TYPE_CHECKING:

        def __class_getitem__(cls, parameters: object) -> Any:
            """Return `Reply[Data]`, even for `Reply[Data, Meta]`: only checkers need `Meta`."""
            if isinstance(parameters, tuple) and len(parameters) == 2:
                parameters = parameters[0]
            return super().__class_getitem__(parameters)

    @property
    def ok(self) -> bool:
        """Whether the call succeeded."""
        return self.error is None

    @property
    def has_data(self) -> bool:
        """Whether there is data; None is data too."""
        return self.data is not msgspec.UNSET

    @property
    def data_from(self) -> str | None:
        """Where `read` found the data: "structuredContent", "text", "body", …"""
        return None if self.received is None else self.received.data_from

    @property
    def raw(self) -> Any:
        """The complete value passed to `read`: decoded JSON, bytes, or an HTTP response."""
        return None if self.received is None else self.received.raw

    @property
    def findings(self) -> tuple[Any, ...]:
        """The rule violations that `read` had to work around, or that make a success doubtful."""
        if self.received is None:
            return ()
        found, hidden_failures = self.received.findings, self.received.hidden_failures
        if hidden_failures is None or self.error is not None:
            return found
        return found + hidden_failures(self)

    def for_model(self, budget: int | None = None, *, untrusted: bool = False) -> str:
        """Return this reply's text for a model.

        *budget* is the maximum number of characters; longer text is truncated, with a note. With
        *untrusted*, the text is put between two markers that it cannot contain.
        """
        from ..dialects.model_text import text_for_model

        return text_for_model(self, budget, untrusted=untrusted)

    def blocks_for_model(
        self, budget: int | None = None, *, untrusted: bool = False
    ) -> tuple[Block, ...]:
        """Like `for_model`, but return blocks: text, with images and audio unchanged.

        *budget* is the maximum number of characters. *untrusted* puts the text between markers.
        """
        from ..dialects.model_text import blocks_for_model

        return blocks_for_model(self, budget, untrusted=untrusted)

    def as_seen_by(self, host: str, *, max_chars: int | None = None) -> SeenReply:
        """Return what the model sees of this reply in *host*, such as "claude-code".

        *host* may be a framework, such as "langchain". Hosts are modelled, not run. *max_chars* is
        the tool's `anthropic/maxResultSizeChars`. Raises ValueError for an unknown host.
        """
        from ..dialects.seen_reply import reply_seen_by

        return reply_seen_by(self, host, max_chars)

    def to(self, dialect: Dialect = "mcp") -> dict[str, Any]:
        """Return the JSON object that *dialect* sends for this reply.

        The contract is the called app's; for a reply not made by an app, it is `envelope` for the
        envelope dialect and `standard` for the others.
        """
        from ..dialects import as_sent

        return as_sent(self, dialect)

    def __eq__(self, other: object) -> bool:
        """Compare the replies' content: all fields up to `timestamp`."""
        if not isinstance(other, Reply):
            return NotImplemented
        return bool(_compared_fields(self) == _compared_fields(other))

    def __hash__(self) -> int:
        return hash((self.content, self.error, self.timestamp))


@overload
def success(
    text: str | None = None, *, meta: None = None, content: Sequence[Block] = ()
) -> Reply[Any]: ...
@overload
def success(
    text: str | None, data: T, meta: None = None, *, content: Sequence[Block] = ()
) -> Reply[T]: ...
@overload
def success(
    text: str | None = None, *, data: T, meta: None = None, content: Sequence[Block] = ()
) -> Reply[T]: ...
@overload
def success(
    text: str | None = None, *, meta: M, content: Sequence[Block] = ()
) -> Reply[Any, M]: ...
@overload
def success(
    text: str | None, data: T, meta: M, *, content: Sequence[Block] = ()
) -> Reply[T, M]: ...
@overload
def success(
    text: str | None = None, *, data: T, meta: M, content: Sequence[Block] = ()
) -> Reply[T, M]: ...
@overload
def success(text: T, *, meta: None = None, content: Sequence[Block] = ()) -> Reply[T]: ...
@overload
def success(text: T, *, meta: M, content: Sequence[Block] = ()) -> Reply[T, M]: ...
def success(
    text: object = None,
    data: object = msgspec.UNSET,
    meta: object = None,
    *,
    content: Sequence[Block] = (),
    **unknown: object,
) -> Reply[Any, Any]:
    """Make a successful reply from *text*, *data* or both; *content* follows the text.

    A first argument that is not text is used as the data: `success({"created": 1})`. If it has a
    `textContent` member, that becomes the text.
    *meta* is for hosts and widgets; models do not read it. A misspelt host key causes a warning.
    """
    if unknown:
        raise _unknown_argument("success", min(unknown))
    if text is not None and not isinstance(text, str):
        # The data was passed in place of the text.
        name = type(text).__name__
        if isinstance(text, BLOCKS):
            write = f"write content=[{name}(…)]"
            raise TypeError(f"success takes text or data first, not {name}; {write}")
        if data is not msgspec.UNSET:
            raise TypeError(f"success takes the text first, not {name}; write success(text, data)")
        data = text
        found = data.get("textContent") if isinstance(data, dict) else None
        text = found if isinstance(found, str) else None
    texts = () if text is None else (Text(text),)
    if meta:
        check_meta(meta, "result")
    return Reply(content=texts + tuple(content), data=data, meta=meta or {})


@overload
def failure(
    message: str,
    code: str | Enum = ...,
    details: object = ...,
    *,
    retryable: bool | None = ...,
    hint: str | None = ...,
    kind: str | type[ToolError] | None = ...,
    meta: None = None,
) -> Reply[Any]: ...
@overload
def failure(
    message: str,
    code: str | Enum = ...,
    details: object = ...,
    *,
    retryable: bool | None = ...,
    hint: str | None = ...,
    kind: str | type[ToolError] | None = ...,
    meta: M,
) -> Reply[Any, M]: ...
def failure(
    message: str,
    code: str | Enum = UNKNOWN_ERROR,
    details: object = None,
    *,
    retryable: bool | None = None,
    hint: str | None = None,
    kind: str | type[ToolError] | None = None,
    meta: object = None,
    **unknown: object,
) -> Reply[Any, Any]:
    """Make a failed reply; *message* is written for the caller.

    *code* is an UPPER_SNAKE name. *details* is JSON for programs. *retryable* says whether the same
    call may succeed later; by default the code decides. *hint* says what the caller can do.
    *kind* is the class or the code whose status an error with a custom code borrows. *meta* is for
    hosts and widgets.
    """
    if unknown:
        raise _unknown_argument("failure", min(unknown))
    if isinstance(kind, type):
        kind = kind.kind
    if kind is not None and kind not in CODES:
        raise ValueError(f"kind={kind!r} should be a code such as 'NOT_FOUND', or a class")
    if code == UNKNOWN_ERROR and kind is not None:
        code = kind
    if isinstance(code, dict):
        raise TypeError(f"code={code!r} should be a str; pass metadata as meta=…")
    code = code_name(code)
    if meta:
        check_meta(meta, "result")
    error = Error(code, message, details, retryable, hint, None if kind == code else kind)
    return Reply(error=error, meta=meta or {})


_INSTEAD = {
    **dict.fromkeys(("structured_content", "structuredContent", "result", "value"), "data="),
    **dict.fromkeys(("is_error", "isError", "error"), "failure('message') for an error"),
    **dict.fromkeys(("error_code", "errorCode"), "code="),
    **dict.fromkeys(("status", "status_code"), "code='NOT_FOUND', or kind=NotFound"),
    "_meta": "meta=",
    "message": "the text first: success('text')",
    "blocks": "content=[…]",
}
"""Arguments of other libraries' result classes, and what to write instead."""


def _unknown_argument(builder: str, name: str) -> TypeError:
    arguments = {
        "success": "text, data, meta, content",
        "failure": "message, code, details, retryable, hint, kind, meta",
    }
    write = f"write {_INSTEAD[name]}" if name in _INSTEAD else f"it takes {arguments[builder]}"
    return TypeError(f"{builder} has no argument {name!r}; {write}")
