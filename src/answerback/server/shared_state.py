"""Which parts of a server keep their state in the shared database."""

from __future__ import annotations

from _thread import allocate_lock
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..calls.runtime import Runtime
    from ..registry.declarations import Change, Registry
    from ..resilience.shared_limits import SharedLimits
    from ..state.shared import SharedState


def use_state(runtime: Runtime, shared: SharedState | None) -> bool:
    """Keep tasks, keys, sessions and limits in *shared*, if there is one."""
    if shared is None:
        return False
    # It needs the driver of the database.
    from ..tasks.postgres_store import PostgresStore

    registry = runtime.registry
    runtime.state = shared
    runtime.task_store = PostgresStore(shared, registry.name)
    shared.add(_Limits(registry, shared))
    return True


class _Limits:
    """Shares the limits of an app, also of entries that are registered later."""

    def __init__(self, registry: Registry, shared: SharedState) -> None:
        self._registry = registry
        self._shared = shared
        self._lock = allocate_lock()
        self._limits: SharedLimits | None = None
        self._unsubscribe: Callable[[], None] | None = None
        self.start()

    def start(self) -> None:
        if self._unsubscribe is None:
            self._unsubscribe = self._registry.changes.subscribe(self._on_change)
            self._share()

    def close(self) -> None:
        if self._unsubscribe is not None:
            self._unsubscribe()
            self._unsubscribe = None

    def _on_change(self, change: Change) -> None:
        if change.kind != "resource":
            self._share()

    def _share(self) -> None:
        tables = (self._registry.tools, self._registry.resources, self._registry.prompts)
        found = {
            f"{entry.noun} {name}": entry.policy
            for table in tables
            for name, entry in table.items()
            if entry.policy is not None
        }
        if not found:
            return
        with self._lock:
            if self._limits is None:
                # Imported here, so that apps without limits do not pay for it.
                from ..resilience.shared_limits import SharedLimits

                self._limits = SharedLimits(self._shared, self._registry.name)
                self._shared.add(self._limits)
            self._limits.share(found)
