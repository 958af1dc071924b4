"""`completion/complete`: possible values of a prompt's or resource's argument."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from types import NoneType
from typing import Any, Literal, NoReturn, get_args, get_origin

import msgspec

from ..calls.call import Call, reply_or_refusal
from ..calls.runtime import Runtime
from ..core.json_value import JsonObject
from ..core.reply import Reply
from ..dialects.common import REFUSAL
from ..registry.declarations import completion_key
from ..tools.tool import Tool
from ..types.problems import without_metadata
from .jsonrpc import INVALID_PARAMS, Complete, RpcError
from .listing import entry_error, referenced_entry
from .mcp_peer import McpPeer

MAX_VALUES = 100


async def complete(
    runtime: Runtime,
    asked: Complete,
    peer: McpPeer,
    seen: Callable[[Tool], bool] | None,
) -> JsonObject:
    """Return the values of the author's completion, else those listed by the argument's type.

    *seen* says whether the client may see a prompt or resource.
    """
    registry = runtime.registry
    referenced = referenced_entry(registry, asked.ref)
    if referenced is None or not (seen is None or seen(referenced)):
        raise RpcError(INVALID_PARAMS, f"Unknown reference: {asked.ref.target}")
    argument = asked.argument.name
    if argument not in {parameter.name for parameter in referenced.signature.parameters}:
        raise RpcError(INVALID_PARAMS, f"Unknown argument: {argument}")
    key = completion_key(asked.ref.target, argument)
    tool = registry.completions.get(key)
    has_own_gates = tool is not None and bool(tool.settings.requires)
    if referenced.gates is not None:
        # Only the gates that take nothing but `ctx`: the argument values are not known yet.
        call = Call(referenced.name, b"{}", peer, wire="mcp", caller=peer.caller)
        call.tool = referenced
        refused = await runtime.pass_gates(call)
        if refused is not None:
            _raise(refused, runtime, call, peer)
    if referenced.gates is not None and referenced.gates.late and not has_own_gates:
        # Its other gates depend on these values.
        values: list[str] = []
    elif tool is not None:
        values = await _call_completion(tool, runtime, key, asked, peer)
    else:
        values = [
            each
            for each in _values_of_type(referenced, argument)
            if each.startswith(asked.argument.value)
        ]
    return {
        "values": values[:MAX_VALUES],
        "total": len(values),
        "hasMore": len(values) > MAX_VALUES,
    }


def _raise(reply: Reply[Any], runtime: Runtime, call: Call, peer: McpPeer) -> NoReturn:
    assert reply.error is not None
    if REFUSAL in reply.meta:
        from .refusals import refuse

        refuse("completion", call, peer, reply, runtime)
    raise entry_error(reply.error)


async def _call_completion(
    tool: Tool, runtime: Runtime, key: str, asked: Complete, peer: McpPeer
) -> list[str]:
    offered = {"value": asked.argument.value, "arguments": asked.context.arguments}
    wanted = {parameter.name for parameter in tool.signature.parameters}
    arguments = {name: value for name, value in offered.items() if name in wanted}
    call = Call(key, msgspec.json.encode(arguments), peer, wire="mcp", caller=peer.caller)
    reply = reply_or_refusal(await runtime.handlers.completions(call))
    if reply.error is not None:
        _raise(reply, runtime, call, peer)
    return [str(value) for value in reply.data] if isinstance(reply.data, list) else []


def _values_of_type(referenced: Tool, argument: str) -> list[str]:
    annotation = next(
        without_metadata(parameter.annotation)
        for parameter in referenced.signature.parameters
        if parameter.name == argument
    )
    # The type inside `T | None`.
    if NoneType in (given := get_args(annotation)) and len(given) == 2:
        annotation = without_metadata(given[0] if given[1] is NoneType else given[1])
    if get_origin(annotation) is Literal:
        return [str(value) for value in get_args(annotation)]
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return [str(member.value) for member in annotation]
    return ["true", "false"] if annotation is bool else []
