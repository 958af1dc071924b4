"""`python -m tests.attack` attacks every wire, and fails if an attack succeeds.

CASES frames and requests are sent in at most SECONDS; both are environment variables.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable

from tests.attack.client_attack import attack_client
from tests.attack.http_attack import attack_mcp_over_http, attack_raw_http, attack_rest
from tests.attack.process_attack import attack_cgi, attack_command_line
from tests.attack.report import Plan, WireReport, table
from tests.attack.stdio_attack import attack_stdio

SHARES: dict[Callable[[Plan], WireReport], float] = {
    attack_client: 0.2,
    attack_stdio: 0.5,
    attack_mcp_over_http: 0.3,
    attack_rest: 0.2,
    attack_raw_http: 0.002,
    attack_cgi: 0.001,
    attack_command_line: 0.0005,
}
"""The share of the cases for each wire; a process for each case is slow, so CGI has few."""


def run(plan: Plan) -> list[WireReport]:
    return [attack(plan.part(share)) for attack, share in SHARES.items()]


def main() -> int:
    cases = int(os.environ.get("CASES", "110000"))
    seconds = float(os.environ.get("SECONDS", "600"))
    seed = int(os.environ.get("SEED", "1"))
    start = time.monotonic()
    reports = run(Plan(cases, start + seconds, seed))
    seconds = time.monotonic() - start
    sys.stdout.write(f"{table(reports)}\n{seconds:.0f} seconds, seed {seed}\n")
    return min(1, sum(len(each.failures) for each in reports))


if __name__ == "__main__":
    sys.exit(main())
