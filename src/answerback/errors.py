"""What can go wrong, and what each wire says about it.

    AnswerbackError
    ├── MissingExtraError       an optional dependency is not installed
    ├── UndefinedAnnotation     a tool is annotated with a name that was never defined
    └── ToolError               a failure the tool's author says in words meant for the caller
        ├── InvalidInput        400
        ├── Unauthenticated     401
        ├── Forbidden           403
        ├── NotFound            404
        ├── Conflict            409
        ├── RateLimited         429
        ├── Unavailable         503
        └── TimedOut            504

`CODES` is the one table from a code to every wire. A developer's mistake (a tool
that cannot be served) is an ordinary `TypeError` or `ValueError` at registration.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import msgspec


class Code(msgspec.Struct, frozen=True):
    """What the wires say for one error code."""

    status: int
    """HTTP and CGI."""
    exit: int = 1
    """The command line; 64 and up are those of sysexits.h."""
    rpc: int | None = None
    """The JSON-RPC error; without one, MCP answers an `isError` result."""
    retryable: bool = False


UNKNOWN_ERROR = "UNKNOWN_ERROR"
TOOL_EXECUTION_ERROR = "TOOL_EXECUTION_ERROR"
INVALID_OUTPUT = "INVALID_OUTPUT"
INVALID_ARGUMENTS = "INVALID_ARGUMENTS"
INVALID_JSON = "INVALID_JSON"
TOOL_NOT_FOUND = "TOOL_NOT_FOUND"
INPUT_REQUIRED = "INPUT_REQUIRED"

CODES = {
    UNKNOWN_ERROR: Code(500),
    TOOL_EXECUTION_ERROR: Code(500, exit=70),
    INVALID_OUTPUT: Code(500, exit=70),
    "INVALID_RESPONSE_FORMAT": Code(500, exit=70),
    "RESPONSE_VALIDATION_ERROR": Code(500, exit=70),
    INVALID_JSON: Code(400, exit=2, rpc=-32700),
    INVALID_ARGUMENTS: Code(400, exit=2),
    "INVALID_INPUT": Code(400, exit=65),
    "UNAUTHENTICATED": Code(401, exit=77),
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
    "RATE_LIMITED": Code(429, exit=75, retryable=True),
    "UNAVAILABLE": Code(503, exit=69, retryable=True),
    "TIMED_OUT": Code(504, exit=75, retryable=True),
}


class AnswerbackError(Exception):
    """Root of what a caller may catch; `code` is the name every wire maps from."""

    code: str = UNKNOWN_ERROR


class MissingExtraError(AnswerbackError):
    code = "MISSING_EXTRA"


class UndefinedAnnotation(AnswerbackError, NameError):
    code = "UNDEFINED_ANNOTATION"


class ToolError(AnswerbackError):
    """A failure in words the author means the caller to read.

    `code` may be any UPPER_SNAKE name, given here or by a class of the author's own;
    it keeps the status of the class below that it was raised through.
    """

    kind: ClassVar[str] = UNKNOWN_ERROR
    # A subclass need not call this __init__, and may leave all of them as they are.
    message: str = ""
    details: Any = None
    retryable: bool | None = None
    hint: str | None = None

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        details: Any = None,
        retryable: bool | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or self.code
        self.details = details
        self.retryable = retryable
        self.hint = hint


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
    """The table's row for *code*; else for the *kind* that it was raised as."""
    own = CODES.get(code) if code != UNKNOWN_ERROR else None
    return own or CODES.get(kind or UNKNOWN_ERROR) or CODES[UNKNOWN_ERROR]


@contextmanager
def needs_extra(extra: str) -> Iterator[None]:
    """Turn a missing optional dependency into an install hint."""
    try:
        yield
    except ModuleNotFoundError as exc:
        hint = f"{exc.name} is not installed; run: pip install 'answerback[{extra}]'"
        raise MissingExtraError(hint) from exc
