"""Reports with one line per finding: as compilers write them, or as JSON."""

from __future__ import annotations

from typing import IO, get_args

import msgspec

from ...dialects.readable import escape_json, render
from ...types.problems import counted
from ..finding import Severity
from ..lint.linter import FileFinding, LintCounts, Report


class LineReport(Report):
    """`file:line: severity AB101 name: message (pointer)`"""

    def __init__(self, out: IO[bytes]) -> None:
        self._out = out

    def add(self, found: FileFinding) -> None:
        self._out.write(f"{self.line(found)}\n".encode("utf-8", "replace"))

    def line(self, found: FileFinding) -> str:
        finding = found.finding
        at = f" ({finding.pointer})" if finding.pointer else ""
        text = f"{finding.severity} {finding.rule} {finding.name}: {finding.message}{at}"
        return render(f"{found.file}:{found.line}: {text}".replace("\n", " "))


class JsonLinesReport(LineReport):
    """One JSON object per finding."""

    def line(self, found: FileFinding) -> str:
        finding = msgspec.structs.asdict(found.finding)
        place = {"file": found.file, "line": found.line}
        return escape_json(msgspec.json.encode({**place, **finding}).decode())


def summary(counts: LintCounts) -> str:
    """Return the numbers of findings and replies, in one line."""
    if not counts.replies:
        return f"no replies found among {counted(counts.other_messages, 'message')}"
    by_severity = [(counts.by_severity[noun], noun) for noun in get_args(Severity)]
    findings = ", ".join(counted(number, noun) for number, noun in by_severity if number)
    replies = counted(counts.replies, "reply", "replies")
    text = f"{findings or 'no findings'} in {replies}"
    if counts.fixed:
        text += f"; {counts.fixed:,} repaired"
    elif counts.fixable:
        text += f"; {counts.fixable:,} can be repaired with --fix"
    return text
