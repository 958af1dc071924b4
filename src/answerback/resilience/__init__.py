"""Retries, circuit breakers and limits: tool options, and decorators for any function."""

from .breaker import Breaker, BreakerStore
from .limit import Limit, LimitStore
from .policy import Clock, Retry

__all__ = ["Breaker", "BreakerStore", "Clock", "Limit", "LimitStore", "Retry"]
