"""An author's own exceptions: what callers see of them, from `App(errors=…)` and `@app.error`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from ..core.log import logger
from ..core.reply import Reply
from ..errors import AnswerbackError, ToolError
from ..registry.declarations import Registry
from ..tools.callable_source import required_parameters, source_of
from ..tools.tool import Tool
from ..types.problems import InvalidArguments, InvalidJson, InvalidOutput, UnservableType
from .reply_check import reply_to

ErrorFunction: TypeAlias = Callable[[Any], ToolError | Reply[Any] | str | None]
"""Makes the error for an exception; None leaves the exception masked."""

# They have a message for callers already, or are a mistake that only the author can mend.
_OURS = (AnswerbackError, InvalidArguments, InvalidJson, InvalidOutput, UnservableType)


def checked_errors(given: object) -> dict[type[BaseException], ErrorFunction]:
    """Return the value of `App(errors=…)`; raises TypeError for a wrong one."""
    if not isinstance(given, Mapping):
        raise TypeError(
            f"errors={given!r} should be a dict of exception classes: {{KeyError: NotFound}}"
        )
    for kind, function in given.items():
        check_error_class(kind, "errors")
        if not (isinstance(function, type) and issubclass(function, ToolError)):
            _check_function(function, f"errors has {function!r} for {kind.__name__}")
    return dict(given)


def check_error_class(kind: object, where: str) -> None:
    """Raise TypeError if *kind* is not an exception class, or if callers see it already."""
    if not isinstance(kind, type) or not issubclass(kind, BaseException):
        raise TypeError(f"{where} has {kind!r}, which is not an exception class")
    if issubclass(kind, _OURS):
        raise TypeError(f"{where} has {kind.__name__}, whose message callers see already")


def add_error(registry: Registry, kind: type[BaseException], function: ErrorFunction) -> None:
    """Let *function* make the error for exceptions of *kind*."""
    name = getattr(function, "__name__", repr(function))
    _check_function(function, f"@app.error({kind.__name__}) decorates {name!r}")
    if kind in registry.errors:
        raise ValueError(f"errors of {registry.name!r} has {kind.__name__} already")
    registry.errors[kind] = function


def _check_function(function: object, problem: str) -> None:
    if isinstance(function, type) or not callable(function):
        raise TypeError(
            f"{problem}; write a subclass of ToolError, or a function that takes the exception"
        )
    source = source_of(function)
    if source.is_async:
        raise TypeError(f"{problem}, which is async; write a plain function: def show(exc)")
    if len(names := required_parameters(source)) != 1:
        raise TypeError(f"{problem}, which takes {names}; take only the exception: def show(exc)")


def translated(exc: BaseException, tool: Tool) -> BaseException | Reply[Any]:
    """Return the error that the apps of *tool* show for *exc*; else *exc*, which is masked.

    If the author's function raises, its exception is returned.
    """
    if isinstance(exc, _OURS) or (function := _function_for(exc, tool)) is None:
        return exc
    try:
        shown = _shown(function, exc, tool)
    except Exception as raised:  # noqa: BLE001 -- the author's code may raise anything
        return raised
    if shown is None:
        return exc
    message = "%s %r raised %s, which the caller sees as an error of the app"
    logger().debug(message, tool.noun, tool.name, type(exc).__name__, exc_info=exc)
    return shown


def _function_for(exc: BaseException, tool: Tool) -> ErrorFunction | None:
    """Return the function for the nearest class of *exc*, from the tool's own app outwards."""
    for app in reversed(tool.path):
        for kind in type(exc).__mro__:
            if kind in app.errors:
                return app.errors[kind]
    return None


def _shown(
    function: ErrorFunction, exc: BaseException, tool: Tool
) -> BaseException | Reply[Any] | None:
    if isinstance(function, type):
        error: ToolError = function(_text_of(exc))
        return error
    value: object = function(exc)
    if isinstance(value, str):
        return ToolError(value)
    if isinstance(value, Reply) and value.error is not None:
        return reply_to(tool, value)
    if value is None or isinstance(value, ToolError):
        return value
    name = getattr(function, "__name__", repr(function))
    raise TypeError(
        f"{name!r} returned {type(value).__name__} for {type(exc).__name__}; return a ToolError, "
        "failure(…), a str, or None to leave the exception masked"
    )


def _text_of(exc: BaseException) -> str:
    """Return the exception's text; its class's name if it has none."""
    # str(KeyError("a")) has quotes.
    is_key = isinstance(exc, KeyError) and len(exc.args) == 1
    return str(exc.args[0] if is_key else exc) or type(exc).__name__
