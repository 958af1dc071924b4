"""One call in a process that serves nothing else, without an event loop."""

from __future__ import annotations

from typing import Any

from ..calls.call import Call, reply_or_refusal
from ..calls.runners import run_without_loop
from ..calls.runtime import runtime_for_one_call
from ..core.reply import Reply
from ..registry.declarations import Registry


def call_once(registry: Registry, call: Call) -> Reply[Any]:
    """Call a tool and wait for its reply."""
    runtime = runtime_for_one_call(registry)
    return reply_or_refusal(run_without_loop(runtime.handlers.tools(call)))
