"""The resource through which a client reads a whole reply of which it got only a part.

It is not listed: the links in replies name it.
"""

from __future__ import annotations

import msgspec

from ..core.authentication import owner_of
from ..core.content import Embedded
from ..errors import NotFound
from ..fitting.ranges import part_of
from ..fitting.whole_store import KeptReply
from ..fitting.wholes import PREFIX, range_uri
from ..registry.declarations import Registry, adopt
from ..tools.context import Context, current_runtime
from ..tools.resource import Resource
from .runtime import Runtime


class WholeResource(Resource):
    """The resource of all whole replies that are kept for the callers of one app."""

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
    if whole is None or not _may_read(whole, ctx.user, runtime):
        raise NotFound(
            f"Resource not found: {PREFIX}{id}",
            hint="a whole reply is kept for a limited time; call the tool again to get a new one",
        )
    found = await runtime.wholes.read(whole, part)
    return Embedded(range_uri(PREFIX + id, part), text=found.text, mime=found.mime)


def _may_read(whole: KeptReply, user: object, runtime: Runtime) -> bool:
    """Return whether the user may still see the tool; raises the refusal of one of its gates.

    Gates that need more than the user were passed when the tool was called.
    """
    tool = runtime.registry.tools.get(whole.tool)
    if tool is None or tool.gates is None:
        return tool is not None
    if tool.gates.hide_from(user):
        return False
    for gate in tool.gates.by_token:
        if (refusal := gate.refuse_user(user)) is not None:
            raise refusal
    return True
