"""Makes the parts of a cluster fail under load, and looks at what became of each task and call.

`make faults` runs all of them and shows a table. The moments are random, from the seed SEED.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep

import psycopg
from tests.state.cluster import SECRET, Cluster
from tests.state.load import Load
from tests.state.postgres import Postgres

from answerback.state.migrations import VERSION
from answerback.tasks.task_runner import LEASE

SEED = int(os.environ.get("SEED", "23"))
_SMALL_WAL = ("min_wal_size=32MB", "max_wal_size=32MB")


@dataclass
class Row:
    """What one kind of fault did."""

    fault: str
    load: Load
    seconds: float
    may_lose: bool
    """Whether tasks may fail because their worker was killed."""

    @property
    def states(self) -> Counter[str]:
        return Counter(self.load.states.values())

    @property
    def wrong(self) -> list[str]:
        lost = self.states["failed"] + self.load.calls["lost"]
        if lost and not self.may_lose:
            return [*self.load.wrong, f"{lost} were lost, and no process was killed"]
        return self.load.wrong


Fault = Callable[[Cluster, Load, random.Random], str]


def kills(cluster: Cluster, load: Load, chance: random.Random, rounds: int = 20) -> str:
    """Kill a worker, a server or PostgreSQL at a random moment of each round."""
    killed: Counter[str] = Counter()
    for number in range(rounds):
        victim = ("worker", "server", "PostgreSQL")[number % 3]
        killed[victim] += 1

        def strike(
            victim: str = victim, moment: int = number * 100 + chance.randrange(100)
        ) -> None:
            load.wait_for(moment)
            if victim == "PostgreSQL":
                cluster.postgres.stop(signal.SIGKILL)
                cluster.postgres.start()
            else:
                members = cluster.workers if victim == "worker" else cluster.servers
                chance.choice(members).restart(signal.SIGKILL)

        load.send(range(number * 100, (number + 1) * 100), strike)
    return "killed: " + ", ".join(f"{count} x {name}" for name, count in killed.items())


def stopped_database(cluster: Cluster, load: Load, chance: random.Random) -> str:
    """Stop all processes of PostgreSQL for some seconds, twice."""

    def strike() -> None:
        for moment in (chance.randrange(100), chance.randrange(100, 200)):
            load.wait_for(moment)
            cluster.postgres.pause()
            sleep(5)
            cluster.postgres.resume()

    load.send(range(200), strike)
    return "all processes of PostgreSQL stopped for 2 x 5 s"


def terminated_connections(cluster: Cluster, load: Load, chance: random.Random) -> str:
    """End all connections from within PostgreSQL, ten times."""
    ended = 0

    def strike() -> None:
        nonlocal ended
        for number in range(10):
            load.wait_for(number * 30 + chance.randrange(30))
            with psycopg.connect(cluster.database, autocommit=True) as connection:
                ended += connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE application_name = 'answerback'"
                ).rowcount

    load.send(range(300), strike)
    return f"{ended} connections ended by pg_terminate_backend"


def cut_connections(cluster: Cluster, load: Load, chance: random.Random) -> str:
    """Cut all connections to PostgreSQL ten times; lose the replies to ten commits; then nothing
    passes for some seconds.
    """
    wire = cluster.wire
    assert wire is not None
    lost = 0

    def strike() -> None:
        nonlocal lost
        for number in range(10):
            load.wait_for(number * 40 + chance.randrange(40))
            wire.cut()
            wire.lose_reply(b"COMMIT")
            lost += wire.lost.wait(5)
        wire.stall()
        sleep(4)
        wire.resume()

    load.send(range(400), strike)
    return f"cut by a proxy 10 times, {lost} commits without a reply, silent for 4 s"


def full_disk(cluster: Cluster, load: Load, chance: random.Random) -> str:
    """Leave PostgreSQL no space for some seconds."""
    postgres = cluster.postgres
    how = ""

    def strike() -> None:
        nonlocal how
        load.wait_for(chance.randrange(150))
        with no_space(postgres) as how:
            sleep(5)
        # Without space for its log PostgreSQL ends, and an operator starts it again.
        if not postgres.is_running:
            postgres.start()
            how += "; PostgreSQL ended and was started again"

    load.send(range(200), strike)
    return how


@contextmanager
def no_space(postgres: Postgres) -> Iterator[str]:
    """Fill the file system of PostgreSQL; where it has none of its own, forbid larger files."""
    if os.path.ismount(postgres.folder):
        ballast = postgres.folder / "ballast"
        with suppress(OSError), open(ballast, "wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))
        try:
            yield "a full tmpfs for 5 s"
        finally:
            ballast.unlink()
        return
    postgres.limit_files(8192)
    try:
        yield "no file could grow for 5 s (RLIMIT_FSIZE, because no tmpfs could be mounted)"
    finally:
        if postgres.is_running:
            postgres.limit_files(None)


def different_clocks(cluster: Cluster, load: Load, chance: random.Random) -> str:
    """Let the clocks of the hosts differ by up to 100 seconds."""
    clocks = {"server-2": "50", "server-3": "-50", "worker-1": "50", "worker-2": "-50"}
    for member in cluster.members:
        if member.name in clocks:
            member.environment["FAULT_CLOCK"] = clocks[member.name]
            member.restart()
    load.send(range(chance.randrange(150, 250)))
    return "clocks 50 s ahead and 50 s behind"


def forged_boot_id(cluster: Cluster, load: Load, chance: random.Random) -> str:
    """Kill a worker that says it runs on another machine: only its lease shows that it is dead."""
    stranger = cluster.workers[0]
    stranger.environment["FAULT_BOOT"] = "00000000-0000-0000-0000-000000000000:1"
    stranger.restart()

    killed = 0.0

    def strike() -> None:
        nonlocal killed
        load.wait_for(chance.randrange(50, 150))
        stranger.stop(signal.SIGKILL)
        killed = monotonic()

    load.send(range(200), strike)
    load.finish()
    seconds = monotonic() - killed
    if "failed" in load.states.values() and seconds < LEASE / 2:
        load.wrong.append(f"claims of another machine were given up after {seconds:.0f} s")
    return f"a worker with a forged boot id killed; its tasks ended after {seconds:.0f} s"


def rotated_secret(cluster: Cluster, load: Load, chance: random.Random) -> str:
    """Change the secret, one process after the other."""
    new = "n" * 32

    def strike() -> None:
        # A process must open what another has sealed, so each knows both before one seals anew.
        for secret in (f"{SECRET},{new}", f"{new},{SECRET}"):
            cluster.environment["ANSWERBACK_SECRET"] = secret
            for member in cluster.members:
                member.restart()
        cluster.command("state", "rekey")

    load.send(range(400), strike)
    cluster.command("state", "rekey")
    report = cluster.command("state", "check")
    if "number 2 has sealed 0 records and can go" not in report:
        load.wrong.append(report)
    cluster.environment["ANSWERBACK_SECRET"] = new
    for member in cluster.members:
        member.restart()
    return "all processes restarted with new secrets, records sealed anew"


def upgraded_tables(cluster: Cluster, load: Load, chance: random.Random) -> str:
    """Bring the tables to the next version, then restart one process after the other."""

    def strike() -> None:
        load.wait_for(chance.randrange(100))
        with psycopg.connect(cluster.database) as connection:
            # A later version may add what this one does not know.
            connection.execute("ALTER TABLE answerback.tasks ADD COLUMN later text DEFAULT 'new'")
            connection.execute(
                "INSERT INTO answerback.schema_version (version) VALUES (%s)", (VERSION + 1,)
            )
        for member in cluster.members:
            member.restart()

    load.send(range(400), strike)
    return f"tables upgraded to version {VERSION + 1}, all processes restarted"


KINDS: dict[str, Fault] = {
    "kills": kills,
    "stop": stopped_database,
    "disk": full_disk,
    "terminate": terminated_connections,
    "cuts": cut_connections,
    "clocks": different_clocks,
    "boot": forged_boot_id,
    "secret": rotated_secret,
    "upgrade": upgraded_tables,
}
_LOSES = ("kills", "boot")
_TASKS = ("tasks", "completed", "failed", "again")
_CALLS = ("calls", "lost", "refused")
_HEADS = ("fault", *_TASKS, *_CALLS, "wrong", "seconds")


def run(kind: str, fault: Fault | None = None) -> Row:
    """Make one kind of fault in a cluster of its own."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        postgres = _postgres(stack, on_tmpfs=kind == "disk")
        cluster = Cluster(folder, postgres, cuts=kind == "cuts")
        stack.callback(cluster.close)
        cluster.start()
        load = Load(cluster.url, folder / "starts")
        began = monotonic()
        said = (fault or KINDS[kind])(cluster, load, random.Random(SEED))
        load.finish()
        row = Row(said, load, monotonic() - began, kind in _LOSES)
        if row.wrong:
            kept = Path(tempfile.mkdtemp(prefix="answerback-faults-"))
            shutil.copytree(folder, kept / kind)
            row.load.wrong.append(f"the logs are in {kept / kind}")
        return row


def _postgres(stack: ExitStack, *, on_tmpfs: bool) -> Postgres:
    folder = None
    if on_tmpfs:
        folder = Path(tempfile.mkdtemp(prefix="answerback-pg-"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        mount = ["mount", "-t", "tmpfs", "-o", "size=192m", "tmpfs", str(folder)]
        if subprocess.run(mount, capture_output=True, check=False).returncode == 0:
            stack.callback(subprocess.run, ["umount", str(folder)], check=False)
    postgres = Postgres(durable=True, settings=_SMALL_WAL, folder=folder)
    stack.callback(postgres.close)
    return postgres


def _table(rows: dict[str, Row]) -> str:
    line = "{:10}" + "{:>10}" * (len(_HEADS) - 1) + "\n"
    table = line.format(*_HEADS)
    for kind, row in rows.items():
        load, states = row.load, row.states
        tasks = (len(load.tasks), states["completed"], states["failed"], load.again)
        calls = (load.calls.total(), load.calls["lost"], load.refused)
        table += line.format(kind, *tasks, *calls, len(row.wrong), f"{row.seconds:.0f}")
    return table


def main(only: list[str]) -> int:
    rows: dict[str, Row] = {}
    for kind in only or KINDS:
        row = rows[kind] = run(kind)
        sys.stdout.write(f"{kind}: {row.fault} ({row.seconds:.0f} s)\n")
        sys.stdout.writelines(f"  {each}\n" for each in row.wrong)
        sys.stdout.flush()
    sys.stdout.write("\n" + _table(rows))
    return int(any(row.wrong for row in rows.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
