"""What an argument of a prompt or of a resource's URI could be, given its beginning."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

import msgspec

from ..calls.pipeline import Call, settled
from ..tools.tool import Tool
from .messages import INTERNAL_ERROR, INVALID_PARAMS, RpcError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..app import App
    from ..calls.handlers import Paths
    from ..contract import Contract
    from .mcp_peer import Exchange
    from .params import Complete

MOST = 100


async def complete(app: App, paths: Paths, asked: Complete, exchange: Exchange) -> dict[str, Any]:
    """The values the author's completion gives, else those the argument's type lists."""
    owner = _owner(app, asked)
    argument = asked.argument.name
    if argument not in {parameter.name for parameter in owner.signature.parameters}:
        raise RpcError(INVALID_PARAMS, f"Unknown argument: {argument}")
    key = completion_key(asked.ref.name or asked.ref.uri or "", argument)
    if key in app.completions:
        values = await _ask_author(app.completions[key], paths, key, asked, exchange)
    else:
        values = [
            each for each in _listed(owner, argument) if each.startswith(asked.argument.value)
        ]
    return {"values": values[:MOST], "total": len(values), "hasMore": len(values) > MOST}


def completion_key(owner: str, argument: str) -> str:
    return f"{argument} of {owner}"


def completion_tool(fn: Callable[..., Any], contract: Contract) -> Tool:
    """The author's function; refused if it asks for what a completion is not given."""
    tool = Tool(fn, {}, contract)
    odd = {parameter.name for parameter in tool.signature.parameters} - {"value", "arguments"}
    if odd:
        raise TypeError(
            f"completion {tool.name!r} takes {sorted(odd)}; "
            "it is given value: str and arguments: dict[str, str]"
        )
    return tool


def _owner(app: App, asked: Complete) -> Tool:
    ref = asked.ref
    found: Tool | None
    if ref.type == "ref/prompt":
        found = app.prompts.get(ref.name or "")
    else:
        found = app.resources.get(ref.uri or "")
    if found is None:
        raise RpcError(INVALID_PARAMS, f"Unknown reference: {ref.name or ref.uri}")
    return found


async def _ask_author(
    tool: Tool, paths: Paths, key: str, asked: Complete, exchange: Exchange
) -> list[str]:
    offered = {"value": asked.argument.value, "arguments": asked.context.arguments}
    wanted = {parameter.name for parameter in tool.signature.parameters}
    arguments = {name: value for name, value in offered.items() if name in wanted}
    call = Call(key, msgspec.json.encode(arguments), exchange, wire="mcp", caller=exchange.caller)
    reply = settled(await paths.completions(call))
    if reply.error is not None:
        raise RpcError(INTERNAL_ERROR, reply.error.message)
    return [str(value) for value in reply.data] if isinstance(reply.data, list) else []


def _listed(owner: Tool, argument: str) -> list[str]:
    annotation = next(
        parameter.annotation
        for parameter in owner.signature.parameters
        if parameter.name == argument
    )
    if get_origin(annotation) is Literal:
        return [str(value) for value in get_args(annotation)]
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return [str(member.value) for member in annotation]
    return ["true", "false"] if annotation is bool else []
