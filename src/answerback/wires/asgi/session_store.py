"""What changes in a session, kept only for those that changed something, and not for ever."""

from __future__ import annotations

import time
from collections import OrderedDict

from ...mcp.session_id import LIFETIME
from ...peer import Level

MOST = 10_000
"""Beyond so many, the one that was quiet longest is forgotten."""


class State:
    """A session's own: its log level, what it listens to, whether it is over."""

    __slots__ = ("ended", "level", "seen", "subscriptions")

    def __init__(self) -> None:
        self.level: Level | None = None
        self.subscriptions: set[str] = set()
        self.ended = False
        self.seen = time.monotonic()

    @property
    def is_bare(self) -> bool:
        """Nothing in it that a new one would not have."""
        return not (self.ended or self.level or self.subscriptions)


class Sessions:
    """By the nonce of their ticket. A session without anything of its own is not here."""

    def __init__(self) -> None:
        self._states: OrderedDict[bytes, State] = OrderedDict()

    def get(self, nonce: bytes) -> State | None:
        return self._states.get(nonce)

    def keep(self, nonce: bytes) -> State:
        """The state of a session that is about to have something of its own."""
        state = self._states.get(nonce)
        if state is None:
            self._forget_old()
            state = self._states[nonce] = State()
        state.seen = time.monotonic()
        self._states.move_to_end(nonce)
        return state

    def release(self, nonce: bytes) -> None:
        """Forget a session that no longer has anything of its own."""
        state = self._states.get(nonce)
        if state is not None and state.is_bare:
            del self._states[nonce]

    def _forget_old(self) -> None:
        limit = time.monotonic() - LIFETIME
        while self._states:
            oldest = next(iter(self._states.values()))
            if len(self._states) < MOST and oldest.seen > limit:
                return
            self._states.popitem(last=False)

    def __len__(self) -> int:
        return len(self._states)
