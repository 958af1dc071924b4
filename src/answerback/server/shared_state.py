"""A server's shared database: where its URL comes from, and which parts of a server use it."""

from __future__ import annotations

import os
from _thread import allocate_lock
from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING

from ..errors import AnswerbackError

if TYPE_CHECKING:
    from ..calls.runtime import Runtime
    from ..registry.declarations import Change, Registry
    from ..resilience.shared_limits import SharedLimits
    from ..state.shared import SharedState


STATE, STATE_LISTEN = "ANSWERBACK_STATE", "ANSWERBACK_STATE_LISTEN"
"""Environment variables for the database URL, and for a direct URL that bypasses a pooler."""
_SCHEMES = ("postgresql://", "postgres://")


class WrongState(AnswerbackError):
    """The state URL is missing or invalid, or a package is missing."""

    code = "BAD_OPTION"


def state_of(
    url: str | None = None, *, listen: str | None = None, init: bool = False
) -> SharedState | None:
    """Return the state at *url*, or at the URL in the environment; None if neither is set.

    Raises WrongState or CannotUseState.
    """
    url = url or os.environ.get(STATE)
    if not url:
        return None
    listen = listen or os.environ.get(STATE_LISTEN)
    for each in (url, listen):
        if each:
            check_url(each)
    from ..state.shared import open_state

    return open_state(url, listen=listen or None, init=init)


def check_url(url: str) -> None:
    """Raise WrongState unless this is a PostgreSQL URL and the driver is installed."""
    if not url.startswith(_SCHEMES):
        raise WrongState(
            "the state needs a PostgreSQL URL, such as postgresql://user@host/database"
        )
    for package in ("psycopg", "cryptography"):
        if find_spec(package) is None:
            raise WrongState(
                f"the state needs the {package} package: pip install 'answerback[postgres]'"
            )


def use_state(runtime: Runtime, shared: SharedState | None) -> bool:
    """Keep tasks, keys, sessions and limits in *shared*, if there is one."""
    if shared is None:
        return False
    # Imported here, because it needs the database driver.
    from ..tasks.postgres_store import PostgresStore

    registry = runtime.registry
    runtime.state = shared
    runtime.task_store = PostgresStore(shared, registry.name)
    shared.add(_Limits(registry, shared))
    return True


class _Limits:
    """Shares an app's limits, including those of entries registered later."""

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
