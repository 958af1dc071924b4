"""Which parts of a server keep their state in the shared database."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..calls.runtime import Runtime
    from ..state.shared import SharedState


def use_state(runtime: Runtime, shared: SharedState | None) -> bool:
    """Keep the runtime's tasks, idempotency keys and sessions in *shared*, if there is one."""
    if shared is None:
        return False
    # It needs the driver of the database.
    from ..tasks.postgres_store import PostgresStore

    runtime.state = shared
    runtime.task_store = PostgresStore(shared, runtime.registry.name)
    return True
