"""`python -m tests.ported [NAME…]` compares ported servers with the published ones, call by call.

The published servers are installed in environments of their own, in the folder `.ported`.
"""

from __future__ import annotations

import asyncio
import sys

from tests.ported.comparison import SERVERS, compare
from tests.ported.patched import HEAD, row
from tests.ported.patched import compare as compare_patched
from tests.ported.published import PUBLISHED


def main(names: list[str]) -> int:
    return min(1, _compare_examples(names) + _compare_patched(names))


def _compare_examples(names: list[str]) -> int:
    """The servers that were written anew, in `examples/ported`."""
    faults = 0
    for server in SERVERS:
        if names and server.name not in names:
            continue
        found = asyncio.run(compare(server))
        faults += _print_faults(found)
        count = len(server.calls)
        sys.stdout.write(f"{server.package:<20} {count} calls, {count - len(found)} as good\n")
        sys.stdout.flush()
    return faults


def _compare_patched(names: list[str]) -> int:
    """The servers that are patched."""
    faults, rows = 0, [HEAD]
    for server in PUBLISHED:
        if names and server.name not in names:
            continue
        result = asyncio.run(compare_patched(server))
        faults += _print_faults(result.faults)
        rows.append(row(server, result))
    sys.stdout.write("\n".join([*rows, ""]) if len(rows) > 1 else "")
    return faults


def _print_faults(found: list[str]) -> int:
    for fault in found:
        sys.stdout.write(f"  {fault}\n")
    sys.stdout.flush()
    return len(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
