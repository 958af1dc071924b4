"""Answerback's exceptions; `core/error_codes.py` has the table of their codes.

    AnswerbackError
    ├── MissingExtraError       an optional dependency is not installed
    ├── UndefinedAnnotation     a tool's annotation contains an undefined name
    ├── MalformedReply          the input is not a reply in the dialect it was read as
    └── ToolError               a failure whose message the author wrote for the caller
        ├── InvalidInput        400
        ├── Unauthenticated     401
        ├── Forbidden           403
        ├── NotFound            404
        ├── Conflict            409
        ├── RateLimited         429
        ├── Unavailable         503
        │   └── Uncertain           503
        └── TimedOut            504

A tool that cannot be served is refused at registration with an ordinary `TypeError` or
`ValueError`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Any, ClassVar, Never

from .error_codes import UNKNOWN_ERROR, code_name
from .error_codes import Code as Code
from .error_codes import add_codes as add_codes


class AnswerbackError(Exception):
    """The base class of Answerback's errors; `code` is looked up in `CODES`."""

    code: str = UNKNOWN_ERROR
    """The error's code."""


class MissingExtraError(AnswerbackError):
    code = "MISSING_EXTRA"


class UndefinedAnnotation(AnswerbackError, NameError):
    code = "UNDEFINED_ANNOTATION"


class MalformedReply(AnswerbackError, ValueError):
    """The input is not a reply in the dialect it was read as."""


class ToolError(AnswerbackError):
    """A failure whose message the caller reads.

    *message* is text for people and models. *code* may be any UPPER_SNAKE name, or an Enum member
    whose value is one. A code that is not in `CODES` gets the status of the class that was raised.
    *details* is JSON for programs. *retryable* says whether the same call may succeed later; by
    default the code decides. *hint* says what the caller can do. *retry_after* is the number of
    seconds after which the caller should try again; it is sent among the details. A subclass may
    set these members as class attributes.
    """

    kind: ClassVar[str] = UNKNOWN_ERROR
    """The code of the class, whose statuses an error with a custom code has."""
    # Defaults for subclasses whose __init__ does not call this one.
    message: str = ""
    details: Any = None
    retryable: bool | None = None
    hint: str | None = None
    retry_after: float | None = None
    may_have_run: bool | None = None
    """False if certainly nothing was done; if None, the code decides."""
    thread_goes_on: bool = False
    """True if the call timed out but its function still runs in a thread."""

    def __init__(
        self,
        message: str,
        code: str | Enum | None = None,
        details: object = None,
        *,
        retryable: bool | None = None,
        hint: str | None = None,
        retry_after: float | None = None,
        **unknown: Never,
    ) -> None:
        if unknown:
            raise _unknown_argument(type(self).__name__, min(unknown))
        super().__init__(message)
        self.message = message
        self.code = code_name(code or self.code)
        # A subclass may have these as attributes.
        if details is not None:
            self.details = details
        if retryable is not None:
            self.retryable = retryable
        if hint is not None:
            self.hint = hint
        if retry_after is not None:
            self.retry_after = retry_after


def _unknown_argument(kind: str, name: str) -> TypeError:
    from difflib import get_close_matches

    known = ("message", "code", "details", "retryable", "hint", "retry_after")
    near = get_close_matches(name, known, 1)
    hint = f"did you mean {near[0]!r}?" if near else f"it takes {', '.join(known)}"
    return TypeError(f"{kind} has no argument {name!r}; {hint}")


class InvalidInput(ToolError):
    """The arguments are valid, but the function cannot use them (400)."""

    code = kind = "INVALID_INPUT"


class Unauthenticated(ToolError):
    """The caller is not logged in (401)."""

    code = kind = "UNAUTHENTICATED"


class Forbidden(ToolError):
    """The caller may not do this (403)."""

    code = kind = "FORBIDDEN"


class NotFound(ToolError):
    """The thing that the caller asked for does not exist (404)."""

    code = kind = "NOT_FOUND"


class Conflict(ToolError):
    """The present state does not allow the call (409)."""

    code = kind = "CONFLICT"


class RateLimited(ToolError):
    """The caller has called too often (429); it may try again later."""

    code = kind = "RATE_LIMITED"


class Unavailable(ToolError):
    """A service that the tool needs does not answer (503); the call may succeed later."""

    code = kind = "UNAVAILABLE"


class Uncertain(Unavailable):
    """The database did not reply to a commit, which may take effect."""


class TimedOut(ToolError):
    """The call took too long (504); it may succeed later."""

    code = kind = "TIMED_OUT"


@contextmanager
def needs_extra(extra: str) -> Iterator[None]:
    """Turn a missing optional dependency into an install hint."""
    try:
        yield
    except ModuleNotFoundError as exc:
        hint = f"{exc.name} is not installed; run: pip install 'answerback[{extra}]'"
        raise MissingExtraError(hint) from exc


class Interrupted(KeyboardInterrupt):
    """A real Ctrl-C, on a wire where a tool may raise KeyboardInterrupt itself."""
