"""The one path of a call: find the tool, decode, ask, run, check, reply."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from functools import partial
from time import perf_counter
from types import CoroutineType
from typing import Any

from ..contract import Contract
from ..core.limits import Limits
from ..core.peer import NeedsInput
from ..core.reply import Reply, failure
from ..tools.context import CURRENT, Context, Running
from ..tools.tool import Tool
from ..types.json_text import LARGE
from .call import Call, Handler, Outcome
from .failures import failed_reply, log_fields, must_propagate
from .reply_check import ReplyTo, reply_to
from .runners import ArgumentsDecoder, LargeDecoder, Runner, decode_in_place


def pipeline(
    tools: Mapping[str, Tool],
    contract: Contract,
    run: Runner,
    reply_to: ReplyTo = reply_to,
    *,
    limits: Limits,
    decode_large: LargeDecoder = decode_in_place,
    running_in: Running | None = None,
) -> Handler:
    """Return the path of a call to one of *tools*."""
    # A set, because over stdio several threads run the pipeline; `add` and `discard` are atomic.
    running: set[Call] = set()
    max_calls, max_in_place = limits.calls, min(LARGE, limits.values)
    decode_slowly = partial(_decode_slowly, run, partial(_decode, decode_large, limits.values))
    run_slowly = partial(_run_slowly, run)

    async def handle(call: Call) -> Outcome:
        tool = call.tool = tools.get(call.name)
        if tool is None or len(running) >= max_calls:
            return _refusal(call, tools, max_calls)
        running.add(call)
        call.runtime = running_in
        before, began = CURRENT.set(call), perf_counter()
        try:
            is_slow = len(raw := call.arguments) > max_in_place or tool.has_gates_or_policy
            kwargs = await decode_slowly(call, tool) if is_slow else tool.arguments.decode(raw)
            signature = tool.signature
            if signature.context is not None:
                kwargs[signature.context] = Context(call)
            if signature.questions:
                kwargs |= await _ask_user(tool, call)
            value = (run_slowly if is_slow else run)(tool, kwargs, call)
            if isinstance(value, CoroutineType):
                value = await value
            reply = reply_to(tool, value)
            if reply.encoded is not None:
                call.shape = reply.shape or tool.shape
            if reply.content and tool.has_lines:
                call.shape = call.shape.with_lines()
            return reply if tool.budget is None else await _fitted(reply, call)
        except NeedsInput as question:
            return question
        except BaseException as exc:
            # A thread left running by the call may check this and stop.
            call.cancelled = True
            if must_propagate(exc, call.wire):
                raise
            return _failed(exc, call, tools, contract.masked, began)
        finally:
            running.discard(call)
            CURRENT.reset(before)

    return handle


async def _fitted(reply: Reply[Any], call: Call) -> Reply[Any]:
    """Return the reply within its tool's budget, unless it is stored first, or is not for MCP."""
    if call.wire != "mcp" or call.stage != "whole":
        return reply
    # Imported here, so that tools without a budget do not pay for it.
    from .fitted_reply import fitted_reply

    return await fitted_reply(reply, call)


async def _decode_slowly(
    run: Runner, decode: ArgumentsDecoder, call: Call, tool: Tool
) -> dict[str, Any]:
    """Return the decoded arguments if the tool has gates, or the call may have many values.

    A text with fewer bytes than the value limit cannot exceed that limit.
    """
    if tool.gates is None or call.stage == "run":
        return await decode(tool, call.arguments)
    # Imported here, so that other tools do not pay for it.
    from .gating import decode_behind_gates

    return await decode_behind_gates(call, tool, run, decode)


def _decode(
    decode_large: LargeDecoder, max_values: int, tool: Tool, raw: bytes
) -> Awaitable[dict[str, Any]]:
    decode = decode_large if len(raw) > LARGE else decode_in_place
    return decode(tool, raw, max_values)


def _run_slowly(run: Runner, tool: Tool, kwargs: dict[str, Any], call: Call) -> object:
    """Run a tool that may have a policy; middleware wraps the policy, and runs it itself."""
    if tool.policy is None or tool.middleware or call.stage == "admit":
        return run(tool, kwargs, call)
    return tool.policy.run(run, tool, kwargs, call)


def _failed(
    exc: BaseException, call: Call, tools: Mapping[str, Tool], masked: str, began: float
) -> Reply[Any]:
    """Return the reply to a call that raised *exc*."""
    if call.tool is not None and call.tool.gates is not None:
        from .gating import RefusedByGate, unknown_tool

        if isinstance(exc, RefusedByGate):
            # None hides the tool.
            return exc.reply or unknown_tool(call, tools)
    return failed_reply(exc, call, masked, partial(log_fields, call, began))


async def _ask_user(tool: Tool, call: Call) -> dict[str, Any]:
    # Imported at the first question, so that other tools do not pay for it.
    from .gating import ask_all

    return await ask_all(tool, call.peer, call.kept_answers)


def _refusal(call: Call, tools: Mapping[str, Tool], max_calls: int) -> Reply[Any]:
    """Return the refusal of a call of an unknown tool, or of one call too many."""
    if (tool := call.tool) is not None:
        gates = tool.gates
        # To a caller who may not see it, the tool does not exist.
        if gates is None or not (gates.hiding and gates.hide_from(Context(call).user)):
            return failure(
                f"Too many calls in flight, more than {max_calls}",
                code="UNAVAILABLE",
                retryable=True,
                hint="try again in a moment",
            )
    from .gating import unknown_tool

    return unknown_tool(call, tools)
