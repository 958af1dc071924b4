"""Answerback's exceptions, and the table of error codes with their statuses on every wire.

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

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from typing import Any, ClassVar, Never

import msgspec


class Code(msgspec.Struct, frozen=True):
    """An error code's row in `CODES`: its status on each wire."""

    status: int
    """The HTTP and CGI status."""
    exit: int = 1
    """The command line's exit status; values of 64 and above follow sysexits.h."""
    rpc: int | None = None
    """The JSON-RPC error code; without one, MCP sends an `isError` result."""
    retryable: bool = False
    """Whether the same call may succeed later."""


UNKNOWN_ERROR = "UNKNOWN_ERROR"
UNKNOWN_TEXT = "Unknown error"
"""The default message for a failure."""
TOOL_EXECUTION_ERROR = "TOOL_EXECUTION_ERROR"
INVALID_OUTPUT = "INVALID_OUTPUT"
INVALID_ARGUMENTS = "INVALID_ARGUMENTS"
INVALID_JSON = "INVALID_JSON"
TOOL_NOT_FOUND = "TOOL_NOT_FOUND"
CHECK_FIRST = "it may have taken effect: check that before you call again"
"""The hint for a failed call that must not run twice."""
INPUT_REQUIRED = "INPUT_REQUIRED"

CODES = {
    # A failure raised without a code.
    UNKNOWN_ERROR: Code(500),
    # An exception that is not a ToolError; the caller sees only a reference.
    TOOL_EXECUTION_ERROR: Code(500, exit=70),
    # The result does not fit the return annotation.
    INVALID_OUTPUT: Code(500, exit=70),
    # `read` or the client cannot read a server's reply.
    "INVALID_RESPONSE_FORMAT": Code(500, exit=70),
    # Middleware for other frameworks refused an invalid reply.
    "RESPONSE_VALIDATION_ERROR": Code(500, exit=70),
    # The process that ran the task or the call has ended.
    "WORKER_LOST": Code(500, exit=70),
    # The request is not JSON.
    INVALID_JSON: Code(400, exit=2, rpc=-32700),
    # The arguments do not fit the parameters.
    INVALID_ARGUMENTS: Code(400, exit=2),
    # The function cannot use the arguments.
    "INVALID_INPUT": Code(400, exit=65),
    # The function says that the caller is not logged in.
    "UNAUTHENTICATED": Code(401, exit=77),
    # A gate requires a login.
    "LOGIN_REQUIRED": Code(401, exit=77),
    # The token or the key is missing, wrong or expired.
    "INVALID_TOKEN": Code(401, exit=77),
    # A gate requires a plan.
    "SUBSCRIPTION_REQUIRED": Code(402, exit=77),
    # A gate requires a linked account.
    "LINK_REQUIRED": Code(403, exit=77),
    # A gate requires a scope that the token does not have.
    "SCOPE_REQUIRED": Code(403, exit=77),
    # The caller may not do this.
    "FORBIDDEN": Code(403, exit=77),
    # The page that sent the request is from another site.
    "FOREIGN_ORIGIN": Code(403, exit=77),
    # There is no tool with that name, at least not for this caller.
    TOOL_NOT_FOUND: Code(404, exit=2, rpc=-32602),
    # There is no such path.
    "ROUTE_NOT_FOUND": Code(404, exit=2),
    # The thing that the function was asked for does not exist.
    "NOT_FOUND": Code(404, exit=66),
    # The path does not support this method.
    "METHOD_NOT_ALLOWED": Code(405, exit=2),
    # The current state does not allow the call.
    "CONFLICT": Code(409, exit=73),
    # The call needs an answer from the user, but the client cannot ask for it.
    INPUT_REQUIRED: Code(409, exit=73),
    # The user declined to answer.
    "INPUT_DECLINED": Code(409, exit=73),
    # The rest of the list is no longer stored.
    "CURSOR_EXPIRED": Code(410, exit=66),
    # The body, the result or the reply is too large.
    "TOO_LARGE": Code(413, exit=65),
    # The body is not JSON, or is compressed.
    "UNSUPPORTED_MEDIA_TYPE": Code(415, exit=2),
    # The `Host` header names another machine.
    "FOREIGN_HOST": Code(421, exit=77),
    # The idempotency key belongs to another call.
    "KEY_REUSED": Code(422, exit=65),
    # The caller has made too many calls.
    "RATE_LIMITED": Code(429, exit=75, retryable=True),
    # A service that the call needs is not responding, or the server is overloaded.
    "UNAVAILABLE": Code(503, exit=69, retryable=True),
    # The call took too long.
    "TIMED_OUT": Code(504, exit=75, retryable=True),
}
BUILT_IN = frozenset(CODES)
"""Answerback's own codes; `add_codes` adds authors' codes to the table."""
_RAISED = ("INVALID_INPUT", "UNAUTHENTICATED", "FORBIDDEN", "NOT_FOUND", "CONFLICT")
"""The codes of error classes that share their status with other codes."""
_CODE_NAME = r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*"


def code_name(code: str | Enum) -> str:
    """Return a code as a string: an Enum member's value, or its name if that is not a string."""
    if not isinstance(code, Enum):
        return code
    return str(code.value if isinstance(code.value, str) else code.name)


def add_codes(codes: Mapping[Any, int | Code]) -> None:
    """Add an author's codes (strings or Enum members), each with an HTTP status or a full row.

    There is one table per process: two apps may add the same code only with the same row.
    """
    for code, value in codes.items():
        name = code_name(code)
        row = value if isinstance(value, Code) else _row_for_status(name, value)
        if not re.fullmatch(_CODE_NAME, str(name)):
            raise ValueError(f"{name!r} should be a code in capitals, such as 'CITY_UNKNOWN'")
        if name in BUILT_IN:
            raise ValueError(f"{name!r} is one of Answerback's own codes; choose another name")
        if CODES.get(name, row) != row:
            raise ValueError(f"the code {name!r} already has the status {CODES[name].status}")
        CODES[name] = row


def _row_for_status(name: str, status: object) -> Code:
    if not isinstance(status, int) or not 400 <= status <= 599:
        raise ValueError(f"the status of {name!r} should be from 400 to 599, not {status!r}")
    # The exit status and `retryable` come from the error class with that HTTP status.
    like = CODES.get(code_for_status(status) or UNKNOWN_ERROR, CODES[UNKNOWN_ERROR])
    return Code(status, exit=like.exit, retryable=like.retryable)


def words_of(code: str) -> str:
    """Return the message for an error that has only a code."""
    return code.replace("_", " ").strip().capitalize() or UNKNOWN_TEXT


def find_code(code: str | Enum, kind: str | None = None) -> Code:
    """Return the row for *code*, or else the row for *kind*, the code of its error class."""
    code = code_name(code)
    own = CODES.get(code) if code != UNKNOWN_ERROR else None
    return own or CODES.get(kind or UNKNOWN_ERROR) or CODES[UNKNOWN_ERROR]


def code_for_status(status: int) -> str | None:
    """Return the code that an HTTP status is read as; None for 500 and 422, which are ambiguous.

    Other servers send 422 for any invalid argument; we send it only for a reused key. If several
    codes share a status, the code of the error class that authors raise takes precedence, then the
    first in the table.
    """
    if status in (CODES[UNKNOWN_ERROR].status, CODES["KEY_REUSED"].status):
        return None
    for raised in _RAISED:
        if CODES[raised].status == status:
            return raised
    known = (code for code in CODES if code in BUILT_IN)
    return next((code for code in known if CODES[code].status == status), None)


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
    seconds after which the caller should try again; it is sent as part of the details. A subclass
    may set these members as class attributes.
    """

    kind: ClassVar[str] = UNKNOWN_ERROR
    """The class's code; an error with a custom code gets its statuses from this one."""
    # Defaults for subclasses whose __init__ does not call this one.
    message: str = ""
    details: Any = None
    retryable: bool | None = None
    hint: str | None = None
    retry_after: float | None = None
    may_have_run: bool | None = None
    """False if it is certain that nothing was done; if None, the code decides."""
    thread_goes_on: bool = False
    """True if the call timed out but its function is still running in a thread."""

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
        # A subclass may define these as class attributes.
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
    """The requested object does not exist (404)."""

    code = kind = "NOT_FOUND"


class Conflict(ToolError):
    """The current state does not allow the call (409)."""

    code = kind = "CONFLICT"


class RateLimited(ToolError):
    """The caller has made too many calls (429); it may try again later."""

    code = kind = "RATE_LIMITED"


class Unavailable(ToolError):
    """A service that the tool needs is not responding (503); the call may succeed later."""

    code = kind = "UNAVAILABLE"


class Uncertain(Unavailable):
    """The database did not reply to a commit, which may have taken effect."""


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
    """A real Ctrl-C, on a wire where a tool may also raise KeyboardInterrupt itself."""
