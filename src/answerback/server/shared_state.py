"""Which parts of a server keep their state in the shared database."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..calls.runtime import Runtime
    from ..state.shared import SharedState


def use_state(runtime: Runtime, shared: SharedState | None) -> bool:
    """Keep tasks, keys, sessions, limits and breakers in *shared*, if there is one."""
    if shared is None:
        return False
    # It needs the driver of the database.
    from ..tasks.postgres_store import PostgresStore

    registry = runtime.registry
    runtime.state = shared
    runtime.task_store = PostgresStore(shared, registry.name)
    entries = [*registry.tools.items(), *registry.resources.items(), *registry.prompts.items()]
    policies = {
        f"{entry.noun} {name}": entry.policy for name, entry in entries if entry.policy is not None
    }
    if policies:
        # Imported here, so that apps without limits and breakers do not pay for it.
        from ..resilience.sharing import share_policies

        share_policies(policies, shared, registry.name)
    return True
