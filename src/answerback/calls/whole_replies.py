"""The resource through which a client reads a whole reply of which it got only a part.

It is not listed: the links in replies name it.
"""

from __future__ import annotations

import msgspec

from ..core.authentication import owner_of
from ..core.content import Embedded
from ..errors import NotFound, ToolError
from ..fitting.ranges import part_of
from ..fitting.wholes import PREFIX, range_uri
from ..registry.declarations import Registry, adopt, is_hidden
from ..tools.context import CURRENT, Context, current_runtime
from ..tools.resource import Resource
from ..tools.tool import Tool
from .call import Call
from .runtime import Runtime


class WholeResource(Resource):
    """The resource of all whole replies that are kept for the callers of one app."""

    is_listed = False

    def arguments_for(self, uri: str) -> bytes | None:
        # The query stays encoded, because `part_of` decodes it.
        if not uri.startswith(PREFIX):
            return None
        id, _, query = uri.removeprefix(PREFIX).partition("?")
        return msgspec.json.encode({"id": id, "query": query})


def whole_resource(registry: Registry) -> Resource:
    """Return the resource of the app's whole replies, behind the app's gates."""
    if registry.whole_replies is None:
        uri = PREFIX + "{id}{?query}"
        resource = WholeResource(uri, read_whole, {}, registry.contract)
        adopt(registry, resource)
        registry.whole_replies = resource
    return registry.whole_replies


async def read_whole(ctx: Context, id: str, query: str = "") -> Embedded:
    """Return a whole reply, or a range of it."""
    runtime = current_runtime()
    assert isinstance(runtime, Runtime)
    part = part_of(query)
    whole = await runtime.wholes.find(id, owner_of(ctx.user))
    tool = None if whole is None else runtime.registry.tools.get(whole.tool)
    if whole is None or tool is None or is_hidden(tool, ctx.request):
        raise NotFound(
            f"Resource not found: {PREFIX}{id}",
            hint="a whole reply is kept for a limited time; call the tool again to get a new one",
        )
    if tool.gates is not None:
        await _pass_gates(tool, runtime)
    found = await runtime.wholes.read(whole, part)
    return Embedded(range_uri(PREFIX + id, part), text=found.text, mime=found.mime)


async def _pass_gates(tool: Tool, runtime: Runtime) -> None:
    """Pass the tool's gates that take only `ctx`; raises ToolError.

    Those that take the tool's arguments were passed when it was called.
    """
    reading = CURRENT.get()
    assert isinstance(reading, Call)
    call = msgspec.structs.replace(reading, name=tool.name, arguments=b"{}", tool=tool)
    refused = await runtime.pass_gates(call)
    if refused is not None and (error := refused.error) is not None:
        raise ToolError(error.message, error.code, error.details, hint=error.hint)
