"""Reports with one line per finding: as compilers write them, as JSON, as GitHub commands."""

from __future__ import annotations

from typing import IO, get_args

import msgspec

from ...dialects.readable import escape_json, render
from ...types.describe import counted
from ..finding import Severity
from ..lint.linter import FileFinding, LintCounts, Report

_GITHUB_COMMANDS: dict[Severity, str] = {"error": "error", "warning": "warning", "note": "notice"}


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


class GitHubReport(LineReport):
    """Workflow commands, which make GitHub show a finding beside its line."""

    def line(self, found: FileFinding) -> str:
        finding = found.finding
        command, title = _GITHUB_COMMANDS[finding.severity], f"{finding.rule} {finding.name}"
        place = f"file={_property(found.file)},line={found.line},title={_property(title)}"
        return render(f"::{command} {place}::{_data(f'{finding.message} ({finding.hint})')}")


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


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
