"""Makes up for what other ASGI servers than ours do not tell: disconnects, and other workers."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import suppress

from .in_flight import TICK
from .request import Receive
from .sse import disconnected

_SEVERAL_WORKERS = (
    "this process seems to be one of several workers, and ANSWERBACK_SECRET is not set: an MCP "
    "session of one worker is unknown to the others. Set it to the same value for all of them. "
    "Questions to users in sessions then need sticky sessions; `serve --workers` needs neither"
)


class DisconnectWatch:
    """Tells whether the client of a call has disconnected.

    Most calls end before the watch begins.
    """

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._is_disconnected = False
        self._task: asyncio.Task[None] | None = None
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(TICK, self._begin)

    def is_disconnected(self) -> bool:
        return self._is_disconnected

    def stop(self) -> None:
        self._timer.cancel()
        if self._task is not None:
            self._task.cancel()

    def _begin(self) -> None:
        self._task = self._loop.create_task(self._watch())

    async def _watch(self) -> None:
        with suppress(OSError):  # ASGI allows a server to raise it here.
            await disconnected(self._receive)
        self._is_disconnected = True


def warn_of_several_workers() -> None:
    """Log a warning if this process looks like one of several workers of another server."""
    if not _looks_like_a_worker():
        return
    import logging

    logging.getLogger("answerback").warning(_SEVERAL_WORKERS)


def _looks_like_a_worker() -> bool:
    concurrency = os.environ.get("WEB_CONCURRENCY", "")
    if "gunicorn.arbiter" in sys.modules or concurrency not in ("", "1"):
        return True
    # uvicorn, hypercorn and granian start their workers with it.
    multiprocessing = sys.modules.get("multiprocessing")
    return multiprocessing is not None and multiprocessing.parent_process() is not None
