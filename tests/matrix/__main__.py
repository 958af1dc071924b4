"""`python -m tests.matrix` shows what a model sees of 15 replies, by framework and by host.

Each framework is installed in an environment of its own, in the folder `.clients`. It calls a
server on Answerback and one on the official SDK. Hosts are modelled, so they need no environment:
`--hosts` shows only them, and what they lose of 20 replies of our own builders. `--write` puts the
tables into docs/reference/matrix.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import msgspec
from tests.clients.__main__ import install
from tests.clients.packages import Client
from tests.matrix.hosts import builder_table, commands, host_table, seen_in_hosts, source_table
from tests.matrix.parts import CASES, cell

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
PAGE = ROOT / "docs" / "reference" / "matrix.md"
SECONDS = 300
SERVERS = {
    "ours": [str(HERE / "ours.py"), "mcp"],
    "official": [str(HERE / "official.py")],
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.matrix", description=__doc__)
    parser.add_argument("--only", metavar="NAME", default="", help="a part of a framework's name")
    parser.add_argument("--write", action="store_true", help="write the table into the page")
    parser.add_argument("--show", metavar="TOOL", help="print what each model sees of one reply")
    parser.add_argument("--hosts", action="store_true", help="show only the modelled hosts")
    arguments = parser.parse_args()
    if arguments.hosts:
        sys.stdout.write(f"{_host_tables()}\n{builder_table()}")
        return 0
    frameworks = [each for each in read_frameworks() if arguments.only in each.name]
    seen = {each.name: {name: _seen(each, name) for name in SERVERS} for each in frameworks}
    if arguments.show:
        for name, servers in seen.items():
            for server, found in servers.items():
                sys.stdout.write(f"{name}, {server}: {found[arguments.show][:2000]}\n")
        return 0
    table = _table(seen)
    sys.stdout.write(table)
    if arguments.write:
        write_table("| reply |", table)
        hosts, sources = _host_tables().split("\n\n")
        write_table("| reply in a modelled host |", f"{hosts}\n")
        write_table("| host |", sources)
    return 0


def _host_tables() -> str:
    return f"{host_table(seen_in_hosts(commands(SERVERS)))}\n{source_table()}"


def write_table(start: str, table: str) -> None:
    """Replace the table of the page whose first line begins with *start*."""
    before, _, rest = PAGE.read_text().partition(f"\n{start}")
    PAGE.write_text(f"{before}\n{table}\n" + rest.partition("\n\n")[2])


def read_frameworks() -> list[Client]:
    text = (HERE / "packages.toml").read_text()
    return msgspec.toml.decode(text, type=dict[str, list[Client]])["framework"]


def _seen(framework: Client, server: str) -> dict[str, str]:
    """What a model sees of each reply; the same failure for all if the driver failed."""
    folder = install(framework)
    # MCP clients start a server without most variables, so the command sets this one itself.
    command = ["env", f"PYTHONPATH={ROOT / 'src'}{os.pathsep}{ROOT}", sys.executable]
    variables = {
        "MATRIX_COMMAND": json.dumps([*command, *SERVERS[server]]),
        "MATRIX_TOOLS": json.dumps([case.tool for case in CASES]),
    }
    own = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [str(folder / "bin" / "python"), str(HERE / "drivers" / framework.driver)],
        cwd=folder,
        env=own | variables,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    line = next((each for each in done.stdout.splitlines() if each.startswith("SEEN ")), None)
    if line is None:
        last = (done.stderr.strip() or "no output").splitlines()[-1]
        sys.stderr.write(f"{framework.name}, {server}: {last}\n")
        return {case.tool: f"RAISED {last}" for case in CASES}
    found: dict[str, str] = json.loads(line.removeprefix("SEEN "))
    return found


def _table(seen: dict[str, dict[str, dict[str, str]]]) -> str:
    lines = ["| reply | " + " | ".join(seen) + " |", "|---" * (len(seen) + 1) + "|"]
    for case in CASES:
        cells = []
        for servers in seen.values():
            ours, official = (cell(case, servers[name][case.tool]) for name in SERVERS)
            cells.append(ours if ours == official else f"{ours} / {official}")
        lines.append(f"| {case.about} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
