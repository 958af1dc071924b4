"""The issuer's keys: fetched once for all requests, kept, and fetched again in time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Any

from ..core.authentication import CannotAuthenticate
from ..core.log import logger
from .jwt_signature import JwtHeader, VerificationKey, fits, read_keys

MAX_STALE = 3600.0
"""Seconds that old keys are still used if fetching them again fails."""
RETRY = 2.0
"""Seconds between two failed attempts."""
UNKNOWN_BURST = 3
UNKNOWN_SECONDS = 30.0
"""Fetches for unknown key ids: this many at once, then one in this many seconds."""
MAX_TRIED = 8
"""How many keys are tried for a token without a key id."""


class KeySet:
    """An issuer's keys. *fetch* gets the key set; only one fetch runs at a time."""

    def __init__(self, fetch: Callable[[], Awaitable[list[Any]]], seconds: float) -> None:
        self._fetch = fetch
        self._seconds = seconds
        self._keys: list[VerificationKey] = []
        self.fresh_until = 0.0
        self.stale_until = 0.0
        self._retry_at = 0.0
        self._failure = ""
        self._fetches_left = float(UNKNOWN_BURST)
        self._counted_at = monotonic()
        self._fetching: asyncio.Task[None] | None = None
        self.on_change: Callable[[], None] | None = None
        """Called when a key has been removed or replaced."""

    async def keys_for(self, header: JwtHeader) -> list[VerificationKey]:
        """Return a token's possible keys; raises CannotAuthenticate if there are no keys yet.

        Old keys are used while new ones are fetched.
        """
        now = monotonic()
        if now >= self.stale_until:
            await self._refresh()
            if monotonic() >= self.stale_until:
                raise CannotAuthenticate(self._failure)
        elif now >= self.fresh_until:
            self.refresh_in_background()
        return self._fitting(header)

    async def keys_after_fetch(self, header: JwtHeader) -> list[VerificationKey]:
        """Return the keys for a token that no known key signed; there may be a new one by now.

        Anyone can send such tokens, so they cause only a few fetches.
        """
        now = monotonic()
        earned = (now - self._counted_at) / UNKNOWN_SECONDS
        self._fetches_left = min(UNKNOWN_BURST, self._fetches_left + earned)
        self._counted_at = now
        running = self._running()
        if running is None and self._fetches_left < 1:
            return []
        if running is None:
            self._fetches_left -= 1
        await self._refresh()
        return self._fitting(header)

    def refresh_in_background(self) -> None:
        if self._running() is None and monotonic() >= self._retry_at:
            self._start()

    def _running(self) -> asyncio.Task[None] | None:
        task = self._fetching
        if task is None or task.done() or task.get_loop() is not asyncio.get_running_loop():
            return None
        return task

    def _start(self) -> asyncio.Task[None]:
        self._fetching = asyncio.get_running_loop().create_task(self._fetch_keys())
        return self._fetching

    async def _refresh(self) -> None:
        """Wait for a fetch: the running one, if there is one."""
        task = self._running()
        if task is None:
            if monotonic() < self._retry_at:
                return
            task = self._start()
        # A request that ends early must not end the fetch that others wait for.
        await asyncio.shield(task)

    async def _fetch_keys(self) -> None:
        try:
            keys = read_keys(await self._fetch())
            if not keys:
                raise CannotAuthenticate("the key set of the issuer has no key that can be used")
        except CannotAuthenticate as exc:
            self._failure = str(exc)
            self._retry_at = monotonic() + RETRY
            logger("answerback.auth").warning("the keys of the issuer: %s", exc)
            return
        removed = {key.thumbprint for key in self._keys} - {key.thumbprint for key in keys}
        self._keys = keys
        self.fresh_until = monotonic() + self._seconds
        self.stale_until = self.fresh_until + MAX_STALE
        if removed and self.on_change is not None:
            self.on_change()

    def _fitting(self, header: JwtHeader) -> list[VerificationKey]:
        return [key for key in self._keys if fits(key, header)][:MAX_TRIED]
