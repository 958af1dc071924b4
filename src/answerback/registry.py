"""What changes while an App is served, and those who want to hear of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

import msgspec


class Change(msgspec.Struct, frozen=True):
    what: Literal["tools", "resources", "prompts", "resource"]
    """Which list changed; or one resource, by its URI."""
    uri: str | None = None


Listener: TypeAlias = Callable[[Change], None]


class Changes:
    """May be told, and listened to, from any thread; a listener must not block."""

    def __init__(self) -> None:
        self._listeners: tuple[Listener, ...] = ()
        self.spread: Listener | None = None
        """Tells other processes that serve the same App."""

    def tell(self, change: Change) -> None:
        """Something changed here."""
        self.hear(change)
        if self.spread is not None:
            self.spread(change)

    def hear(self, change: Change) -> None:
        """Something changed, here or in another process."""
        for listener in self._listeners:
            listener(change)

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Hear of all changes; gives back what ends it."""
        self._listeners = (*self._listeners, listener)

        def stop() -> None:
            self._listeners = tuple(each for each in self._listeners if each is not listener)

        return stop
