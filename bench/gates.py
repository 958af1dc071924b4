"""The cost of a gate that lets a call pass, for an inline tool."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from answerback import App, Context
from answerback.authentication import User
from answerback.calls.call import Call
from answerback.gates import login, scope

from .report import Figure

CALLS = 5_000
ROUNDS = 7
ARGUMENTS = b'{"x": 7, "y": 3}'
USER = User(subject="anna", issuer="https://id.example.com", scopes=frozenset({"read", "write"}))
LIMIT = 20


def measure() -> list[Figure]:
    apps = {
        "none": _app(),
        "login": _app(login()),
        "scope": _app(scope("read"), scope("write")),
        "own": _app(_own),
        "arguments": _app(_with_arguments),
    }
    best = dict.fromkeys(apps, 1.0)
    for _ in range(ROUNDS):
        for name, app in apps.items():
            best[name] = min(best[name], asyncio.run(_seconds(app)))
    plain = best["none"]
    beside = f"a call without takes {plain * 1e6:.1f} µs"
    names = {
        "login": "a passed login(), in µs",
        "scope": "two passed scope(), in µs",
        "own": "a passed async gate of the author's, in µs",
        "arguments": "a passed async gate that takes arguments, in µs",
    }
    return [
        Figure(text, (best[name] - plain) * 1e6, LIMIT, True, beside)
        for name, text in names.items()
    ]


async def _own(ctx: Context) -> bool:
    return ctx.user is not None


async def _with_arguments(ctx: Context, x: int) -> bool:
    return x == 7


def _app(*gates: Any) -> App:
    app = App("bench")

    @app.tool(inline=True, requires=list(gates))
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
