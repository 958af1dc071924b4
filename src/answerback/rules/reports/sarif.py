"""SARIF 2.1.0, which code hosts read. Written as it goes, so that many findings need no memory."""

from __future__ import annotations

from typing import IO, Any

import msgspec

from ..catalogue import RULES
from ..finding import Rule
from ..lint.linter import Hit, Tally

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


class Sarif:
    def __init__(self, out: IO[bytes], version: str) -> None:
        self._out = out
        self._numbers = {each: number for number, each in enumerate(RULES)}
        self._first = True
        driver = {
            "name": "answerback",
            "version": version,
            "rules": [_described(each) for each in RULES.values()],
        }
        head = msgspec.json.encode({"driver": driver})
        opening = b'{"$schema":"%b","version":"2.1.0","runs":[{"tool":%b,"results":['
        out.write(opening % (_SCHEMA.encode(), head))

    def hit(self, hit: Hit) -> None:
        self._out.write(b"\n" if self._first else b",\n")
        self._out.write(msgspec.json.encode(self._result(hit)))
        self._first = False

    def file_done(self, name: str, replies: int) -> None:
        pass

    def done(self, tally: Tally) -> None:
        self._out.write(b"\n]}]}\n")

    def _result(self, hit: Hit) -> dict[str, Any]:
        told = hit.finding
        place = {
            "artifactLocation": {"uri": _uri(hit.file)},
            "region": {"startLine": hit.line},
        }
        return {
            "ruleId": told.rule,
            "ruleIndex": self._numbers[told.rule],
            "level": told.severity,
            "message": {"text": " ".join(map(_sentence, filter(None, (told.message, told.hint))))},
            "locations": [
                {
                    "physicalLocation": place,
                    "logicalLocations": [{"fullyQualifiedName": told.pointer, "kind": "member"}],
                }
            ],
        }


def _sentence(text: str) -> str:
    """It with a capital and a full stop; a name that it begins with is kept as it is."""
    first = text.partition(" ")[0]
    capital = text[:1].upper() if first.isalpha() and first.islower() else text[:1]
    return capital + text[1:] + ("" if text.endswith((".", "!", "?", "…")) else ".")


def _uri(name: str) -> str:
    # Imported here: only this format needs it.
    from urllib.parse import quote

    return quote(name.replace("\\", "/"), safe="/:")


def _described(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.id,
        "name": rule.name,
        "shortDescription": {"text": rule.why},
        "help": {"text": rule.hint or rule.why},
        "defaultConfiguration": {"level": rule.severity},
    }
