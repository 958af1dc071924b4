"""Which parts of a server keep their state in the shared database."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..tasks.postgres_store import PostgresStore

if TYPE_CHECKING:
    from ..calls.runtime import Runtime
    from ..state.shared import SharedState


def use_state(runtime: Runtime, shared: SharedState) -> None:
    """Keep the runtime's tasks and idempotency keys in the shared database."""
    runtime.state = shared
    runtime.task_store = PostgresStore(shared, runtime.registry.name)
