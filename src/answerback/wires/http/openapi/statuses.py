"""The HTTP statuses a tool can give, found in what its author wrote."""

from __future__ import annotations

from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

from ....errors import CODES, ToolError, find_code
from ....tools.docstrings import parse
from ....tools.signature import source_of

if TYPE_CHECKING:
    from ....tools.tool import Tool

ALWAYS = {
    400: "Invalid request",
    413: "Body too large",
    415: "Unsupported media type",
    500: "Internal server error",
}
WORDS = ALWAYS | {
    401: "Not logged in",
    403: "Not allowed",
    404: "Not found",
    409: "Conflict",
    429: "Too many requests",
    503: "Unavailable",
    504: "Timed out",
}


def error_statuses(tool: Tool) -> dict[int, str]:
    """Each error status of *tool*, in order, with what the author or else we say of it."""
    source: Any = source_of(tool.fn).function
    found = {find_code(error.code, error.kind).status for error in tool.settings.raises}
    for function in _own_functions(source):
        found |= _in_code(function)
    words = {status: WORDS.get(status, "Failed") for status in found}
    return dict(sorted((words | _in_docstring(tool.fn.__doc__) | ALWAYS).items()))


def _in_docstring(doc: str | None) -> dict[int, str]:
    """What the Raises section says of errors of ours."""
    tree = _errors()
    found: dict[int, str] = {}
    for name, text in parse(doc).raises.items():
        error = tree.get(name.rpartition(".")[2])
        if error is not None:
            status = find_code(error.code, error.kind).status
            told = [found.get(status, ""), text or WORDS.get(status, "Failed")]
            found[status] = "; ".join(filter(None, told))
    return found


def _errors() -> dict[str, type[ToolError]]:
    """The tree of ToolError by name, the authors' own branches too."""
    tree = [ToolError]
    for error in tree:
        tree.extend(error.__subclasses__())
    return {error.__name__: error for error in tree}


def _own_functions(function: FunctionType) -> list[FunctionType]:
    """The function, and those of its module that it reaches by name."""
    reached = [function]
    for known in reached:
        for name in _names(known.__code__):
            other = known.__globals__.get(name)
            if not isinstance(other, FunctionType) or other.__module__ != function.__module__:
                continue
            if other not in reached:
                reached.append(other)
    return reached


def _in_code(function: FunctionType) -> set[int]:
    """The statuses of the errors that a function names, and of the codes it gives them."""
    tree = _errors()
    names = set(_names(function.__code__))
    # A name that means something else in the function's module is not our error.
    named = [function.__globals__.get(name, tree[name]) for name in names & tree.keys()]
    errors = [error for error in named if isinstance(error, type) and issubclass(error, ToolError)]
    found = {find_code(error.code, error.kind).status for error in errors}
    if errors or "failure" in names:
        found |= {CODES[text].status for text in _texts(function.__code__) if text in CODES}
    return found


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for inner in _inner(code):
        yield from _names(inner)


def _texts(code: CodeType) -> Iterator[str]:
    yield from (constant for constant in code.co_consts if isinstance(constant, str))
    for inner in _inner(code):
        yield from _texts(inner)


def _inner(code: CodeType) -> Iterator[CodeType]:
    yield from (constant for constant in code.co_consts if isinstance(constant, CodeType))
