"""The HTTP statuses of a tool's errors, found in its options, its docstring and its code."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from types import CodeType, FunctionType
from typing import Any

from ....error_codes import CODES, INPUT_REQUIRED, find_code
from ....errors import ToolError
from ....gates.schemes import codes_of, needs_login
from ....tools.callable_source import source_of
from ....tools.docstrings import parse
from ....tools.signature import dependency_functions
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
# The methods of a Context that ask. The call fails with 409 if the client cannot be asked.
_ASKING = {"elicit", "sample", "roots"}


def error_statuses(tool: Tool) -> dict[int, str]:
    """Return *tool*'s error statuses in order, with the docstring's descriptions or our own."""
    sources: list[Any] = [source_of(tool.fn).function, *dependency_functions(tool.signature)]
    found = {find_code(error.code, error.kind).status for error in tool.settings.raises}
    found |= _statuses_in_options(tool)
    if tool.gates is not None:
        sources += [source_of(each).function for each in tool.gates.declared]
        found |= {CODES[code].status for each in tool.gates.declared for code in codes_of(each)}
    if tool.is_paged:
        found.add(CODES["CURSOR_EXPIRED"].status)
    if needs_login(tool):
        found.add(CODES["LOGIN_REQUIRED"].status)
    has_context = tool.signature.context is not None
    for function in chain.from_iterable(map(_reached_functions, sources)):
        found |= _statuses_in_code(function)
        if has_context and not _ASKING.isdisjoint(_names(function.__code__)):
            found.add(CODES[INPUT_REQUIRED].status)
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
    classes = _error_classes()
    found: dict[int, str] = {}
    for name, text in parse(doc).raises.items():
        error = classes.get(name.rpartition(".")[2])
        if error is not None:
            status = find_code(error.code, error.kind).status
            description = text or DESCRIPTIONS.get(status, _OTHER)
            found[status] = "; ".join(filter(None, [found.get(status), description]))
    return found


def _error_classes() -> dict[str, type[ToolError]]:
    """Return ToolError and all its subclasses by name, including authors' own."""
    classes = [ToolError]
    for error in classes:
        classes.extend(error.__subclasses__())
    return {error.__name__: error for error in classes}


def _reached_functions(function: FunctionType) -> list[FunctionType]:
    """Return the function, and its module's functions that it uses by name, even indirectly."""
    reached = [function]
    for each in reached:
        for name in _names(each.__code__):
            other = each.__globals__.get(name)
            if not isinstance(other, FunctionType) or other.__module__ != function.__module__:
                continue
            if other not in reached:
                reached.append(other)
    return reached


def _statuses_in_code(function: FunctionType) -> set[int]:
    """Return the statuses of the ToolErrors and of the error codes that a function mentions."""
    classes = _error_classes()
    names = set(_names(function.__code__))
    # The same name may mean something else in the function's module.
    named = [function.__globals__.get(name, classes[name]) for name in names & classes.keys()]
    errors = [error for error in named if isinstance(error, type) and issubclass(error, ToolError)]
    found = {find_code(error.code, error.kind).status for error in errors}
    if errors or "failure" in names:
        found |= {CODES[text].status for text in _strings(function.__code__) if text in CODES}
    return found


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for inner in _nested(code):
        yield from _names(inner)


def _strings(code: CodeType) -> Iterator[str]:
    yield from (constant for constant in code.co_consts if isinstance(constant, str))
    for inner in _nested(code):
        yield from _strings(inner)


def _nested(code: CodeType) -> Iterator[CodeType]:
    yield from (constant for constant in code.co_consts if isinstance(constant, CodeType))
