"""Shares the limits and breakers of an app with the other processes that use its database."""

from __future__ import annotations

from collections.abc import Mapping

from ..state.shared import SharedState
from .policy import Policy
from .shared_breakers import SharedBreakers
from .shared_limits import SharedLimits


def share_policies(policies: Mapping[str, object], shared: SharedState, app: str) -> None:
    """Share what the policies hold; each has the name of its tool, the same on all hosts."""
    limits, breakers = SharedLimits(shared, app), SharedBreakers(shared, app)
    for name, policy in policies.items():
        if not isinstance(policy, Policy):
            continue
        for number, limit in enumerate(policy.limits):
            limits.share(limit, f"{name} {number}")
        if policy.breaker is not None:
            breakers.share(policy.breaker)
    shared.parts += [part for part in (limits, breakers) if part.is_used]
