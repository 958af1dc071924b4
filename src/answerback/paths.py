"""The ways through an App: for its tools, its resources, its prompts and its completions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from .call import Handler, pipeline
from .runners import Runner

if TYPE_CHECKING:
    from .app import App
    from .reply import Reply
    from .tool import Tool


class Paths(msgspec.Struct, frozen=True):
    """They differ in what they look up and in what they make of what comes back."""

    tools: Handler
    resources: Handler
    prompts: Handler
    completions: Handler


def paths(app: App, run: Runner) -> Paths:
    return Paths(
        tools=pipeline(app.tools, app.contract, run),
        resources=pipeline(app.resources, app.contract, run),
        prompts=pipeline(app.prompts, app.contract, run, _prompt_reply),
        completions=pipeline(app.completions, app.contract, run),
    )


def _prompt_reply(tool: Tool, value: Any) -> Reply[Any]:
    # Only an app whose prompts are used pays for loading what they need.
    from .prompt import prompt_reply

    return prompt_reply(tool, value)
