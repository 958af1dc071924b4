"""The running call as tools see it; `Call`, `Context` and `Runtime` are in a higher layer."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence
    from typing import Literal, Protocol

    from ..core.list_page import Page, StoredPart
    from .tool import Tool

    class CallRuntime(Protocol):
        """The part of a Runtime that pages and dependencies need."""

        async def stored_page(
            self, part: StoredPart, owner: str, room: int | None
        ) -> Page[Any] | None:
            """Return the rest of a page stored for *owner*; None if it is no longer stored."""

        def wait_for(self, steps: Coroutine[Any, Any, Any]) -> Any:
            """From a thread, run a coroutine on the call's event loop and wait for it."""

    class RunningCall(Protocol):
        """The part of a Call that pages and dependencies need."""

        name: str
        arguments: bytes
        wire: str
        stage: Literal["whole", "admit", "run"]
        part: StoredPart | None
        item_sizes: Sequence[int]

        @property
        def owner(self) -> str: ...
        @property
        def tool(self) -> Tool | None: ...
        @property
        def runtime(self) -> CallRuntime | None: ...


CURRENT: ContextVar[Any] = ContextVar("answerback_call", default=None)
"""The running Call; between calls, the server's Runtime or None."""


class CallContext:
    """The base class of `Context`; its subclasses mark the parameter that receives the Context."""

    __slots__ = ("_call",)
    _call: RunningCall
