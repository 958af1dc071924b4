"""Watches over calls that take long; quick ones never notice."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from .body import Receive

SOON = 0.1
"""Seconds before anybody looks."""


class Vigil:
    """While it is entered: *on_silence* after a while, *on_gone* when the client hangs up."""

    def __init__(
        self,
        receive: Receive,
        *,
        silence: float,
        on_silence: Callable[[], None],
        on_gone: Callable[[], None] | None,
    ) -> None:
        self._receive = receive
        self._silence = silence
        self._on_silence = on_silence
        self._on_gone = on_gone
        self._task: asyncio.Task[None] | None = None

    def __enter__(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(SOON, self._begin)

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        if self._task is not None:
            self._task.cancel()

    def _begin(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._watch())

    async def _watch(self) -> None:
        if self._on_gone is None:
            await asyncio.sleep(self._silence)
        else:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._gone(), self._silence)
                self._on_gone()
                return
        self._on_silence()
        if self._on_gone is not None:
            await self._gone()
            self._on_gone()

    async def _gone(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
