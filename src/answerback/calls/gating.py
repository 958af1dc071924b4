"""Gates, visibility and questions to the user: everything a call passes before its function runs.

Prompt replies are made here too: apps with neither gates nor prompts do not load this module.
Gates that take only `ctx` run before the arguments are decoded, other gates afterwards.
A gate lets the call pass by returning None or True. Anything else refuses it: a raised or
returned error, False, any other value, an exception, or a timeout.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Mapping, Sequence
from time import monotonic
from types import CoroutineType
from typing import Any, NoReturn

import msgspec

from ..core.authentication import Challenge
from ..core.author_errors import did_you_mean, similar_names
from ..core.content import Text
from ..core.peer import NeedsInput, Peer, Question
from ..core.reply import Error, Reply, failure
from ..dialects.common import refusal_meta
from ..errors import CODES, TOOL_NOT_FOUND, UNKNOWN_ERROR, Forbidden, ToolError
from ..registry.declarations import is_filtered
from ..tools.elicitation import Declined, Form
from ..tools.prompt import messages_of
from ..tools.requires import Gate, Gates, Refusal
from ..tools.signature import Ask, marker_of
from ..tools.tool import Tool
from .call import Call, Handler, Outcome
from .context import SENT, Context, ContextOfApp
from .failures import failed_reply, must_propagate
from .reply_check import checked_content, checked_error, reply_to
from .runners import ArgumentsDecoder, Runner, timed_out


def prompt_reply(tool: Tool, value: object) -> Reply[Any]:
    """Return a reply with one block per message, and the messages' roles in its meta."""
    if isinstance(value, Reply):
        return value
    messages = messages_of(value)
    blocks = tuple(
        Text(message.content) if isinstance(message.content, str) else message.content
        for message in messages
    )
    content = checked_content(blocks)
    return Reply(content=content, meta={"roles": [message.role for message in messages]})


async def ask_all(tool: Tool, peer: Peer, kept: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the answers by parameter name; they are stored in *kept* as the client sent them.

    Raises NeedsInput with all questions at once if the answers will arrive with a later call, and
    Declined if the user declines a required parameter's question.
    """
    answers: dict[str, Any] = {}
    open_questions: dict[str, Question] = {}
    for parameter in tool.signature.questions:
        marker = marker_of(Ask, parameter.annotation)
        assert marker is not None
        form = Form(marker.message, parameter.annotation, parameter.name, key=parameter.name)
        try:
            answers[parameter.target] = await form.ask(peer, kept)
        except NeedsInput as later:
            open_questions |= later.questions
        except Declined:
            if parameter.required:
                raise
            if parameter.default_factory is not None:
                answers[parameter.target] = parameter.default_factory()
    if open_questions:
        raise NeedsInput(open_questions)
    return answers


_LOGIN = ("LOGIN_REQUIRED", "UNAUTHENTICATED")


class RefusedByGate(Exception):
    """A gate refused the call, and *reply* is sent; None hides the tool."""

    def __init__(self, reply: Reply[Any] | None) -> None:
        super().__init__("refused by a gate")
        self.reply = reply


class GateContext(Context):
    """A gate's Context, which cannot ask questions: no stream may begin before the gate decides."""

    __slots__ = ()

    async def elicit(self, *_: object, **__: object) -> NoReturn:
        raise RuntimeError("a gate cannot ask the client; ask in the tool itself")

    sample = roots = together = elicit

    def progress(self, *_: object, **__: object) -> Awaitable[None]:
        """Do nothing: a gate sends nothing to the client."""
        return SENT

    log = progress


class GateContextOfApp(GateContext, ContextOfApp):
    """The Context for a gate of an app that includes the tool's app, with that app's state."""

    __slots__ = ()


async def decode_behind_gates(
    call: Call, tool: Tool, run: Runner, decode: ArgumentsDecoder
) -> dict[str, Any]:
    """Return the decoded arguments of a call once it has passed its tool's gates."""
    gates = _gates_of(tool)
    ctx = GateContext(call)
    if gates.hiding and gates.hide_from(ctx.user):
        raise RefusedByGate(None)
    for gate in gates.early:
        await _pass(gate, {}, ctx, call, run)
    decoded = await decode(tool, call.arguments)
    for gate in gates.late:
        await _pass(gate, gate.arguments(tool, decoded), ctx, call, run)
    call.peer.release_stream()
    return decoded


def _gates_of(tool: Tool) -> Gates:
    assert tool.gates is not None
    return tool.gates


async def pass_early(call: Call, run: Runner, masked: str) -> Reply[Any] | None:
    """Pass the gates of `call.tool` that take only `ctx`; return a refusal, if any."""
    assert call.tool is not None
    ctx = GateContext(call)
    try:
        for gate in _gates_of(call.tool).early:
            await _pass(gate, {}, ctx, call, run)
    except RefusedByGate as refused:
        return refused.reply
    except BaseException as exc:
        if must_propagate(exc, call.wire):
            raise
        return failed_reply(exc, call, masked)
    return None


def unknown_tool(call: Call, tools: Mapping[str, Tool]) -> Reply[Any]:
    """Return the refusal for a tool that does not exist, or that the caller may not see."""
    call.tool = None
    visible = tools
    if any(map(_may_be_hidden, tools.values())):
        user, request = Context(call).user, Context(call).request
        visible = {
            name: tool
            for name, tool in tools.items()
            if (tool.gates is None or not tool.gates.hide_from(user))
            and not is_filtered(tool, request)
        }
    hint = did_you_mean(similar_names(call.name, visible, limit=3))
    return failure(f"Function not found: {call.name}", code=TOOL_NOT_FOUND, hint=hint or None)


def _may_be_hidden(tool: Tool) -> bool:
    has_gates = tool.gates is not None and bool(tool.gates.hiding)
    return has_gates or any(app.visible for app in tool.path)


def only_visible(handle: Handler, tools: Mapping[str, Tool]) -> Handler:
    """Return *handle*, wrapped so that entries hidden by `@app.visible` do not exist."""

    async def handle_if_visible(call: Call) -> Outcome:
        tool = tools.get(call.name)
        # A task no longer has a request; it was checked when it was created.
        if tool is None or call.stage == "run" or not is_filtered(tool, Context(call).request):
            return await handle(call)
        return unknown_tool(call, tools)

    return handle_if_visible


async def _pass(
    gate: Gate, arguments: dict[str, Any], ctx: GateContext, call: Call, run: Runner
) -> None:
    """Run one gate; raises RefusedByGate."""
    if gate.app is not None:
        ctx = GateContextOfApp(call, gate.app)
    try:
        if gate.inline:
            value = gate.fn(ctx, **arguments)
        else:
            arguments[gate.context] = ctx
            value = await _run(gate, arguments, call, run)
    except ToolError as exc:
        value = exc
    except NeedsInput:
        raise RuntimeError(f"gate {gate.name!r} asked the client; ask in the tool itself") from None
    except Exception as exc:
        exc.add_note(f"raised by gate {gate.name!r}, so the call is refused")
        raise
    if value is not None and value is not True:
        raise RefusedByGate(_refusal(value, gate, call))


async def _run(gate: Gate, arguments: dict[str, Any], call: Call, run: Runner) -> object:
    if gate.is_async and "asyncio" not in sys.modules:
        # As with middleware, nothing can wait without asyncio, so no loop is needed.
        return await gate.fn(**arguments)
    began = monotonic()
    value = run(gate, arguments, call)
    if isinstance(value, CoroutineType):
        value = await value
    # The gate may have ignored its cancellation and let the call pass.
    if gate.timeout is not None and monotonic() - began >= gate.timeout:
        raise timed_out(gate)
    return value


def _refusal(value: object, gate: Gate, call: Call) -> Reply[Any]:
    """Return the refusal for a gate's result or exception; raises TypeError if it is invalid."""
    tool = call.tool
    assert tool is not None
    if value is False:
        value = Forbidden("This is not allowed")
    if isinstance(value, ToolError):
        reply = Reply[Any](error=checked_error(Error.of(value), tool.owner))
    elif isinstance(value, Reply) and value.error is not None:
        reply = reply_to(tool, value)
    else:
        # The value may be secret.
        raise TypeError(
            f"gate {gate.name!r} returned {type(value).__name__}; "
            "return None to let the call pass, or raise an error to refuse it"
        )
    error = reply.error
    assert error is not None
    if error.code == UNKNOWN_ERROR and error.kind is None:
        error = msgspec.structs.replace(error, code=Forbidden.kind)
    if error.code in CODES:
        error = msgspec.structs.replace(error, kind=None)
    scopes = _gates_of(tool).scopes
    if isinstance(value, Refusal):
        call.challenge = challenge_for(error, value.scopes or scopes)
        meta = refusal_meta(error, value.url, value.feature)
    else:
        call.challenge = challenge_for(error, scopes)
        meta = refusal_meta(error, None, None)
    return msgspec.structs.replace(reply, error=error, meta=meta | reply.meta)


def challenge_for(error: Error, scopes: Sequence[str] = ()) -> Challenge | None:
    """Return the challenge for an error that logging in can resolve; None for other errors."""
    if error.code in _LOGIN:
        return Challenge(description=error.message, scopes=tuple(scopes))
    if error.code == "SCOPE_REQUIRED":
        return Challenge(
            status=403,
            error="insufficient_scope",
            description=error.message,
            scopes=tuple(scopes),
        )
    return None
