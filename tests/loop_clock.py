"""The clock of an event loop, which a test can set forward: time-outs end and nobody waits."""

from __future__ import annotations

import asyncio


def advance_clock(seconds: float, loop: asyncio.AbstractEventLoop | None = None) -> None:
    """Set the clock of *loop* forward, or that of the running loop; call it in the loop's thread.

    A time-out that must not end in a test can be long, and one that must end ends at once.
    """
    loop = loop or asyncio.get_running_loop()
    now = loop.time
    loop.time = lambda: now() + seconds  # type: ignore[method-assign] # the clock is replaced
