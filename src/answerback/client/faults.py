"""Connection failures, and the replies and errors that report them to users."""

from __future__ import annotations

from typing import Any

from ..core.json_value import JsonObject
from ..core.reply import Reply, failure
from ..errors import (
    INPUT_REQUIRED,
    INVALID_ARGUMENTS,
    AnswerbackError,
    Conflict,
    Forbidden,
    InvalidInput,
    NotFound,
    RateLimited,
    TimedOut,
    ToolError,
    Unauthenticated,
    Unavailable,
)
from ..protocol.jsonrpc import MISSING_CAPABILITY, RpcError
from ..reading import read
from ..types.unencodable import find_fault

UNAVAILABLE = "UNAVAILABLE"
TIMED_OUT = "TIMED_OUT"
TOO_LARGE = "TOO_LARGE"
INVALID_RESPONSE = "INVALID_RESPONSE_FORMAT"


class ConnectError(AnswerbackError):
    """A connection to the server could not be opened.

    *message* is the reason. *stderr* is the tail of an exited child process's stderr; it may
    contain secrets, so show it to this program's user, not to a model.
    """

    code = UNAVAILABLE

    def __init__(self, message: str, *, stderr: str = "") -> None:
        super().__init__(message)
        self.details: dict[str, str] = {"stderr": stderr} if stderr else {}
        """Contains `stderr` if the child process wrote to it."""


class LoginError(AnswerbackError):
    """The client could not log in to a server, or the server refused the new token."""

    code = "UNAUTHENTICATED"

    def __init__(self, message: str, code: str = "UNAUTHENTICATED") -> None:
        super().__init__(message)
        self.code = code


class NoAnswer(Exception):
    """A request got no response; *may_have_run* says whether the server may have acted on it."""

    def __init__(
        self,
        message: str,
        *,
        code: str = UNAVAILABLE,
        may_have_run: bool = True,
        details: JsonObject | None = None,
        retryable: bool | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.may_have_run = may_have_run
        self.retryable = retryable
        self.details = {"may_have_run": may_have_run, **(details or {})}

    @property
    def stderr(self) -> str:
        """The tail of an exited child process's stderr."""
        return str(self.details.get("stderr", ""))


class ConnectionLost(NoAnswer):
    """The connection broke: the child process ended, or the HTTP connection was closed."""


class SessionLost(ConnectionLost):
    """The server no longer knows the session; it did not act on the request."""


class HttpRefused(NoAnswer):
    """The server responded with an HTTP status but no MCP message."""

    def __init__(
        self, status: int, text: str = "", retry_after: str | None = None, advice: str = ""
    ) -> None:
        excerpt = " ".join(text.split())[:200]
        message = f"the server answered with HTTP status {status}"
        if excerpt:
            message += f": {excerpt}"
        if status == 401:
            where = "Login is in answerback.client.login"
            advice = f'connect(…, auth=Login()) logs in ({where}), and auth="…" sends a token'
        if advice:
            message += f"; {advice}"
        details: JsonObject = {"status": status}
        if retry_after is not None:
            from ..resilience.service_failure import read_seconds

            details["retry_after"] = read_seconds(retry_after)
        super().__init__(
            message,
            code=_CODES.get(status, UNAVAILABLE),
            # A gateway may send a 5xx after the server has started processing the request.
            may_have_run=status >= 500,
            details=details,
            retryable=None if status in _TRANSIENT else False,
        )
        self.status = status


_CODES = {401: "UNAUTHENTICATED", 403: "FORBIDDEN", 429: "RATE_LIMITED"}
_TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504})
"""HTTP statuses for which the same request may succeed later."""
_HANDLED = {"elicitation": "elicit", "sampling": "sample", "roots": "roots"}
"""The `connect` option that provides each capability."""


def failed_reply(error: NoAnswer | RpcError) -> Reply[Any]:
    """Return the reply for a call that got no result."""
    if isinstance(error, NoAnswer):
        return failure(error.message, error.code, error.details, retryable=error.retryable)
    if error.code == MISSING_CAPABILITY:
        wanted = error.data.get("requiredCapabilities") if isinstance(error.data, dict) else None
        if isinstance(wanted, dict) and wanted and wanted.keys() <= _HANDLED.keys():
            details = {"may_have_run": False, "code": error.code, "data": error.data}
            options = ", ".join(f"{_HANDLED[each]}=…" for each in wanted)
            hint = f"connect(…, {options}) answers the server's questions"
            return failure(error.message, INPUT_REQUIRED, details, retryable=False, hint=hint)
    body = {"code": error.code, "message": error.message}
    if error.data is not None:
        body["data"] = error.data
    return read({"jsonrpc": "2.0", "error": body})


def check_numbers(arguments: JsonObject) -> None:
    """Raise NoAnswer if the arguments contain NaN or infinity."""
    for name, value in arguments.items():
        if (fault := find_fault(value)) is not None:
            text = f"{fault.below(name)}, which JSON cannot express"
            raise NoAnswer(text, code=INVALID_ARGUMENTS, may_have_run=False)


def raised_error(error: NoAnswer | RpcError) -> ToolError:
    """Return the exception for a list, prompt or completion request that got no result."""
    failed = failed_reply(error).error
    assert failed is not None
    raised = _CLASSES.get(failed.kind or failed.code, ToolError)
    return raised(
        failed.message,
        failed.code,
        failed.details,
        retryable=failed.retryable,
        hint=failed.hint,
    )


_CLASSES: dict[str, type[ToolError]] = {
    each.kind: each
    for each in (
        *(Conflict, Forbidden, InvalidInput, NotFound, RateLimited, TimedOut),
        *(Unauthenticated, Unavailable),
    )
}
