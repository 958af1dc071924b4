"""Makes the parts of a cluster fail under load, and looks at what became of each task, call and
session.

`make faults` runs all kinds of faults and shows a table. The moments are random, from the seed
SEED. Where network namespaces can be made it runs in namespaces of its own; NETWORK=proxy cuts the
network by proxies there too.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from threading import Timer
from time import monotonic

from tests.state.cluster import Cluster
from tests.state.fault_app import RATION
from tests.state.fault_kinds import KINDS, LOSES, Fault, Run
from tests.state.load import MANY_CALLS, TOOLS, Load
from tests.state.networks import Namespaces, enter_namespaces, new_network
from tests.state.postgres import Postgres, open_folder
from tests.state.session_load import Sessions

SEED = int(os.environ.get("SEED", "23"))
_BOUND = 600.0
"""The seconds after which a kind of fault is given up."""
_SMALL_WAL = ("min_wal_size=32MB", "max_wal_size=32MB")


@dataclass
class Row:
    """What one kind of fault did."""

    said: str
    load: Load
    sessions: Sessions
    seconds: float
    may_lose: bool
    """Whether tasks may fail because their worker was killed."""

    @property
    def states(self) -> Counter[str]:
        return Counter(self.load.states.values())

    @property
    def wrong(self) -> list[str]:
        wrong = [*self.load.wrong, *self.sessions.wrong]
        lost = self.states["failed"] + self.load.calls["lost"]
        if lost and not self.may_lose:
            wrong.append(f"{lost} were lost, and no process was killed")
        return wrong

    @property
    def cells(self) -> dict[str, object]:
        calls, states, sessions = self.load.calls, self.states, self.sessions
        return {
            "tasks": len(self.load.tasks),
            "completed": states["completed"],
            "failed": states["failed"],
            "again": self.load.again,
            "calls": calls.total(),
            "lost": calls["lost"],
            "limited": calls["refused"],
            "503": self.load.away,
            "sessions": len(sessions.kept) + len(sessions.ended),
            "ended": len(sessions.ended),
            "resumed": sessions.resumed,
            "asked": sessions.questions.total(),
            "died": sessions.questions["lost"],
            "wrong": len(self.wrong),
            "seconds": f"{self.seconds:.0f}",
        }


def run(kind: str, fault: Fault | None = None) -> Row:
    """Make one kind of fault in a cluster of its own."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        network = new_network() if kind == "network" else None
        if network is not None:
            stack.callback(network.close)
        address = network.address if isinstance(network, Namespaces) else None
        postgres = _postgres(stack, address, on_tmpfs=kind == "disk")
        cluster = Cluster(folder, postgres, cuts=kind == "cuts", network=network)
        stack.callback(cluster.close)
        cluster.start()
        load = Load(cluster.url, folder / "starts", MANY_CALLS if kind == "kills" else TOOLS)
        sessions = Sessions(
            cluster.url,
            [server.url for server in cluster.servers],
            may_lose_answers=kind == "kills",
        )
        given = Run(cluster, load, sessions, random.Random(SEED), network)
        began = monotonic()
        said = _made(given, fault or KINDS[kind])
        row = Row(said, load, sessions, monotonic() - began, kind in LOSES)
        if row.wrong:
            kept = Path(tempfile.mkdtemp(prefix="answerback-faults-")) / kind
            shutil.copytree(folder, kept)
            shutil.copy(postgres.folder / "log", kept / "postgres.log")
            load.wrong.append(f"the logs are in {kept}")
        return row


def _made(run: Run, fault: Fault) -> str:
    """Make a fault under load, and look at what became of the load; return what was done."""
    load, sessions = run.load, run.sessions
    bound = Timer(_BOUND, load.give_up, (f"it took more than {_BOUND:.0f} s",))
    bound.start()
    sessions.start()
    said = "it could not be made"
    try:
        said = fault(run)
        load.finish()
    except Exception as exc:  # noqa: BLE001 -- the other kinds go on, and the table shows it
        load.wrong.append(repr(exc))
    finally:
        sessions.finish()
        bound.cancel()
    _compare(run)
    return said


def _compare(run: Run) -> None:
    """Compare what the clients saw with the database, and with the limit."""
    load = run.load
    kept, seen = Counter(run.cluster.final_states().values()), Counter(load.states.values())
    if kept != seen:
        load.wrong.append(f"the database has {dict(kept)}, and the clients saw {dict(seen)}")
    # Without the database each process counts its part.
    passed = load.calls["passed"]
    if load.calls["refused"] and not RATION / 2 < passed < 2 * RATION:
        load.wrong.append(f"{passed} calls passed a limit of {RATION}")


def _postgres(stack: ExitStack, address: str | None, *, on_tmpfs: bool) -> Postgres:
    folder = None
    if on_tmpfs:
        folder = Path(tempfile.mkdtemp(prefix="answerback-pg-", dir=open_folder()))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        mount = ["mount", "-t", "tmpfs", "-o", "size=192m", "tmpfs", str(folder)]
        if subprocess.run(mount, capture_output=True, check=False).returncode == 0:
            stack.callback(subprocess.run, ["umount", str(folder)], check=False)
    postgres = Postgres(durable=True, settings=_SMALL_WAL, folder=folder, address=address)
    stack.callback(postgres.close)
    return postgres


def _table(rows: dict[str, Row]) -> str:
    heads = list(next(iter(rows.values())).cells)
    line = "{:10}" + "{:>10}" * len(heads) + "  {}\n"
    table = line.format("fault", *heads, "done")
    for kind, row in rows.items():
        table += line.format(kind, *row.cells.values(), row.said)
    return table


def main(only: list[str]) -> int:
    enter_namespaces()
    rows: dict[str, Row] = {}
    for kind in only or KINDS:
        row = rows[kind] = run(kind)
        sys.stdout.write(f"{kind}: {row.said} ({row.seconds:.0f} s)\n")
        sys.stdout.writelines(f"  {each}\n" for each in row.wrong)
        sys.stdout.flush()
    sys.stdout.write("\n" + _table(rows))
    return int(any(row.wrong for row in rows.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
