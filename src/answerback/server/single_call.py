"""One call in a process that serves nothing else, without an event loop."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from ..calls.call import Call, Handler, reply_or_refusal
from ..calls.runners import run_without_loop
from ..calls.runtime import runtime_for_one_call
from ..core.reply import Reply
from ..registry.declarations import Registry

HandlerName: TypeAlias = Literal["tools", "resources", "prompts"]


def call_once(registry: Registry, call: Call, handler: HandlerName = "tools") -> Reply[Any]:
    """Call a tool, a resource or a prompt, and wait for its reply."""
    runtime = runtime_for_one_call(registry)
    handle: Handler = getattr(runtime.handlers, handler)
    return reply_or_refusal(run_without_loop(handle(call)))
