"""Turns exceptions into errors. This is the only place that does.

Only messages that are meant for the caller reach the caller. Other exceptions are masked: the
caller gets a reference, and the log has the traceback under it.
"""

from __future__ import annotations

import os
import sys

import msgspec

from ..errors import (
    INVALID_ARGUMENTS,
    INVALID_JSON,
    INVALID_OUTPUT,
    TOOL_EXECUTION_ERROR,
    ToolError,
)
from ..reply import Error
from ..types.problems import InvalidArguments, InvalidJson, InvalidOutput
from .reply_check import checked_error

SHOW_EXCEPTION = "(the exception itself)"
"""As the masked text of a contract, this very object shows the exception: `serve --debug`."""


def error_for(exc: BaseException, name: str, masked: str) -> Error:
    """The error to send when the tool *name* raised *exc*; *masked* replaces a hidden message."""
    try:
        error = _error_for_caller(exc, name)
    # The properties of an author's exception are the author's code, and may raise too.
    except Exception as worse:  # noqa: BLE001 -- this is the place that handles all of them
        error, exc = None, worse
    return error or _masked(exc, name, masked)


class Interrupted(KeyboardInterrupt):
    """A real Ctrl-C, on a wire where a tool may raise KeyboardInterrupt itself."""


def must_propagate(exc: BaseException, wire: str) -> bool:
    """Whether KeyboardInterrupt, GeneratorExit or task cancellation ends more than the call.

    SystemExit and BaseExceptions of libraries (such as pyo3's panics) only fail the call. In memory
    and in `call` the tool runs in the caller's own process, so that all three propagate. On other
    wires they usually come from the tool itself, and then they only fail its call.
    """
    is_owned = wire in ("memory", "call")
    if isinstance(exc, KeyboardInterrupt):
        return is_owned or isinstance(exc, Interrupted)
    if isinstance(exc, GeneratorExit):
        # A coroutine that is closed gets the exception at its own `await`; one that the tool raised
        # has the frames of the tool in its traceback.
        return is_owned or _raised_here(exc)
    # Looked up, not imported: another thread may be in the middle of importing asyncio.
    exceptions = sys.modules.get("asyncio.exceptions")
    if isinstance(exc, getattr(exceptions, "CancelledError", ())):
        return is_owned or _is_being_cancelled()
    return False


def _raised_here(exc: BaseException) -> bool:
    return exc.__traceback__ is None or exc.__traceback__.tb_next is None


def _is_being_cancelled() -> bool:
    """Whether the task of the call is being cancelled, and not only something that it awaits."""
    import asyncio

    try:
        task = asyncio.current_task()
    except RuntimeError:  # There is no event loop.
        return False
    return task is not None and task.cancelling() > 0


def invalid_arguments(exc: InvalidArguments) -> Error:
    """The error for arguments that do not fit the tool's parameters."""
    details = {"problems": msgspec.to_builtins(exc.problems)}
    return Error(INVALID_ARGUMENTS, f"Invalid arguments: {exc}", details)


def _error_for_caller(exc: BaseException, name: str) -> Error | None:
    match exc:
        case ToolError():
            return checked_error(Error.of(exc), name)
        case InvalidArguments():
            return invalid_arguments(exc)
        case InvalidJson():
            return Error(INVALID_JSON, "Invalid JSON body", hint=str(exc))
        case InvalidOutput():
            return _invalid_output(exc, name)
        case _:
            return None


def _invalid_output(exc: InvalidOutput, name: str) -> Error:
    reference = os.urandom(6).hex()
    # Our own traceback says nothing; the author's exception behind it does.
    _log(name, f"returned a value that cannot be sent, reference {reference}: {exc}", exc.__cause__)
    message = f"Invalid output: {exc.for_caller()} (reference {reference})"
    return Error(INVALID_OUTPUT, message, {"reference": reference})


def _masked(exc: BaseException, name: str, masked: str) -> Error:
    reference = os.urandom(6).hex()
    advice = "the caller sees a masked text; raise ToolError(...) to show a message"
    if masked is SHOW_EXCEPTION:
        advice = "the caller sees its text because of --debug"
        masked = _description(exc)
    _log(name, f"failed, reference {reference}; {advice}", exc)
    message = f"{masked} (reference {reference})"
    return Error(TOOL_EXECUTION_ERROR, message, {"reference": reference})


def _description(exc: BaseException) -> str:
    """The exception as a traceback shows it, with the line that raised it."""
    import traceback

    text = "".join(traceback.format_exception_only(exc)).strip()
    frames = traceback.extract_tb(exc.__traceback__)
    if not frames:
        return text
    return f"{text}, in {frames[-1].name} at {frames[-1].filename}:{frames[-1].lineno}"


def _log(name: str, event: str, exc: BaseException | None) -> None:
    import logging

    logging.getLogger("answerback").error("tool %r %s", name, event, exc_info=exc)


def log_internal_error(where: str, exc: BaseException | None = None) -> None:
    """Log *exc* or the current exception, which is a bug of ours and not of the tool."""
    import logging

    logging.getLogger("answerback").error("internal error in %s", where, exc_info=exc or True)
