"""The time that an option adds to the call of an inline tool."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any

from answerback import App
from answerback.calls.call import Call
from answerback.calls.runtime import runtime_on_loop
from answerback.core.authentication import User
from answerback.registry.declarations import registry_of

from .report import Figure

CALLS = 5_000
ROUNDS = 7
ARGUMENTS = b'{"x": 7, "y": 3}'
USER = User(subject="anna", issuer="https://id.example.com", scopes=frozenset({"read", "write"}))


def added_cost(apps: Mapping[str, App], limit: float) -> list[Figure]:
    """One row for each app, by its name, in µs above the call of an app without the option."""
    all_apps = {"": app_with(), **apps}
    best = dict.fromkeys(all_apps, 1.0)
    for _ in range(ROUNDS):
        for name, app in all_apps.items():
            best[name] = min(best[name], asyncio.run(_seconds(app)))
    plain = best.pop("")
    beside = f"a call without takes {plain * 1e6:.1f} µs"
    return [
        Figure(f"{name}, in µs", (seconds - plain) * 1e6, limit, True, beside)
        for name, seconds in best.items()
    ]


def app_with(of_app: Mapping[str, Any] | None = None, **of_tool: Any) -> App:
    """An app with one tool, with options of the app and of the tool."""
    app = App("bench", **(of_app or {}))

    @app.tool(inline=True, **of_tool)
    def add(x: int, y: int) -> int:
        return x + y

    return app


async def _seconds(app: App) -> float:
    """The CPU time of one call."""
    handle = runtime_on_loop(registry_of(app)).handlers.tools
    started = time.process_time()
    for _ in range(CALLS):
        await handle(Call("add", ARGUMENTS, user=USER))
    return (time.process_time() - started) / CALLS
