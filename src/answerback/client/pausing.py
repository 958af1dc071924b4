"""Time-outs of requests, which stop while the user logs in."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from ..stopped_clocks import RUNNING, TimeoutClock


@contextmanager
def stops_for_logins(timeout: asyncio.Timeout) -> Iterator[None]:
    """Let `clocks_stopped` stop a time-out: `async with asyncio.timeout(5) as timeout: …`."""
    if timeout.when() is None:
        yield
        return
    before = RUNNING.set((*RUNNING.get(), TimeoutClock(timeout)))
    try:
        yield
    finally:
        RUNNING.reset(before)
