"""`python -m bench [--write] [PART…]` prints the figures, and fails if one misses its limit.

`--write` also writes them to `docs/`: as JSON, as pictures, and as tables on the pages. Without a
PART it measures those that a page shows. `--redraw` does the same with what was measured before.

`python -m bench public` compares our server with others; `--help` lists its options.
`python -m bench verdicts FILE…` says how many failures of other people's tools are recognised.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import traceback
from collections.abc import Callable

from . import (
    around,
    auth,
    client,
    cluster,
    connections,
    features,
    gates,
    growth,
    http_clients,
    imports,
    many_tools,
    mcp_http,
    mcp_stdio,
    memory,
    nulls,
    pages,
    policies,
    records,
    resilience,
    rest,
    rules,
    sessions,
    settings,
    sizes,
    startup,
    stdio_waiting,
    tasks,
    timeouts,
    tool_clients,
    waiting,
)
from .report import Found, show

PARTS: dict[str, Callable[[], Found]] = {
    "rules": rules.measure,
    "nulls": nulls.measure,
    "around": around.measure,
    "gates": gates.measure,
    "resilience": resilience.measure,
    "policies": policies.measure,
    "imports": imports.measure,
    "startup": startup.measure,
    "rest": rest.measure,
    "stdio": mcp_stdio.measure,
    "http": mcp_http.measure,
    "memory": memory.measure,
    "connections": connections.measure,
    "sessions": sessions.measure,
    "tools": many_tools.measure,
    "records": records.measure,
    "sizes": sizes.measure,
    "features": features.measure,
    "auth": auth.measure,
    "settings": settings.measure,
    "client": client.measure,
    "tool_clients": tool_clients.measure,
    "http_clients": http_clients.measure,
    "tasks": tasks.measure,
    "timeouts": timeouts.measure,
    "waiting": waiting.measure,
    "stdio_waiting": stdio_waiting.measure,
    "growth": growth.measure,
    "cluster": cluster.measure,
}


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["public"]:
        from .public.command import main as compare_in_public

        return compare_in_public(arguments[1:])
    if arguments[:1] == ["verdicts"]:
        from .verdicts import main as judge_replies

        return judge_replies(arguments[1:])
    names = [each for each in arguments if each not in ("--write", "--redraw")]
    if unknown := set(names) - set(PARTS):
        parts = ", ".join([*PARTS, "public", "verdicts"])
        print(f"no such part: {', '.join(unknown)}; there are {parts}")
        return 2
    if "--redraw" in arguments:
        pages.redraw()
        return 0
    if "--write" in arguments:
        return _measure_and_write(names or [each for each in pages.parts_shown() if each in PARTS])
    return show([each for name in names or PARTS for each in PARTS[name]()])


def _measure_and_write(names: list[str]) -> int:
    """Keep what each part found; if one fails, its old figures stay and the others go on."""
    missed, began = 0, time.monotonic()
    for name in names:
        load, started = os.getloadavg()[0], time.monotonic()
        try:
            found = PARTS[name]()
        except (RuntimeError, OSError, subprocess.SubprocessError):
            print(f"{name} failed:\n{traceback.format_exc()}", flush=True)
            missed += 1
            continue
        seconds = time.monotonic() - started
        pages.keep(name, found, seconds, load)
        print(f"{name}: {seconds:.0f} s")
        missed += show(found)
        sys.stdout.flush()
    pages.redraw()
    print(f"{missed} missed, {(time.monotonic() - began) / 60:.1f} minutes")
    return missed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
