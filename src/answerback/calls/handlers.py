"""The ways through an App: for its tools, its resources, its prompts and its completions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from .pipeline import Handler, pipeline
from .runners import Runner

if TYPE_CHECKING:
    from ..app import App
    from ..records import Records
    from ..reply import Reply
    from ..tools.tool import Tool


class Paths(msgspec.Struct, frozen=True):
    """They differ in what they look up and in what they make of what comes back."""

    tools: Handler
    resources: Handler
    prompts: Handler
    completions: Handler


def paths(app: App, run: Runner) -> Paths:
    contract, most = app.contract, app.limits.calls
    ways = Paths(
        tools=pipeline(app.tools, contract, run, most=most),
        resources=pipeline(app.resources, contract, run, most=most),
        prompts=pipeline(app.prompts, contract, run, _prompt_reply, most=most),
        completions=pipeline(app.completions, contract, run, most=most),
    )
    return ways if app.records is None else _recorded(ways, app.records)


def _recorded(ways: Paths, records: Records) -> Paths:
    return Paths(
        tools=records.recorded(ways.tools, "tool"),
        resources=records.recorded(ways.resources, "resource"),
        prompts=records.recorded(ways.prompts, "prompt"),
        completions=records.recorded(ways.completions, "completion"),
    )


def _prompt_reply(tool: Tool, value: Any) -> Reply[Any]:
    # Only an app whose prompts are used pays for loading what they need.
    from .prompt_reply import prompt_reply

    return prompt_reply(tool, value)
