"""Attacks the client: hostile replies, lists, streams and errors, over stdio and over HTTP.

What is over the bounds is counted: other exceptions than the promised ones, late time-outs, a held
event loop, and memory.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.attack.hostile_replies import Case, case_of
from tests.attack.report import Plan, WireReport

from answerback import connect
from answerback.core.reply import Reply
from answerback.errors import AnswerbackError

_MODULE = "tests.attack.hostile_server"
_SHARES = {"small": 0.97, "large": 0.004, "endless": 0.0025}
"""The share of the cases of each kind, over each of two wires; most take a millisecond."""
_MEMORY = 256 * 1024 * 1024
"""Bytes that a reply may take besides its own."""
_HELD_SECONDS = 0.25
_LATE = 1.2
_TRIES = 3
"""A busy machine delays everything, so a figure counts only if it happens each time."""
_PROC = Path("/proc/self")


@dataclass
class Figures:
    """What one case cost."""

    name: str
    timeout: float
    seconds: float = 0.0
    held: float = 0.0
    memory: int = 0
    problem: str = ""

    @property
    def late(self) -> bool:
        return self.seconds > self.timeout * _LATE

    @property
    def is_within_bounds(self) -> bool:
        return not self.late and self.held < _HELD_SECONDS and self.memory < _MEMORY


class LoopWatch:
    """Measures how long the event loop was held, in seconds that this process worked.

    The time that other programs took from this one does not count.
    """

    def __init__(self) -> None:
        self.longest = 0.0

    async def run(self) -> None:
        while True:
            wall, worked = time.perf_counter(), time.process_time()
            await asyncio.sleep(0.01)
            held = min(time.perf_counter() - wall, time.process_time() - worked)
            self.longest = max(self.longest, held)


def attack_client(plan: Plan) -> WireReport:
    """Attack the client over both wires at the same time."""
    report = plan.report("hostile servers")
    logging.getLogger("answerback.client").setLevel(logging.CRITICAL + 1)
    try:
        asyncio.run(_attack(plan, report))
    finally:
        logging.getLogger("answerback.client").setLevel(logging.NOTSET)
    return report


async def _attack(plan: Plan, report: WireReport) -> None:
    asyncio.get_running_loop().set_exception_handler(
        lambda _, context: report.failures.append(f"an unhandled exception: {context['message']}")
    )
    worst = Figures("", 1.0)
    with _http_server(plan.seed) as url:
        wires = [[sys.executable, "-m", _MODULE, "stdio", str(plan.seed)], url]
        for kind, share in _SHARES.items():
            cases = max(1, round(plan.cases * share / len(wires)))
            # Large and endless cases run alone, so that each has its own figures.
            groups = [wires] if kind == "small" else [[wire] for wire in wires]
            for group in groups:
                attacks = [_attack_wire(wire, kind, cases, plan, report, worst) for wire in group]
                await asyncio.gather(*attacks)
    report.wait = worst.held
    report.note = (
        f"the client: {report.cases} hostile replies, lists and streams, loop held at most"
        f" {worst.held * 1000:.0f} ms, at most {worst.memory // 1024 // 1024} MB beside the reply,"
        f" time-outs exceeded by at most {max(0.0, worst.seconds) * 100:.0f} %"
    )


async def _attack_wire(
    wire: Any, kind: str, cases: int, plan: Plan, report: WireReport, worst: Figures
) -> None:
    async with _opened(wire) as server:
        for number in range(cases):
            if plan.time_is_up:
                break
            report.cases += 1
            figures = await _measured(server, kind, number, plan.seed)
            for _ in range(_TRIES - 1):
                if figures.is_within_bounds or figures.problem:
                    break
                figures = await _measured(server, kind, number, plan.seed)
            judge(figures, f"{kind} {number} ({figures.name})", plan, report)
            worst.held = max(worst.held, figures.held)
            worst.memory = max(worst.memory, figures.memory)
            worst.seconds = max(worst.seconds, figures.seconds / figures.timeout - 1)


def judge(figures: Figures, what: str, plan: Plan, report: WireReport) -> None:
    report.expect(not figures.problem, f"{what}: {figures.problem}")
    if plan.longest_wait < 1:
        seconds, held = f"{figures.seconds:.2f}", f"{figures.held:.2f}"
        report.expect(not figures.late, f"{what}: {seconds} s for {figures.timeout} s")
        report.expect(figures.held < _HELD_SECONDS, f"{what}: the loop was held for {held} s")
    megabytes = figures.memory // 1024 // 1024
    report.expect(figures.memory < _MEMORY, f"{what}: {megabytes} MB beside the reply")


async def _measured(server: Any, kind: str, number: int, seed: int) -> Figures:
    case = case_of(kind, number, seed)
    figures = Figures(case.name, case.timeout)
    await server.options(timeout=60).call("next", case=f"{kind} {number}")
    watch = LoopWatch()
    watching = asyncio.create_task(watch.run())
    before = _memory_reset() if case.size else 0
    await asyncio.sleep(0)
    began = time.perf_counter()
    try:
        await _act(server.options(timeout=case.timeout), case)
    except AnswerbackError:
        pass  # The lists and prompts promise it.
    except Exception as exc:  # noqa: BLE001 -- this is what the attack looks for
        figures.problem = f"{type(exc).__name__}: {exc}"[:300]
    figures.seconds = time.perf_counter() - began
    if case.size:
        figures.memory = max(0, _peak_memory() - before - case.size)
    await asyncio.sleep(0)
    watching.cancel()
    figures.held = watch.longest
    return figures


async def _act(server: Any, case: Case) -> None:
    match case.act:
        case "call":
            reply = await server.call("case")
            assert isinstance(reply, Reply)
            # What a program does with every reply.
            _ = reply.ok, reply.findings, len(reply.for_model())
        case "read":
            assert isinstance(await server.read("case://1"), Reply)
        case "prompt":
            await server.prompt("case")
        case "complete":
            await server.complete("case", "x", "y")
        case "schema":
            await server.tools()
            assert isinstance(await server.call("act"), Reply)
        case _:
            await getattr(server, case.act)()


@asynccontextmanager
async def _opened(wire: Any) -> AsyncIterator[Any]:
    async with connect(wire, timeout=60) as server:
        yield server


@contextmanager
def _http_server(seed: int) -> Iterator[str]:
    command = [sys.executable, "-m", _MODULE, "http", str(seed)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        yield f"http://127.0.0.1:{int(server.stdout.readline())}/mcp"
        server.communicate()


def _memory_reset() -> int:
    """Return the memory in use, and let the peak begin there; 0 where Linux does not tell."""
    gc.collect()
    try:
        (_PROC / "clear_refs").write_text("5")
        return _status("VmRSS")
    except OSError:
        return 0


def _peak_memory() -> int:
    try:
        return _status("VmHWM")
    except OSError:
        return 0


def _status(name: str) -> int:
    lines = (_PROC / "status").read_text().splitlines()
    found = next(line for line in lines if line.startswith(name))
    return int(found.split()[1]) * 1024
