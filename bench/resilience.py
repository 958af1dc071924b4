"""The cost of limits, a breaker and retries that let a call pass, for an inline tool."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from answerback import App
from answerback.authentication import User
from answerback.calls.call import Call
from answerback.resilience import Breaker, Limit, Retry

from .report import Figure

CALLS = 5_000
ROUNDS = 7
ARGUMENTS = b'{"x": 7, "y": 3}'
USER = User(subject="anna", issuer="https://id.example.com")
LIMIT = 15


def measure() -> list[Figure]:
    parts: dict[str, Any] = {
        "retry": Retry(),
        "breaker": Breaker("bench"),
        "limit": Limit("1000000000/s", per="user", concurrent=4),
    }
    apps = {
        "none": _app(),
        **{name: _app(**{name: part}) for name, part in parts.items()},
        "all": _app(**parts),
    }
    best = dict.fromkeys(apps, 1.0)
    for _ in range(ROUNDS):
        for name, app in apps.items():
            best[name] = min(best[name], asyncio.run(_seconds(app)))
    plain = best["none"]
    beside = f"a call without takes {plain * 1e6:.1f} µs"
    names = {
        "retry": "a passed Retry, in µs",
        "breaker": "a passed Breaker, in µs",
        "limit": "a passed Limit of each user, in µs",
        "all": "Limit, Breaker and Retry together, passed, in µs",
    }
    return [
        Figure(text, (best[name] - plain) * 1e6, LIMIT, True, beside)
        for name, text in names.items()
    ]


def _app(**options: Any) -> App:
    app = App("bench")

    @app.tool(inline=True, **options)
    def add(x: int, y: int) -> int:
        return x + y

    return app


async def _seconds(app: App) -> float:
    """The CPU time of one call."""
    handle = app.handlers.tools
    started = time.process_time()
    for _ in range(CALLS):
        await handle(Call("add", ARGUMENTS, user=USER))
    return (time.process_time() - started) / CALLS
