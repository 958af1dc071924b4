"""Shares the limits and breakers of an app with the other processes that use its database."""

from __future__ import annotations

from collections.abc import Mapping

from ..state.shared import SharedState
from .policy import Policy
from .shared_breakers import SharedBreakers
from .shared_limits import SharedLimits


class PolicySharing:
    """The limits and breakers of one app."""

    def __init__(self, shared: SharedState, app: str) -> None:
        self._limits = SharedLimits(shared, app)
        self._breakers = SharedBreakers(shared, app)
        shared.add(self._limits)
        shared.add(self._breakers)

    def share(self, policies: Mapping[str, object]) -> None:
        """Share what is not shared yet; a policy has its tool's name, the same on all hosts."""
        for name, policy in policies.items():
            if not isinstance(policy, Policy):
                continue
            for number, limit in enumerate(policy.limits):
                self._limits.share(limit, f"{name} {number}")
            if policy.breaker is not None:
                self._breakers.share(policy.breaker)
