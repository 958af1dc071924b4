"""`python -m tests.ported [NAME…]` compares ported servers with the published ones, call by call.

The published servers are installed in environments of their own, in the folder `.ported`.
"""

from __future__ import annotations

import asyncio
import sys

from tests.ported.comparison import SERVERS, compare


def main(names: list[str]) -> int:
    faults = 0
    for server in SERVERS:
        if names and server.name not in names:
            continue
        found = asyncio.run(compare(server))
        faults += len(found)
        for fault in found:
            sys.stdout.write(f"  {fault}\n")
        count = len(server.calls)
        sys.stdout.write(f"{server.package:<20} {count} calls, {count - len(found)} as good\n")
        sys.stdout.flush()
    return min(1, faults)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
