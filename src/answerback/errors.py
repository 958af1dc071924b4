"""Answerback's exceptions, and the table of error codes for all wires.

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
        └── TimedOut            504

`CODES` maps a code to the status or error of every wire. A tool that cannot be served is
refused at registration with an ordinary `TypeError` or `ValueError`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar

import msgspec


class Code(msgspec.Struct, frozen=True):
    """An error code's row in `CODES`: its status on each wire."""

    status: int
    """The HTTP and CGI status."""
    exit: int = 1
    """The command line's exit status; from 64 on as in sysexits.h."""
    rpc: int | None = None
    """The JSON-RPC error code; without one, MCP sends an `isError` result."""
    retryable: bool = False


UNKNOWN_ERROR = "UNKNOWN_ERROR"
UNKNOWN_TEXT = "Unknown error"
"""The message of a failure that has none."""
TOOL_EXECUTION_ERROR = "TOOL_EXECUTION_ERROR"
INVALID_OUTPUT = "INVALID_OUTPUT"
INVALID_ARGUMENTS = "INVALID_ARGUMENTS"
INVALID_JSON = "INVALID_JSON"
TOOL_NOT_FOUND = "TOOL_NOT_FOUND"
CHECK_FIRST = "it may have taken effect: check that before you call again"
"""The hint of a failed call that must not run twice."""
INPUT_REQUIRED = "INPUT_REQUIRED"

CODES = {
    UNKNOWN_ERROR: Code(500),
    TOOL_EXECUTION_ERROR: Code(500, exit=70),
    INVALID_OUTPUT: Code(500, exit=70),
    "INVALID_RESPONSE_FORMAT": Code(500, exit=70),
    "RESPONSE_VALIDATION_ERROR": Code(500, exit=70),
    "WORKER_LOST": Code(500, exit=70),
    INVALID_JSON: Code(400, exit=2, rpc=-32700),
    INVALID_ARGUMENTS: Code(400, exit=2),
    "INVALID_INPUT": Code(400, exit=65),
    "UNAUTHENTICATED": Code(401, exit=77),
    "LOGIN_REQUIRED": Code(401, exit=77),
    "INVALID_TOKEN": Code(401, exit=77),
    "SUBSCRIPTION_REQUIRED": Code(402, exit=77),
    "LINK_REQUIRED": Code(403, exit=77),
    "SCOPE_REQUIRED": Code(403, exit=77),
    "FORBIDDEN": Code(403, exit=77),
    "FOREIGN_ORIGIN": Code(403, exit=77),
    TOOL_NOT_FOUND: Code(404, exit=2, rpc=-32602),
    "ROUTE_NOT_FOUND": Code(404, exit=2),
    "NOT_FOUND": Code(404, exit=66),
    "METHOD_NOT_ALLOWED": Code(405, exit=2),
    "CONFLICT": Code(409, exit=73),
    INPUT_REQUIRED: Code(409, exit=73),
    "INPUT_DECLINED": Code(409, exit=73),
    "TOO_LARGE": Code(413, exit=65),
    "UNSUPPORTED_MEDIA_TYPE": Code(415, exit=2),
    "FOREIGN_HOST": Code(421, exit=77),
    "KEY_REUSED": Code(422, exit=65),
    "RATE_LIMITED": Code(429, exit=75, retryable=True),
    "UNAVAILABLE": Code(503, exit=69, retryable=True),
    "TIMED_OUT": Code(504, exit=75, retryable=True),
}
BUILT_IN = frozenset(CODES)
"""Answerback's own codes; `add_codes` adds the authors' codes to the table."""
_CODE_NAME = r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*"


def add_codes(codes: Mapping[str, int | Code]) -> None:
    """Add an author's codes to the table, by HTTP status or as a whole row.

    The process has one table: two apps may add the same code only with the same row.
    """
    for name, value in codes.items():
        row = value if isinstance(value, Code) else _row_for_status(name, value)
        if not re.fullmatch(_CODE_NAME, str(name)):
            raise ValueError(f"{name!r} should be a code in capitals, such as 'CITY_UNKNOWN'")
        if name in BUILT_IN:
            raise ValueError(f"{name!r} is a code of Answerback's own; choose another name")
        if CODES.get(name, row) != row:
            raise ValueError(f"the code {name!r} has the status {CODES[name].status} already")
        CODES[name] = row


def _row_for_status(name: str, status: object) -> Code:
    if not isinstance(status, int) or not 400 <= status <= 599:
        raise ValueError(f"the status of {name!r} should be from 400 to 599, not {status!r}")
    # The exit status, and whether it is retryable, are those of the class with that status.
    like = CODES.get(code_for_status(status) or UNKNOWN_ERROR, CODES[UNKNOWN_ERROR])
    return Code(status, exit=like.exit, retryable=like.retryable)


class AnswerbackError(Exception):
    """The base class of Answerback's errors; `code` is looked up in `CODES`."""

    code: str = UNKNOWN_ERROR


class MissingExtraError(AnswerbackError):
    code = "MISSING_EXTRA"


class UndefinedAnnotation(AnswerbackError, NameError):
    code = "UNDEFINED_ANNOTATION"


class MalformedReply(AnswerbackError, ValueError):
    """The input is not a reply in the dialect it was read as."""


class ToolError(AnswerbackError):
    """A failure with a message for the caller.

    `code` may be any UPPER_SNAKE name, given here or as an attribute of a subclass. A code
    that is not in `CODES` gets the status of the class that was raised. `retry_after` is the
    number of seconds after which the caller should try again; it is sent among the details.
    """

    kind: ClassVar[str] = UNKNOWN_ERROR
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
        code: str | None = None,
        details: object = None,
        *,
        retryable: bool | None = None,
        hint: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or self.code
        self.details = details
        self.retryable = retryable
        self.hint = hint
        if retry_after is not None:
            self.retry_after = retry_after


class InvalidInput(ToolError):
    code = kind = "INVALID_INPUT"


class Unauthenticated(ToolError):
    code = kind = "UNAUTHENTICATED"


class Forbidden(ToolError):
    code = kind = "FORBIDDEN"


class NotFound(ToolError):
    code = kind = "NOT_FOUND"


class Conflict(ToolError):
    code = kind = "CONFLICT"


class RateLimited(ToolError):
    code = kind = "RATE_LIMITED"


class Unavailable(ToolError):
    code = kind = "UNAVAILABLE"


class TimedOut(ToolError):
    code = kind = "TIMED_OUT"


def find_code(code: str, kind: str | None = None) -> Code:
    """Return the row of *code*, else the row of *kind*, its error class's code."""
    own = CODES.get(code) if code != UNKNOWN_ERROR else None
    return own or CODES.get(kind or UNKNOWN_ERROR) or CODES[UNKNOWN_ERROR]


def code_for_status(status: int) -> str | None:
    """Return the code that an HTTP status is read as; None for 500 and 422, which are ambiguous.

    Other servers send 422 for any invalid argument, we only for a reused key. Several codes
    share a status: the code of the error class that authors raise takes precedence.
    """
    if status in (CODES[UNKNOWN_ERROR].status, CODES["KEY_REUSED"].status):
        return None
    for raised in (InvalidInput, Unauthenticated, Forbidden, NotFound, Conflict):
        if CODES[raised.kind].status == status:
            return raised.kind
    known = (code for code in reversed(CODES) if code in BUILT_IN)
    return next((code for code in known if CODES[code].status == status), None)


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
