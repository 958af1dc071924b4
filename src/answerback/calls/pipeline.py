"""One invocation, and the one path it takes whichever wire it came by."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Coroutine, Mapping
from types import CoroutineType
from typing import Any, TypeAlias, TypeVar

import msgspec

from ..context import Context
from ..contract import Contract
from ..errors import (
    INPUT_REQUIRED,
    INVALID_ARGUMENTS,
    INVALID_JSON,
    INVALID_OUTPUT,
    TOOL_EXECUTION_ERROR,
    TOOL_NOT_FOUND,
    ToolError,
)
from ..peer import NO_PEER, NeedsInput, Peer
from ..reply import Error, Reply, failure
from ..tools.tool import Tool
from ..types.describe import near
from ..types.problems import InvalidArguments, InvalidJson, InvalidOutput
from .reply_check import checked_error, reply_to
from .runners import Runner

T = TypeVar("T")


class Call(msgspec.Struct, eq=False):
    """What a wire makes of the bytes it was sent."""

    name: str
    arguments: bytes = b"{}"
    peer: Peer = NO_PEER
    wire: str = "memory"
    cancelled: bool = False
    """Set by the wire when nobody waits for the outcome any more."""
    caller: str = ""
    """Who calls, as far as the wire knows."""
    is_gone: Callable[[], bool] | None = None
    """Tells whether the caller has left, on a wire that only knows when it looks."""


Outcome: TypeAlias = Reply[Any] | NeedsInput
Handler: TypeAlias = Callable[[Call], Coroutine[Any, Any, Outcome]]


def pipeline(
    tools: Mapping[str, Tool],
    contract: Contract,
    run: Runner,
    reply_to: Callable[[Tool, Any], Reply[Any]] = reply_to,
    *,
    most: int,
) -> Handler:
    """The path of a call to one of *tools*, of which *most* are let in at a time."""
    # A set, because threads too come this way and its operations are whole ones.
    running: set[Call] = set()

    async def answer(call: Call) -> Outcome:
        tool = tools.get(call.name)
        if tool is None:
            return _unknown(call.name, tools)
        if len(running) >= most:
            return _busy(most)
        running.add(call)
        try:
            kwargs = tool.arguments.decode(call.arguments)
            signature = tool.signature
            if signature.context is not None:
                kwargs[signature.context] = Context(call)
            if signature.questions:
                kwargs |= await _ask(tool, call)
            value = run(tool, kwargs)
            if isinstance(value, CoroutineType):
                value = await value
            return reply_to(tool, value)
        except NeedsInput as question:
            return question
        # The one place where a tool's failure, whatever it is, becomes a reply.
        except BaseException as exc:
            # What it left running, such as a thread that takes too long, may look and stop.
            call.cancelled = True
            if _stops_more_than_the_call(exc):
                raise
            return _failed(call, exc, contract)
        finally:
            running.discard(call)

    return answer


def _busy(most: int) -> Reply[Any]:
    return failure(
        f"Too many calls in flight, more than {most}",
        code="UNAVAILABLE",
        retryable=True,
        hint="try again in a moment",
    )


async def _ask(tool: Tool, call: Call) -> dict[str, Any]:
    from .questions import ask_all

    return await ask_all(tool, call.peer)


def without_loop(stepped: Coroutine[Any, Any, T]) -> T:
    """Step a path by hand, where its runner never waits."""
    try:
        stepped.send(None)
    except StopIteration as stop:
        result: T = stop.value
        return result
    raise RuntimeError("the call waited, and there is no loop to wait on")


def settled(outcome: Outcome) -> Reply[Any]:
    """The reply, on a wire where nobody can be asked."""
    if isinstance(outcome, Reply):
        return outcome
    asked = [{"method": each.method, "params": each.params} for each in outcome.questions.values()]
    hint = "it asks the user, who can be asked at a terminal or by an MCP client that can ask"
    return failure(str(outcome), code=INPUT_REQUIRED, details={"questions": asked}, hint=hint)


def refuse_arguments(exc: InvalidArguments) -> Reply[Any]:
    """The reply to arguments that do not fit."""
    details = {"problems": msgspec.to_builtins(exc.problems)}
    return failure(f"Invalid arguments: {exc}", code=INVALID_ARGUMENTS, details=details)


def _unknown(name: str, tools: Mapping[str, Tool]) -> Reply[Any]:
    found = near(name, tools, most=3)
    hint = f"did you mean {' or '.join(map(repr, found))}?" if found else None
    return failure(f"Function not found: {name}", code=TOOL_NOT_FOUND, hint=hint)


def _stops_more_than_the_call(exc: BaseException) -> bool:
    """Not so sys.exit(), nor what a library in another language throws, which no Exception is."""
    # Not of asyncio itself, which another thread may be half way through importing.
    exceptions = sys.modules.get("asyncio.exceptions")
    if isinstance(exc, getattr(exceptions, "CancelledError", ())):
        return True
    return isinstance(exc, KeyboardInterrupt | GeneratorExit)


def _failed(call: Call, exc: BaseException, contract: Contract) -> Reply[Any]:
    """Only what is meant for the caller reaches the caller; the rest goes to the log."""
    try:
        told = _told(call, exc)
    # What an author's error says of itself is the author's code, and may fail too.
    except Exception as worse:  # noqa: BLE001 -- the same place
        told, exc = None, worse
    return told or _masked(call, exc, contract)


def _told(call: Call, exc: BaseException) -> Reply[Any] | None:
    match exc:
        case ToolError():
            return Reply(error=checked_error(Error.of(exc), call.name))
        case InvalidArguments():
            return refuse_arguments(exc)
        case InvalidJson():
            return failure("Invalid JSON body", code=INVALID_JSON, hint=str(exc))
        case InvalidOutput():
            return _unsendable(call, exc)
        case _:
            return None


def _unsendable(call: Call, exc: InvalidOutput) -> Reply[Any]:
    reference = os.urandom(6).hex()
    # Where it was found out tells nothing; what the author's own code raised does.
    _log(call, f"gave back what cannot be sent, reference {reference}: {exc}", exc.__cause__)
    return failure(
        f"Invalid output: {exc} (reference {reference})",
        code=INVALID_OUTPUT,
        details={"reference": reference},
    )


def _masked(call: Call, exc: BaseException, contract: Contract) -> Reply[Any]:
    reference = os.urandom(6).hex()
    _log(call, f"failed, reference {reference}", exc)
    return failure(
        f"{contract.masked} (reference {reference})",
        code=TOOL_EXECUTION_ERROR,
        details={"reference": reference},
    )


def _log(call: Call, what: str, exc: BaseException | None) -> None:
    import logging

    logging.getLogger("answerback").error("tool %r %s", call.name, what, exc_info=exc)
