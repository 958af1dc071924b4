"""The `lint` reports that need no extra dependency: plain lines, JSON lines and SARIF."""

from __future__ import annotations

from typing import IO, get_args
from urllib.parse import quote

import msgspec

from ..dialects.readable import escape_json, render
from ..types.problems import counted
from .catalogue import RULES
from .finding import Severity
from .lint.linter import FileFinding, LintCounts, Report


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
    """Return a one-line summary of the findings and replies."""
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


_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


class SarifReport(Report):
    def __init__(self, out: IO[bytes], version: str) -> None:
        self._out = out
        self._rule_indexes = {each: index for index, each in enumerate(RULES)}
        self._is_first = True
        driver = {
            "name": "answerback",
            "version": version,
            "rules": [
                {
                    "id": rule.id,
                    "name": rule.name,
                    "shortDescription": {"text": rule.why},
                    "help": {"text": rule.hint or rule.why},
                    "defaultConfiguration": {"level": rule.severity},
                }
                for rule in RULES.values()
            ],
        }
        head = msgspec.json.encode({"driver": driver})
        opening = b'{"$schema":"%b","version":"2.1.0","runs":[{"tool":%b,"results":['
        out.write(opening % (_SCHEMA.encode(), head))

    def add(self, found: FileFinding) -> None:
        finding = found.finding
        texts = filter(None, (finding.message, finding.hint))
        place = {
            "artifactLocation": {"uri": quote(found.file.replace("\\", "/"), safe="/:")},
            "region": {"startLine": found.line},
        }
        result = {
            "ruleId": finding.rule,
            "ruleIndex": self._rule_indexes[finding.rule],
            "level": finding.severity,
            "message": {"text": " ".join(map(_sentence, texts))},
            "locations": [
                {
                    "physicalLocation": place,
                    "logicalLocations": [{"fullyQualifiedName": finding.pointer, "kind": "member"}],
                }
            ],
        }
        self._out.write(b"\n" if self._is_first else b",\n")
        self._out.write(escape_json(msgspec.json.encode(result).decode()).encode())
        self._is_first = False

    def done(self, counts: LintCounts) -> None:
        self._out.write(b"\n]}]}\n")


def _sentence(text: str) -> str:
    """Return the text with a full stop, and capitalized unless it starts with a name."""
    first = text.partition(" ")[0]
    capital = text[:1].upper() if first.isalpha() and first.islower() else text[:1]
    return capital + text[1:] + ("" if text.endswith((".", "!", "?", "…")) else ".")
