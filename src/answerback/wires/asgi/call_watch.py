"""Watches over calls that take long; a quick one costs two set operations."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from .request import Receive
from .sse import gone

SOON = 0.1
"""Seconds between two looks; what is there at the second one takes long."""


class Watchman:
    """Looks at all calls that are running now and then, instead of a timer for each."""

    def __init__(self) -> None:
        self._vigils: set[Vigil] = set()
        self._looks = False

    def add(self, vigil: Vigil) -> None:
        self._vigils.add(vigil)
        if not self._looks:
            self._look_again()

    def remove(self, vigil: Vigil) -> None:
        self._vigils.discard(vigil)

    def _look_again(self) -> None:
        self._looks = bool(self._vigils)
        if self._looks:
            asyncio.get_running_loop().call_later(SOON, self._look)

    def _look(self) -> None:
        for vigil in self._vigils:
            vigil.look()
        self._look_again()


class Vigil:
    """While it is entered: *on_silence* after a while, *on_gone* when the client hangs up."""

    def __init__(
        self,
        watchman: Watchman,
        receive: Receive,
        *,
        silence: float,
        on_silence: Callable[[], None],
        on_gone: Callable[[], None] | None,
    ) -> None:
        self._watchman = watchman
        self._receive = receive
        self._silence = silence
        self._on_silence = on_silence
        self._on_gone = on_gone
        self._seen = False
        self._task: asyncio.Task[None] | None = None

    def __enter__(self) -> None:
        self._watchman.add(self)

    def __exit__(self, *_: object) -> None:
        self._watchman.remove(self)
        if self._task is not None:
            self._task.cancel()

    def look(self) -> None:
        if self._seen and self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._watch())
        self._seen = True

    async def _watch(self) -> None:
        if self._on_gone is None:
            await asyncio.sleep(self._silence)
            self._on_silence()
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(self._silence):
                await gone(self._receive)
            self._on_gone()
            return
        self._on_silence()
        await gone(self._receive)
        self._on_gone()
