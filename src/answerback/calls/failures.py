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


def error_for(exc: BaseException, name: str, masked: str) -> Error:
    """The error to send when the tool *name* raised *exc*; *masked* replaces a hidden message."""
    try:
        error = _error_for_caller(exc, name)
    # The properties of an author's exception are the author's code, and may raise too.
    except Exception as worse:  # noqa: BLE001 -- this is the place that handles all of them
        error, exc = None, worse
    return error or _masked(exc, name, masked)


def must_propagate(exc: BaseException) -> bool:
    """True for KeyboardInterrupt, GeneratorExit and task cancellation, which end more than a call.

    SystemExit and BaseExceptions of libraries (such as pyo3's panics) only fail the call.
    """
    # Looked up, not imported: another thread may be in the middle of importing asyncio.
    exceptions = sys.modules.get("asyncio.exceptions")
    if isinstance(exc, getattr(exceptions, "CancelledError", ())):
        return True
    return isinstance(exc, KeyboardInterrupt | GeneratorExit)


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
    message = f"Invalid output: {exc} (reference {reference})"
    return Error(INVALID_OUTPUT, message, {"reference": reference})


def _masked(exc: BaseException, name: str, masked: str) -> Error:
    reference = os.urandom(6).hex()
    _log(name, f"failed, reference {reference}", exc)
    message = f"{masked} (reference {reference})"
    return Error(TOOL_EXECUTION_ERROR, message, {"reference": reference})


def _log(name: str, event: str, exc: BaseException | None) -> None:
    import logging

    logging.getLogger("answerback").error("tool %r %s", name, event, exc_info=exc)


def log_internal_error(where: str, exc: BaseException | None = None) -> None:
    """Log *exc* or the current exception, which is a bug of ours and not of the tool."""
    import logging

    logging.getLogger("answerback").error("internal error in %s", where, exc_info=exc or True)
