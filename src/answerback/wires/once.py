"""One call in a process that is there for nothing else, so has no loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..call import Call, settled, without_loop

if TYPE_CHECKING:
    from ..app import App
    from ..reply import Reply


def call_once(app: App, call: Call) -> Reply[Any]:
    """Only an async tool brings asyncio in: importing it costs more than the call."""
    tool = app.tools.get(call.name)
    outcome = app.handle_in_place(call)
    if tool is None or not tool.is_async:
        return settled(without_loop(outcome))
    import asyncio

    return settled(asyncio.run(outcome))
