"""An author's own exceptions: what callers see of them, from `App(errors=…)` and `@app.error`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from ..core.log import logger
from ..core.reply import Reply
from ..errors import AnswerbackError, ToolError
from ..tools.callable_source import required_parameters, source_of
from ..tools.tool import Tool
from ..types.problems import InvalidArguments, InvalidJson, InvalidOutput, UnservableType
from .reply_check import reply_to

ErrorFunction: TypeAlias = Callable[[Any], ToolError | Reply[Any] | str | None]
"""Makes the error for an exception, as a subclass of ToolError does; None leaves it masked."""

# They have a message for callers already, or are a mistake that only the author can mend.
_OURS = (AnswerbackError, InvalidArguments, InvalidJson, InvalidOutput, UnservableType)


class OwnExceptions:
    """The author's exception classes in one app, and the function for each."""

    def __init__(self) -> None:
        self._functions: dict[type[BaseException], ErrorFunction] = {}

    def add(self, kind: object, function: ErrorFunction) -> None:
        """Let *function* make the error for exceptions of *kind*; raises TypeError, ValueError."""
        if not isinstance(kind, type) or not issubclass(kind, BaseException):
            raise TypeError(f"{kind!r} is not an exception class; write one: KeyError")
        if issubclass(kind, _OURS):
            raise TypeError(f"callers see the message of {kind.__name__} already; leave it out")
        if not (isinstance(function, type) and issubclass(function, ToolError)):
            _check_function(function, f"the error for {kind.__name__}")
        if kind in self._functions:
            raise ValueError(f"there is an error for {kind.__name__} already")
        self._functions[kind] = function

    def shown_for(self, exc: BaseException, tool: Tool) -> BaseException | Reply[Any] | None:
        """Return the error that callers see for *exc*; None if the app has none for it.

        If the author's function raises, its exception is returned.
        """
        found = (kind for kind in type(exc).__mro__ if kind in self._functions)
        if isinstance(exc, _OURS) or (kind := next(found, None)) is None:
            return None
        try:
            shown = _shown(self._functions[kind], exc, tool)
        except Exception as raised:  # noqa: BLE001 -- the author's code may raise anything
            return raised
        if shown is None:
            return exc
        message = "%s %r raised %s, for which the caller sees an error of the app"
        logger().debug(message, tool.noun, tool.name, type(exc).__name__, exc_info=exc)
        return shown


def _check_function(function: object, what: str) -> None:
    if isinstance(function, type) or not callable(function):
        raise TypeError(
            f"{what} is {function!r}; write a subclass of ToolError, or a function of the exception"
        )
    source = source_of(function)
    name = source.function.__name__
    if source.is_async:
        raise TypeError(f"{what} is made by {name!r}, which is async; write def {name}(exc)")
    if len(names := required_parameters(source)) != 1:
        raise TypeError(f"{what} is made by {name!r}, which takes {names}; write def {name}(exc)")


def _shown(
    function: ErrorFunction, exc: BaseException, tool: Tool
) -> BaseException | Reply[Any] | None:
    value: object = function(_text_of(exc) if isinstance(function, type) else exc)
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
