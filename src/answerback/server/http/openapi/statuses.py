"""The HTTP statuses of a tool's errors, found in its options, its gates and its docstring."""

from __future__ import annotations

from ....error_codes import CODES, INPUT_REQUIRED, find_code
from ....errors import ToolError
from ....gates.prompts import codes_of, needs_login
from ....tools.docstrings import parse
from ....tools.tool import Tool

_ALWAYS = {
    400: "Invalid request",
    413: "Body too large",
    415: "Unsupported media type",
    500: "Internal server error",
}
DESCRIPTIONS = _ALWAYS | {
    401: "Not logged in",
    402: "Subscription required",
    403: "Not allowed",
    404: "Not found",
    409: "Conflict",
    410: "The rest of a list is no longer kept",
    422: "The idempotency key of another call",
    429: "Too many requests",
    503: "Unavailable",
    504: "Timed out",
}
_OTHER = "Failed"


def error_statuses(tool: Tool) -> dict[int, str]:
    """Return *tool*'s known error statuses in order, with the docstring's descriptions or our own.

    Errors that are raised without being declared have the operation's `default` response.
    """
    found = {find_code(error.code, error.kind).status for error in tool.settings.raises}
    found |= _statuses_in_options(tool)
    if tool.gates is not None:
        found |= {CODES[code].status for each in tool.gates.declared for code in codes_of(each)}
    if tool.is_paged:
        found.add(CODES["CURSOR_EXPIRED"].status)
    if needs_login(tool):
        found.add(CODES["LOGIN_REQUIRED"].status)
    descriptions = {status: DESCRIPTIONS.get(status, _OTHER) for status in found}
    return dict(sorted((descriptions | _statuses_in_docstring(tool.fn.__doc__) | _ALWAYS).items()))


def _statuses_in_options(tool: Tool) -> set[int]:
    """Return the statuses of the server's own errors, such as a time-out or an open question."""
    policy = tool.policy
    needs_service = policy is not None and bool(policy.retry or policy.breaker)
    codes = {
        "UNAVAILABLE": True,
        "TIMED_OUT": tool.timeout is not None or needs_service,
        "RATE_LIMITED": policy is not None and bool(policy.limits),
        INPUT_REQUIRED: bool(tool.signature.questions),
    }
    return {CODES[code].status for code, possible in codes.items() if possible}


def _statuses_in_docstring(doc: str | None) -> dict[int, str]:
    """Return the statuses and descriptions of the ToolErrors in the Raises section."""
    errors = [ToolError]
    for each in errors:
        errors.extend(each.__subclasses__())
    classes = {each.__name__: each for each in errors}
    found: dict[int, str] = {}
    for name, text in parse(doc).raises.items():
        error = classes.get(name.rpartition(".")[2])
        if error is not None:
            status = find_code(error.code, error.kind).status
            description = text or DESCRIPTIONS.get(status, _OTHER)
            found[status] = "; ".join(filter(None, [found.get(status), description]))
    return found
