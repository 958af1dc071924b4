"""The cost of a gate that lets a call pass, for an inline tool."""

from __future__ import annotations

from answerback import Context
from answerback.gates import login, scope

from .added_cost import added_cost, app_with
from .report import Figure


def measure() -> list[Figure]:
    apps = {
        "a passed login()": app_with(requires=[login()]),
        "two passed scope()": app_with(requires=[scope("read"), scope("write")]),
        "a passed async gate of the author's": app_with(requires=[_own]),
        "a passed async gate that takes arguments": app_with(requires=[_with_arguments]),
    }
    return added_cost(apps, limit=20)


async def _own(ctx: Context) -> bool:
    return ctx.user is not None


async def _with_arguments(ctx: Context, x: int) -> bool:
    return x == 7
