"""Turns exceptions into errors. This is the only place that does.

Only messages meant for the caller reach the caller. Other exceptions are masked: the
caller gets a reference, and the log has the traceback under that reference.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from time import perf_counter
from typing import Any, TypeAlias

import msgspec

from ..contract import MASKED
from ..core.log import logger
from ..core.reply import Error, Reply
from ..errors import (
    INVALID_ARGUMENTS,
    INVALID_JSON,
    INVALID_OUTPUT,
    TOOL_EXECUTION_ERROR,
    AnswerbackError,
    Interrupted,
    ToolError,
)
from ..tools.callable_source import required_parameters, source_of
from ..tools.tool import Tool
from ..types.problems import InvalidArguments, InvalidJson, InvalidOutput, UnservableType
from .call import Call
from .context import Context
from .reply_check import checked_error, reply_to, with_reference

ErrorFunction: TypeAlias = Callable[[Any], "ToolError | Reply[Any] | str | None"]
"""Makes the error for an exception; may be a ToolError subclass. None leaves it masked."""

# These already have a message for callers, or are mistakes that only the author can fix.
_OURS = (AnswerbackError, InvalidArguments, InvalidJson, InvalidOutput, UnservableType)


class AppErrors:
    """One app's registered exception classes, and the function for each."""

    def __init__(self) -> None:
        self._functions: dict[type[BaseException], ErrorFunction] = {}

    def add(self, kind: object, function: ErrorFunction) -> None:
        """Let *function* make errors for exceptions of *kind*; raises TypeError or ValueError."""
        if not isinstance(kind, type) or not issubclass(kind, BaseException):
            raise TypeError(f"{kind!r} is not an exception class; pass one, such as KeyError")
        if issubclass(kind, _OURS):
            raise TypeError(f"callers already see the message of {kind.__name__}; leave it out")
        if not (isinstance(function, type) and issubclass(function, ToolError)):
            what = f"the error for {kind.__name__}"
            if isinstance(function, type) or not callable(function):
                raise TypeError(
                    f"{what} is {function!r}; write a subclass of ToolError, "
                    "or a function that takes the exception"
                )
            source = source_of(function)
            name = source.function.__name__
            if source.is_async:
                raise TypeError(
                    f"{what} is made by {name!r}, which is async; write def {name}(exc)"
                )
            if len(names := required_parameters(source)) != 1:
                raise TypeError(
                    f"{what} is made by {name!r}, which takes {names}; write def {name}(exc)"
                )
        if kind in self._functions:
            raise ValueError(f"there is already an error for {kind.__name__}")
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
        message = "%s %r raised %s; the caller sees the app's error for it"
        logger().debug(message, tool.noun, tool.name, type(exc).__name__, exc_info=exc)
        return shown


def _shown(
    function: ErrorFunction, exc: BaseException, tool: Tool
) -> BaseException | Reply[Any] | None:
    given: object = exc
    if isinstance(function, type):
        # An error class takes a message, and str(KeyError("a")) has quotes.
        is_key = isinstance(exc, KeyError) and len(exc.args) == 1
        given = str(exc.args[0] if is_key else exc) or type(exc).__name__
    value: object = function(given)
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


LogFields: TypeAlias = Callable[[], Mapping[str, Any]]
"""Returns the fields for a log record; a function, because most errors are not logged."""

REPORT = "this is a server error: report the reference to whoever runs the server"

_MAX_EXCERPT = 200
_MAX_SEARCHED = 2000
SHOW_EXCEPTION = "(the exception itself)"
"""A contract whose masked message is this very object shows exceptions: `serve --debug`."""


def failed_reply(
    exc: BaseException, call: Call, masked: str, more_fields: LogFields | None = None
) -> Reply[Any]:
    """Return the reply to a call that raised *exc*."""
    noun = "tool"
    if (tool := call.tool) is not None:
        noun = tool.noun
        # The innermost app with an error for this exception decides.
        for app in reversed(tool.path):
            if app.errors is not None and (shown := app.errors.shown_for(exc, tool)) is not None:
                if isinstance(shown, Reply):
                    return shown
                exc = shown
                break
    if noun != "tool" and masked == MASKED:
        masked = masked.replace("tool", noun)
    shown_for = None if call.policy_run is None else call.policy_run.shown_for
    error = error_for(exc, call.name, masked, more_fields, shown_for=shown_for, noun=noun)
    return Reply(error=error)


def error_for(
    exc: BaseException,
    name: str,
    masked: str,
    more_fields: LogFields | None = None,
    *,
    shown_for: Callable[[BaseException], Error | None] | None = None,
    noun: str = "tool",
) -> Error:
    """Return the error to send when tool *name* raised *exc*; *masked* replaces a hidden message.

    *more_fields* returns more fields for the log record, such as the wire and the attempts.
    *shown_for* returns the error to show for an exception caused by a failing service. *noun* says
    what failed if it was not a tool.
    """
    make_fields = more_fields or dict

    def fields() -> dict[str, Any]:
        return {"kind": noun, "tool": name, **make_fields()}

    shown = None
    try:
        error = _error_for_caller(exc, f"{noun} {name!r}", fields)
        if error is None and shown_for is not None:
            shown = shown_for(exc)
    # An author's exception may have properties that raise too.
    except Exception as worse:  # noqa: BLE001 -- this is the place that handles all of them
        error, exc = None, worse
    if error is not None:
        return error
    shown = shown or Error(TOOL_EXECUTION_ERROR, masked, hint=REPORT)
    advice = (
        "the caller sees a masked message; raise ToolError(...) to show a message, "
        f"or list {type(exc).__name__} in App(errors=...)"
    )
    if masked is SHOW_EXCEPTION:
        advice = "the caller sees its text because of --debug"
        shown = msgspec.structs.replace(shown, message=_description(exc))
    shown, reference = with_reference(shown)
    logged = {"code": shown.code, "reference": reference, **fields()}
    _log(f"failed, reference {reference}; {advice}", exc, logged)
    return shown


def must_propagate(exc: BaseException, wire: str) -> bool:
    """Return whether KeyboardInterrupt, GeneratorExit or task cancellation ends more than the call.

    SystemExit and libraries' BaseExceptions (such as pyo3's panics) only fail the call. In memory
    and in `call`, the tool runs in the caller's process, so all three propagate. On other wires
    they usually come from the tool itself, and then they only fail its call.
    """
    is_owned = wire in ("memory", "call")
    if isinstance(exc, KeyboardInterrupt):
        return is_owned or isinstance(exc, Interrupted)
    if isinstance(exc, GeneratorExit):
        # In a closed coroutine the exception is raised at its own `await`; if the tool raised it,
        # the traceback has the tool's frames.
        return is_owned or exc.__traceback__ is None or exc.__traceback__.tb_next is None
    # Looked up, not imported: another thread may be in the middle of importing asyncio.
    exceptions = sys.modules.get("asyncio.exceptions")
    if isinstance(exc, getattr(exceptions, "CancelledError", ())):
        return is_owned or _is_being_cancelled()
    return False


def _is_being_cancelled() -> bool:
    """Return whether the call's own task is being cancelled, not just something it awaits."""
    import asyncio

    try:
        task = asyncio.current_task()
    except RuntimeError:  # No event loop.
        return False
    return task is not None and task.cancelling() > 0


def invalid_arguments(exc: InvalidArguments) -> Error:
    """Return the error for arguments that do not fit the tool's parameters."""
    details = {"problems": msgspec.to_builtins(exc.problems)}
    return Error(INVALID_ARGUMENTS, f"Invalid arguments: {exc}", details)


def _error_for_caller(exc: BaseException, owner: str, log_fields: LogFields) -> Error | None:
    match exc:
        case ToolError():
            return checked_error(Error.of(exc), owner)
        case BaseExceptionGroup() if not exc.split(ToolError)[1]:
            # From a task group, for example; the first error is shown.
            first: BaseException = exc
            while isinstance(first, BaseExceptionGroup):
                first = first.exceptions[0]
            if len(exc.exceptions) > 1:
                _log("raised several errors; the caller sees only the first", exc, log_fields())
            return _error_for_caller(first, owner, log_fields)
        case InvalidArguments():
            return invalid_arguments(exc)
        case InvalidJson():
            return Error(INVALID_JSON, "Invalid JSON body", hint=str(exc))
        case InvalidOutput():
            message = f"Invalid output: {exc.for_caller()}"
            error, reference = with_reference(Error(INVALID_OUTPUT, message, hint=REPORT))
            fields = {"code": INVALID_OUTPUT, "reference": reference, **log_fields()}
            event = f"returned a value that cannot be sent, reference {reference}: {exc}"
            if exc.returned_text is not None:
                from ..core.secrets import mask

                excerpt = mask(exc.returned_text[:_MAX_SEARCHED])
                if len(excerpt) > _MAX_EXCERPT:
                    excerpt = excerpt[:_MAX_EXCERPT] + "…"
                event += f"; it returned the text {excerpt!r}; raise ToolError(...) instead"
            # Our own traceback is useless here; the author's exception behind it is what matters.
            _log(event, exc.__cause__, fields)
            return error
        case _:
            return None


def _description(exc: BaseException) -> str:
    """Return the exception as a traceback shows it, with the line that raised it."""
    import traceback

    text = "".join(traceback.format_exception_only(exc)).strip()
    frames = traceback.extract_tb(exc.__traceback__)
    if not frames:
        return text
    return f"{text}, in {frames[-1].name} at {frames[-1].filename}:{frames[-1].lineno}"


def _log(event: str, exc: BaseException | None, fields: Mapping[str, Any]) -> None:
    """Log the event; the log record has each of *fields* as an attribute."""
    log = logger().error
    log("%s %r %s", fields["kind"], fields["tool"], event, exc_info=exc, extra=fields)


def log_fields(call: Call, began: float) -> dict[str, Any]:
    """Return a failed call's log fields; *began* is from `perf_counter`."""
    from ..core.authentication import User

    user = None
    # Another framework's user object may raise, but the failed call must still be logged.
    with suppress(Exception):
        user = Context(call).user
    fields: dict[str, Any] = {
        "wire": call.wire,
        "caller": call.caller,
        "seconds": round(perf_counter() - began, 6),
        # A digest does not reveal the user.
        "user": user.key.hex() if isinstance(user, User) else "",
    }
    if (run := call.policy_run) is not None:
        fields |= {"attempts": run.attempts, "breaker": run.breaker}
    return fields


def log_internal_error(where: str, exc: BaseException | None = None) -> None:
    """Log *exc* or the current exception, which is our bug, not the tool's."""
    logger().error("internal error in %s", where, exc_info=exc or True)
