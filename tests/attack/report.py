"""The figures of an attack on one wire: cases, failures, and how long other calls waited."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

SHOWN = 10


@dataclass
class WireReport:
    wire: str
    cases: int = 0
    failures: list[str] = field(default_factory=list)
    wait: float = 0.0
    """The longest time in seconds that another call waited."""
    longest_wait: float = 0.75
    """Seconds that a call may wait while the server works on an attack."""
    note: str = ""
    """Further figures, in one line."""

    def expect(self, holds: object, failure: str) -> None:
        if not holds:
            self.failures.append(failure)

    def waited(self, seconds: float, during: str) -> None:
        """Record how long another call took while an attack was worked on."""
        self.wait = max(self.wait, seconds)
        is_short = seconds < self.longest_wait
        self.expect(is_short, f"another call waited {seconds:.2f} s during {during}")

    def waited_each_time(self, waits: Iterable[float], during: str) -> None:
        """A busy machine delays a call too, so a long wait counts only if it happens again."""
        limit = self.longest_wait
        self.waited(next((wait for wait in waits if wait < limit), limit), during)

    @contextmanager
    def caught(self, attack: str) -> Iterator[None]:
        """Count an assertion, an invalid message or a missing answer as a failure."""
        try:
            yield
        except (AssertionError, ValueError, KeyError, OSError) as exc:
            self.failures.append(f"{attack}: {type(exc).__name__}: {exc}"[:400])


@dataclass
class Plan:
    """How much is sent: a number of cases, and a time at which no further ones are begun."""

    cases: int
    until: float
    seed: int = 1
    large: int = 4_000_000
    """The size of the large messages in bytes; the default limit of a body is a little more."""
    longest_wait: float = 0.75

    def report(self, wire: str) -> WireReport:
        return WireReport(wire, longest_wait=self.longest_wait)

    def part(self, share: float) -> Plan:
        """A plan for a share of the cases, which may take a part of the remaining time."""
        now = time.monotonic()
        until = now + max(0.0, self.until - now) * min(1.0, share * 2 + 0.15)
        cases = max(1, round(self.cases * share))
        return Plan(cases, until, self.seed, self.large, self.longest_wait)

    @property
    def time_is_up(self) -> bool:
        return time.monotonic() >= self.until


def table(reports: list[WireReport]) -> str:
    """One line for each wire, the total, and the first failures."""
    total = WireReport(
        "all",
        sum(each.cases for each in reports),
        [failure for each in reports for failure in each.failures],
        max((each.wait for each in reports), default=0.0),
    )
    lines = [f"{'wire':<20}{'cases':>9}{'failures':>10}{'longest wait':>15}"]
    for each in (*reports, total):
        wait = f"{each.wait * 1000:.0f} ms"
        lines.append(f"{each.wire:<20}{each.cases:>9}{len(each.failures):>10}{wait:>15}")
    lines += [each.note for each in reports if each.note]
    for each in reports:
        lines += [f"FAILED {each.wire}: {failure}" for failure in each.failures[:SHOWN]]
    return "\n".join(lines)
