"""A line for each finding, as compilers write them; or one JSON object; or GitHub's commands."""

from __future__ import annotations

from typing import IO

import msgspec

from ..finding import Severity
from ..lint.linter import Hit, Tally

_GITHUB: dict[Severity, str] = {"error": "error", "warning": "warning", "note": "notice"}


class Lines:
    """`file:line: severity AB101 name: message (pointer)`"""

    def __init__(self, out: IO[bytes]) -> None:
        self._out = out

    def hit(self, hit: Hit) -> None:
        self._out.write(f"{self.line(hit)}\n".encode("utf-8", "replace"))

    def line(self, hit: Hit) -> str:
        told = hit.finding
        at = f" ({told.pointer})" if told.pointer else ""
        what = f"{told.severity} {told.rule} {told.name}: {told.message}{at}"
        return f"{hit.file}:{hit.line}: {what}".replace("\n", " ")

    def file_done(self, name: str, replies: int) -> None:
        pass

    def done(self, tally: Tally) -> None:
        pass


class JsonLines(Lines):
    """An object for each finding, in a line of its own."""

    def line(self, hit: Hit) -> str:
        told = msgspec.structs.asdict(hit.finding)
        return msgspec.json.encode({"file": hit.file, "line": hit.line, **told}).decode()


class GitHub(Lines):
    """Commands that make GitHub show a finding beside the line it is about."""

    def line(self, hit: Hit) -> str:
        told = hit.finding
        command, title = _GITHUB[told.severity], f"{told.rule} {told.name}"
        place = f"file={_property(hit.file)},line={hit.line},title={_property(title)}"
        return f"::{command} {place}::{_data(f'{told.message} ({told.hint})')}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def summary(tally: Tally) -> str:
    """What it all came to, in a line."""
    if not tally.replies:
        return f"no replies found among {_count(tally.others, 'message')}"
    counts = {"error": tally.errors, "warning": tally.warnings, "note": tally.notes}
    found = ", ".join(_count(number, noun) for noun, number in counts.items() if number)
    replies = "1 reply" if tally.replies == 1 else f"{tally.replies:,} replies"
    said = f"{found or 'no findings'} in {replies}"
    if tally.fixed:
        said += f"; {tally.fixed:,} repaired"
    elif tally.fixable:
        said += f"; {tally.fixable:,} can be repaired with --fix"
    return said


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
