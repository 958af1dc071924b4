"""One call in a process that is there for nothing else, so has no loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..calls.handlers import paths
from ..calls.pipeline import Call, settled, without_loop
from ..calls.runners import in_place, on_a_loop_of_its_own

if TYPE_CHECKING:
    from ..app import App
    from ..reply import Reply


def call_once(app: App, call: Call) -> Reply[Any]:
    ways = paths(app, in_place(on_a_loop_of_its_own))
    return settled(without_loop(ways.tools(call)))
