"""The faults that `make faults` makes in a cluster under load, each a function."""

from __future__ import annotations

import os
import random
import shutil
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep

import psycopg
from tests.state.cluster import SECRET, Cluster, Member
from tests.state.load import Load
from tests.state.networks import Network
from tests.state.postgres import Postgres
from tests.state.session_load import Sessions, is_lost
from tests.state.sessions import Session

import answerback
from answerback.state.database import VERSION
from answerback.tasks.task_runner import LEASE


@dataclass
class Run:
    """A cluster, the calls and sessions that it serves, and the random moments of its faults."""

    cluster: Cluster
    load: Load
    sessions: Sessions
    chance: random.Random
    network: Network | None = None


Fault = Callable[[Run], str]
"""Makes a fault, and returns what was done, for the table."""


def kills(run: Run, rounds: int = 20, calls: int = 550) -> str:
    """Kill a worker, a server or PostgreSQL at a random moment of each round."""
    cluster, load = run.cluster, run.load
    killed: Counter[str] = Counter()
    for number in range(rounds):
        victim = ("worker", "server", "PostgreSQL")[number % 3]
        killed[victim] += 1
        first = number * calls
        moment = first + run.chance.randrange(calls)

        def strike(victim: str = victim, moment: int = moment) -> None:
            load.wait_for(moment)
            if victim == "PostgreSQL":
                cluster.postgres.stop(signal.SIGKILL)
                cluster.postgres.start()
            else:
                members = cluster.workers if victim == "worker" else cluster.servers
                run.chance.choice(members).restart(signal.SIGKILL)

        load.send(range(first, first + calls), strike)
    return "kill -9: " + ", ".join(f"{count} x {name}" for name, count in killed.items())


def dead_homes(run: Run) -> str:
    """Kill each server while it waits for answers of sessions, which go on at the others."""
    lost = 0
    for number, home in enumerate(run.cluster.servers):

        def strike(home: Member = home) -> None:
            nonlocal lost
            lost += _kill_home(run, home)

        run.load.send(range(number * 100, (number + 1) * 100), strike)
    return f"kill -9 of 3 servers that had asked {lost} questions"


def _kill_home(run: Run, home: Member, count: int = 4) -> int:
    """Kill a server that has asked *count* questions; return how many calls ended with an error."""
    others = [server.url for server in run.cluster.servers if server is not home]
    sessions = [Session(others[0]) for _ in range(count)]
    last_events = []
    questions = []
    with ExitStack() as streams:
        for session in sessions:
            events = streams.enter_context(session.calling(home.url, 7, "greet"))
            questions.append(events.next()["id"])
            last_events.append(events.last_id)
        home.stop(signal.SIGKILL)
    lost = 0
    for session, question, last_event in zip(sessions, questions, last_events, strict=True):
        answered = session.send(others[0], {"id": question, "result": {"action": "decline"}})
        with session.listening(others[1], last_event) as events:
            frames = list(events)
        lost += answered.status_code == 202 and len(frames) == 1 and is_lost(frames[0])
    ended, goes_on = sessions[:2], sessions[2:]
    for session in ended:
        session.end(others[1])
    home.start()
    home.wait_until_ready()
    found = [[each.status(url) for url in (*others, home.url)] for each in (*ended, *goes_on)]
    if found != [[404] * 3, [404] * 3, [200] * 3, [200] * 3] or lost != count:
        run.sessions.wrong.append(f"{home.name} was killed: {lost} calls were lost, {found}")
    return lost


def stopped_database(run: Run) -> str:
    """Stop all processes of PostgreSQL for some seconds, twice."""

    def strike() -> None:
        for moment in (run.chance.randrange(100), run.chance.randrange(100, 200)):
            run.load.wait_for(moment)
            run.cluster.postgres.pause()
            sleep(5)
            run.cluster.postgres.resume()

    run.load.send(range(200), strike)
    return "all processes of PostgreSQL stopped for 2 x 5 s"


def terminated_connections(run: Run) -> str:
    """End all connections from within PostgreSQL, ten times."""
    ended = 0

    def strike() -> None:
        nonlocal ended
        for number in range(10):
            run.load.wait_for(number * 30 + run.chance.randrange(30))
            with psycopg.connect(run.cluster.database, autocommit=True) as connection:
                ended += connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE application_name = 'answerback'"
                ).rowcount

    run.load.send(range(300), strike)
    return f"{ended} connections ended by pg_terminate_backend"


def cut_connections(run: Run) -> str:
    """Cut all connections to PostgreSQL ten times; lose the replies to ten commits; then nothing
    passes for some seconds.
    """
    wire = run.cluster.wire
    assert wire is not None
    lost = 0

    def strike() -> None:
        nonlocal lost
        for number in range(10):
            run.load.wait_for(number * 40 + run.chance.randrange(40))
            wire.cut()
            wire.lose_reply(b"COMMIT")
            lost += wire.lost.wait(5)
        wire.stall()
        sleep(4)
        wire.resume()

    run.load.send(range(400), strike)
    return f"cut by a proxy 10 times, {lost} commits without a reply, silent for 4 s"


def cut_network(run: Run) -> str:
    """Cut the workers off for longer than their claims last; then a server; then all of them."""
    cluster, load = run.cluster, run.load
    assert run.network is not None
    rounds = [(LEASE + 10, cluster.workers), (10, cluster.servers[:1]), (5, cluster.members)]
    before: dict[str, str] = {}
    for number, (seconds, members) in enumerate(rounds):
        first = number * 200
        moment = first + run.chance.randrange(150)

        def strike(
            seconds: float = seconds, members: list[Member] = members, moment: int = moment
        ) -> None:
            load.wait_for(moment)
            with _cut_off(members, run.network):
                sleep(seconds)
                before.update(cluster.final_states())

        load.send(range(first, first + 200), strike)
    load.finish()
    after = cluster.final_states()
    changed = [id for id, state in before.items() if after.get(id) != state]
    if changed:
        load.wrong.append(f"the final states of {changed} have changed")
    return (
        f"by {run.network.how}: the workers cut off for {LEASE + 10:.0f} s, a server for 10 s, "
        "all for 5 s"
    )


@contextmanager
def _cut_off(members: list[Member], network: Network | None) -> Iterator[None]:
    assert network is not None
    for member in members:
        network.cut(member.name)
    try:
        yield
    finally:
        for member in members:
            network.heal(member.name)


def full_disk(run: Run) -> str:
    """Leave PostgreSQL no space for some seconds."""
    postgres = run.cluster.postgres
    how = ""

    def strike() -> None:
        nonlocal how
        run.load.wait_for(run.chance.randrange(150))
        with no_space(postgres) as how:
            sleep(5)
        # Without space for its log PostgreSQL ends, and an operator starts it again.
        if not postgres.is_running:
            postgres.start()
            how += "; PostgreSQL ended and was started again"

    run.load.send(range(200), strike)
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


def different_clocks(run: Run) -> str:
    """Let the clocks of the servers differ by 50 seconds, and those of the workers by 100."""
    set_clocks(run.cluster)
    for member in run.cluster.members:
        member.restart()
    run.load.send(range(run.chance.randrange(150, 250)))
    return "clocks of servers differ by 50 s, of workers by 100 s"


def set_clocks(cluster: Cluster) -> None:
    """Let the members have other clocks when they start next."""
    clocks = {"server-2": "25", "server-3": "-25", "worker-1": "50", "worker-2": "-50"}
    for member in cluster.members:
        member.environment["FAULT_CLOCK"] = clocks.get(member.name, "0")


def forged_boot_id(run: Run) -> str:
    """Kill a worker that says it runs on another machine: only its lease shows that it is dead."""
    load = run.load
    stranger = run.cluster.workers[0]
    stranger.environment["FAULT_BOOT"] = "00000000-0000-0000-0000-000000000000:1"
    stranger.restart()

    killed = 0.0

    def strike() -> None:
        nonlocal killed
        load.wait_for(run.chance.randrange(50, 150))
        stranger.stop(signal.SIGKILL)
        killed = monotonic()

    load.send(range(200), strike)
    load.finish()
    seconds = monotonic() - killed
    if "failed" in load.states.values() and seconds < LEASE / 2:
        load.wrong.append(f"claims of another machine were given up after {seconds:.0f} s")
    return f"a worker with a forged boot id killed; its tasks ended after {seconds:.0f} s"


def rotated_secret(run: Run) -> str:
    """Change the secret, one process after the other."""
    cluster, load = run.cluster, run.load
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
    # Sessions end with the secret under which they were opened.
    run.sessions.finish()
    cluster.environment["ANSWERBACK_SECRET"] = new
    for member in cluster.members:
        member.restart()
    return "all processes restarted with new secrets, records sealed anew"


def upgraded_tables(run: Run) -> str:
    """Upgrade the tables by a later version, then each process to that version."""
    cluster = run.cluster

    def strike() -> None:
        run.load.wait_for(run.chance.randrange(100))
        cluster.environment["PYTHONPATH"] = str(_later_version(cluster.folder))
        cluster.command("state", "upgrade")
        for member in cluster.members:
            member.restart()

    run.load.send(range(400), strike)
    report = cluster.command("state", "check")
    if f"version {VERSION + 1}" not in report:
        run.load.wrong.append(report)
    return f"tables upgraded to version {VERSION + 1}, all processes restarted with it"


def _later_version(folder: Path) -> Path:
    """Make a program that needs the next version of the tables; return the folder it is in."""
    package = folder / "later" / "answerback"
    shutil.copytree(Path(answerback.__file__).parent, package)
    code = package / "state" / "database.py"
    text = code.read_text()
    code.write_text(text.replace(f"\nVERSION = {VERSION}\n", f"\nVERSION = {VERSION + 1}\n"))
    step = package / "state" / "steps" / f"{VERSION + 1:03}_later.sql"
    step.write_text("ALTER TABLE answerback.tasks ADD COLUMN later text NOT NULL DEFAULT 'new';\n")
    return package.parent


KINDS: dict[str, Fault] = {
    "kills": kills,
    "homes": dead_homes,
    "stop": stopped_database,
    "disk": full_disk,
    "terminate": terminated_connections,
    "cuts": cut_connections,
    "network": cut_network,
    "clocks": different_clocks,
    "boot": forged_boot_id,
    "secret": rotated_secret,
    "upgrade": upgraded_tables,
}
LOSES = ("kills", "homes", "network", "boot")
"""The faults in which a process that runs a task or a call is lost."""
