"""The running event loop, without importing asyncio."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio


def running_loop() -> asyncio.AbstractEventLoop | None:
    """Return this thread's running event loop."""
    found = sys.modules.get("asyncio.events")
    # Another thread may be in the middle of importing it.
    get: Callable[[], Any] | None = getattr(found, "_get_running_loop", None)
    return None if get is None else get()
