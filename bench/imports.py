"""How long Python takes to start and to import: msgspec, Answerback, and the packages of others."""

from __future__ import annotations

import os
import subprocess
import sys

from .report import Chart, Figure, Found

ROUNDS = 5
PROGRAMS = {
    "python -c pass": "pass",
    "msgspec": "import msgspec",
    "msgspec without typing_extensions": (
        "import sys; sys.modules['typing_extensions'] = None; import msgspec"
    ),
    "Answerback: App": "from answerback import App",
    "Answerback: connect": "from answerback import connect",
    "FastAPI": "from fastapi import FastAPI",
    "mcp: MCPServer": "from mcp.server.mcpserver import MCPServer",
    "mcp: Client": "from mcp import Client",
    "FastMCP": "from fastmcp import FastMCP",
}


def measure() -> Found:
    least = dict.fromkeys(PROGRAMS, float("inf"))
    for number in range(ROUNDS + 1):
        for name, program in PROGRAMS.items():
            seconds = _seconds(program)
            if number:  # The first run compiles the bytecode.
                least[name] = min(least[name], seconds)
    python = least["python -c pass"]
    added = {name: seconds - python for name, seconds in least.items()}
    msgspec, without = added["msgspec"], added["msgspec without typing_extensions"]
    return [
        Chart(
            name="imports",
            title="Importing a package, with Python's own start",
            unit="ms of CPU time",
            columns=[""],
            rows={name: [seconds * 1e3] for name, seconds in least.items()},
        ),
        Figure(
            "importing App, times importing msgspec",
            added["Answerback: App"] / msgspec,
            2,
            True,
            f"{added['Answerback: App'] * 1e3:.0f} ms against {msgspec * 1e3:.0f} ms,"
            f" of them {(msgspec - without) * 1e3:.0f} ms for typing_extensions,"
            f" beside {python * 1e3:.0f} ms for Python",
        ),
    ]


def _seconds(program: str) -> float:
    """The CPU time of the process. Imports do not wait, so it is the time on a quiet machine."""
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
    process = subprocess.Popen([sys.executable, "-c", program], env=environment)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{program!r} failed")
    return used.ru_utime + used.ru_stime
