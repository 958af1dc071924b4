"""SARIF 2.1.0, for code hosts. Each finding is written at once, and none is kept in memory."""

from __future__ import annotations

from typing import IO, Any
from urllib.parse import quote

import msgspec

from ...dialects.readable import escape_json
from ..catalogue import RULES
from ..finding import Rule
from ..lint.linter import FileFinding, LintCounts, Report

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


class SarifReport(Report):
    def __init__(self, out: IO[bytes], version: str) -> None:
        self._out = out
        self._rule_indexes = {each: index for index, each in enumerate(RULES)}
        self._is_first = True
        driver = {
            "name": "answerback",
            "version": version,
            "rules": [_rule_json(each) for each in RULES.values()],
        }
        head = msgspec.json.encode({"driver": driver})
        opening = b'{"$schema":"%b","version":"2.1.0","runs":[{"tool":%b,"results":['
        out.write(opening % (_SCHEMA.encode(), head))

    def add(self, found: FileFinding) -> None:
        self._out.write(b"\n" if self._is_first else b",\n")
        self._out.write(
            escape_json(msgspec.json.encode(self._result_json(found)).decode()).encode()
        )
        self._is_first = False

    def done(self, counts: LintCounts) -> None:
        self._out.write(b"\n]}]}\n")

    def _result_json(self, found: FileFinding) -> dict[str, Any]:
        finding = found.finding
        texts = filter(None, (finding.message, finding.hint))
        place = {
            "artifactLocation": {"uri": _uri(found.file)},
            "region": {"startLine": found.line},
        }
        return {
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


def _sentence(text: str) -> str:
    """Return the text as a sentence: capitalized, unless a name begins it, with a full stop."""
    first = text.partition(" ")[0]
    capital = text[:1].upper() if first.isalpha() and first.islower() else text[:1]
    return capital + text[1:] + ("" if text.endswith((".", "!", "?", "…")) else ".")


def _uri(name: str) -> str:
    return quote(name.replace("\\", "/"), safe="/:")


def _rule_json(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.id,
        "name": rule.name,
        "shortDescription": {"text": rule.why},
        "help": {"text": rule.hint or rule.why},
        "defaultConfiguration": {"level": rule.severity},
    }
