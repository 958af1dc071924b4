"""Ends streams when their client's token expires."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from ...core.authentication import User
from .request import HttpRequest


def expiry_of(request: HttpRequest) -> float | None:
    """Return when a request's token expires, in seconds since 1970; None if it does not."""
    user = request.scope.get("user")
    return user.expires if isinstance(user, User) else None


def seconds_until(expires: float | None, at_most: float) -> float:
    """Return the seconds until a token expires, from 0 to *at_most*."""
    return at_most if expires is None else min(at_most, max(0.0, expires - time.time()))


def call_at_expiry(request: HttpRequest, action: Callable[[], object]) -> Callable[[], object]:
    """Call *action* when a request's token expires; the returned function prevents that."""
    expires = expiry_of(request)
    if expires is None:
        return lambda: None
    delay = max(0.0, expires - time.time())
    return asyncio.get_running_loop().call_later(delay, action).cancel
