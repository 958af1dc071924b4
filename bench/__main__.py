"""`python -m bench [PART…]` prints the figures, and fails if one misses its limit.

`python -m bench public` compares servers of others with ours, and has options of its own.
"""

from __future__ import annotations

import sys

from . import (
    around,
    auth,
    client,
    cluster,
    features,
    gates,
    growth,
    http_clients,
    mcp_http,
    mcp_stdio,
    records,
    resilience,
    rest,
    rules,
    sessions,
    sizes,
    startup,
    stdio_waiting,
    tasks,
    timeouts,
    waiting,
)
from .report import show

PARTS = {
    "rules": rules.measure,
    "around": around.measure,
    "gates": gates.measure,
    "resilience": resilience.measure,
    "startup": startup.measure,
    "rest": rest.measure,
    "stdio": mcp_stdio.measure,
    "http": mcp_http.measure,
    "sessions": sessions.measure,
    "records": records.measure,
    "sizes": sizes.measure,
    "features": features.measure,
    "auth": auth.measure,
    "client": client.measure,
    "http_clients": http_clients.measure,
    "tasks": tasks.measure,
    "timeouts": timeouts.measure,
    "waiting": waiting.measure,
    "stdio_waiting": stdio_waiting.measure,
    "growth": growth.measure,
    "cluster": cluster.measure,
}


def main(names: list[str]) -> int:
    if names[:1] == ["public"]:
        from .public.command import main as compare_in_public

        return compare_in_public(names[1:])
    if unknown := set(names) - set(PARTS):
        print(f"no such part: {', '.join(unknown)}; there are {', '.join([*PARTS, 'public'])}")
        return 2
    return show([figure for name in names or PARTS for figure in PARTS[name]()])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
