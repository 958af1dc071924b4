"""Calls in the same process: the in-memory wire, and single calls without an event loop."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, Literal, NoReturn, TypeAlias

import msgspec

from ..calls.call import Call, Handler, reply_or_refusal
from ..calls.runners import run_without_loop
from ..calls.runtime import Runtime, runtime_for_one_call
from ..core.author_errors import Unawaited
from ..core.peer import NO_PEER, Peer
from ..core.reply import Reply
from ..dialects.reply_text import content_with_text
from ..registry.declarations import Registry

HandlerName: TypeAlias = Literal["tools", "resources", "prompts"]


def call_once(registry: Registry, call: Call, handler: HandlerName = "tools") -> Reply[Any]:
    """Call a tool, a resource or a prompt, and wait for its reply."""
    runtime = runtime_for_one_call(registry)
    handle: Handler = getattr(runtime.handlers, handler)
    return reply_or_refusal(run_without_loop(handle(call)))


async def call(
    runtime: Runtime, name: str, arguments: bytes, peer: Peer = NO_PEER, user: object = None
) -> Reply[Any]:
    """Return the reply, with the text that the app's contract adds."""
    contract = runtime.registry.contract
    call = Call(name, arguments, peer, user=user)
    reply = reply_or_refusal(await runtime.handlers.tools(call))
    return msgspec.structs.replace(
        reply,
        content=content_with_text(reply, call.shape, contract),
        shape=call.shape,
        contract=contract,
    )


class UnawaitedCall(Unawaited[Reply[Any]]):
    """A call's coroutine; using it as a reply raises an error that says to await it."""

    __slots__ = ()

    def __init__(self, coroutine: Coroutine[Any, Any, Reply[Any]]) -> None:
        super().__init__(coroutine, "the call is not awaited; write await app.call(...)")

    def __getattr__(self, name: str) -> NoReturn:
        text = f"a call that is not awaited has no attribute {name!r}"
        # asyncio looks up its own members.
        known = name in Reply.__struct_fields__ or name == "ok"
        raise AttributeError(f"{text}; write await app.call(...)" if known else text)
