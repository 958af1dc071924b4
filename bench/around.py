"""The cost of middleware that passes a call on, and of an observer, for an inline tool."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from answerback import App, Invocation, Next
from answerback.calls.call import Call

from .report import Figure

CALLS = 5_000
ROUNDS = 7
ARGUMENTS = b'{"x": 7, "y": 3}'


def measure() -> list[Figure]:
    apps = {
        "none": _app(),
        "middleware": _app(middleware=[_pass_on]),
        "observer": _app(observers=[lambda seen: None]),
    }
    best = dict.fromkeys(apps, 1.0)
    for _ in range(ROUNDS):
        for name, app in apps.items():
            best[name] = min(best[name], asyncio.run(_seconds(app)))
    plain = best["none"]
    beside = f"a call without takes {plain * 1e6:.1f} µs"
    return [
        Figure("a passed middleware, in µs", (best["middleware"] - plain) * 1e6, 5, True, beside),
        Figure("an observer, in µs", (best["observer"] - plain) * 1e6, 5, True, beside),
    ]


async def _pass_on(call: Invocation, next: Next) -> Any:
    return await next(call)


def _app(**options: Any) -> App:
    app = App("bench", **options)

    @app.tool(inline=True)
    def add(x: int, y: int) -> int:
        return x + y

    return app


async def _seconds(app: App) -> float:
    """The CPU time of one call."""
    handle = app.handlers.tools
    started = time.process_time()
    for _ in range(CALLS):
        await handle(Call("add", ARGUMENTS))
    return (time.process_time() - started) / CALLS
