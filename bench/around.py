"""The cost of middleware that passes a call on, and of an observer, for an inline tool."""

from __future__ import annotations

from typing import Any

from answerback import Invocation, Next

from .added_cost import added_cost, app_with
from .report import Figure


def measure() -> list[Figure]:
    apps = {
        "a passed middleware": app_with({"middleware": [_pass_on]}),
        "an observer": app_with({"observers": [lambda seen: None]}),
    }
    return added_cost(apps, limit=5)


async def _pass_on(call: Invocation, next: Next) -> Any:
    return await next(call)
