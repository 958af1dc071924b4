"""Remembers a server's lists for as long as the server allows it."""

from __future__ import annotations

from time import monotonic
from typing import Any

import msgspec

MAX_SECONDS = 24 * 3600.0


class _Entry(msgspec.Struct):
    identity: str
    until: float
    value: Any


class ListCache:
    """The lists of one connection, by kind. Other credentials do not see them."""

    def __init__(self) -> None:
        self._entries: dict[str, _Entry] = {}

    def get(self, kind: str, identity: str) -> Any:
        """The list, or None if it is not there, too old, or of other credentials."""
        entry = self._entries.get(kind)
        if entry is None or entry.identity != identity or monotonic() >= entry.until:
            return None
        return entry.value

    def keep(self, kind: str, identity: str, value: Any, seconds: float) -> None:
        if seconds > 0:
            until = monotonic() + min(seconds, MAX_SECONDS)
            self._entries[kind] = _Entry(identity, until, value)

    def drop(self, kind: str) -> None:
        """Forget a list that has changed."""
        self._entries.pop(kind, None)
        if kind == "resources":
            self._entries.pop("templates", None)

    def clear(self) -> None:
        self._entries.clear()


def seconds_of(result: dict[str, Any]) -> float:
    """How long the server lets a stateless result be kept."""
    found = result.get("ttlMs")
    if isinstance(found, bool) or not isinstance(found, int | float):
        return 0.0
    return max(0.0, found / 1000)
