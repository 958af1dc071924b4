"""The cost of limits, a breaker and retries that let a call pass, for an inline tool."""

from __future__ import annotations

from typing import Any

from answerback.resilience import Breaker, Limit, Retry

from .added_cost import added_cost, app_with
from .report import Figure


def measure() -> list[Figure]:
    parts: dict[str, Any] = {
        "retry": Retry(),
        "breaker": Breaker("bench"),
        "limit": Limit("1000000000/s", per="user", concurrent=4),
    }
    apps = {
        "a passed Retry": app_with(retry=parts["retry"]),
        "a passed Breaker": app_with(breaker=parts["breaker"]),
        "a passed Limit of each user": app_with(limit=parts["limit"]),
        "Limit, Breaker and Retry together, passed": app_with(**parts),
    }
    return added_cost(apps, limit=15)
