"""The cost of a `Context` and of dependencies in a call, and of a page of a long list."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Annotated

from answerback import App, Context, Depends, connect
from answerback.calls.call import Call, Handler
from answerback.calls.runners import run_without_loop
from answerback.calls.runtime import runtime_for_one_call
from answerback.registry.declarations import registry_of

from .report import Figure

CALLS = 2_000
ROUNDS = 25


def get_number() -> int:
    return 5


def open_number() -> Iterator[int]:
    yield 5


def make_app() -> App:
    app = App("features")

    @app.tool
    def bare(x: int) -> int:
        return x

    @app.tool
    def context(x: int, ctx: Context) -> int:
        return x

    @app.tool
    def plain(x: int, number: Annotated[int, Depends(get_number)]) -> int:
        return x

    @app.tool
    def generator(x: int, number: Annotated[int, Depends(open_number)]) -> int:
        return x

    return app


def measure() -> list[Figure]:
    app = make_app()
    handle = runtime_for_one_call(registry_of(app)).handlers.tools
    best = dict.fromkeys(app.tools, float("inf"))
    # In turn, so that a busy moment of the machine does not fall on one of them alone.
    for _ in range(ROUNDS):
        for name in best:
            best[name] = min(best[name], _seconds(handle, name))
    beside = f"beside a call of {best['bare'] * 1e6:.1f} µs"

    def cost(what: str, name: str, limit: float) -> Figure:
        return Figure(what, (best[name] - best["bare"]) * 1e6, limit, True, beside)

    return [
        cost("a Context, in µs", "context", 1),
        cost("a plain dependency, in µs", "plain", 5),
        cost("a generator as dependency, in µs", "generator", 15),
        _pages(),
    ]


def _pages() -> Figure:
    app = App("pages", budget=2_000)

    @app.tool
    def rows(n: int) -> Iterator[dict[str, int]]:
        yield from ({"id": number} for number in range(n))

    async def cost(n: int) -> float:
        """The least CPU time of a page after the first."""
        async with connect(app) as server:
            reply = await server.call("rows", n=n)
            best = float("inf")
            for _ in range(5):
                started = time.process_time()
                reply = await server.call("rows", n=n, cursor=reply.data["next"])
                best = min(best, time.process_time() - started)
            return best

    few, many = (min(asyncio.run(cost(n)) for _ in range(3)) for n in (1_000, 100_000))
    measured = f"{many * 1e3:.2f} against {few * 1e3:.2f} ms"
    what = "the next page of 100,000 items, CPU, of that of 1,000"
    return Figure(what, many / few, 1.5, True, measured)


def _seconds(handle: Handler, name: str) -> float:
    """The CPU time of one call."""
    started = time.process_time()
    for _ in range(CALLS):
        run_without_loop(handle(Call(name, b'{"x":1}')))
    return (time.process_time() - started) / CALLS
