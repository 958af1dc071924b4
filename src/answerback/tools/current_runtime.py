"""CURRENT: the runtime that runs the current call, for code that knows nothing else of it."""

from __future__ import annotations

from collections.abc import Coroutine
from contextvars import ContextVar
from typing import Any, Protocol


class Running(Protocol):
    """The part of a Runtime that lower layers need; the Runtime is in `calls`."""

    development: bool
    """Whether the files of widgets are read anew each time."""

    @property
    def endpoint(self) -> str:
        """The URL of the MCP endpoint, as clients know it; empty if it is not known."""

    def wait_for(self, steps: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine on the event loop of the call, from a thread, and wait for it."""


CURRENT: ContextVar[Running | None] = ContextVar("answerback_runtime", default=None)
