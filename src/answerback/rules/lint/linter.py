"""Puts recorded replies to the rules, file by file, and repairs them if asked."""

from __future__ import annotations

import os
import stat
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Any, Protocol

import msgspec

from ...errors import AnswerbackError, MissingExtraError
from ..catalogue import RULES
from ..checks.ab1_result import not_json
from ..finding import Fault, Finding
from ..repair import can_repair, repair
from ..validation import check
from .conversation import Answer, Conversation
from .json_locate import locate
from .json_patch import spliced
from .json_pieces import pieces
from .lines import BROKEN, NOTHING, Piece

if TYPE_CHECKING:
    from ...contract import Dialect
    from ...versions import Version

_HEAD = 64
_LOCATED = 1024 * 1024
"""Of a longer value the place of a finding is not looked for: its beginning has to do."""


class NothingToLint(AnswerbackError):
    """There is no reply in a file, nor any other message."""

    code = "NOTHING_TO_LINT"


class Options(msgspec.Struct, frozen=True, kw_only=True):
    dialect: Dialect | None = None
    version: Version | None = None
    rules: frozenset[str] = frozenset(RULES)
    fix: bool = False


class Hit(msgspec.Struct, frozen=True):
    """A finding, and where in which file it is."""

    file: str
    line: int
    finding: Finding
    body: bytes
    """The JSON that it was found in."""
    first: int
    """The line in which that begins."""
    within: str
    """The pointer into it; in the finding it is one into the whole document."""


class Tally(msgspec.Struct):
    """What has been seen so far."""

    replies: int = 0
    others: int = 0
    """Messages that are no replies."""
    errors: int = 0
    warnings: int = 0
    notes: int = 0
    fixable: int = 0
    fixed: int = 0
    without_schemas: str = ""
    """Why output schemas were not checked, if they were not."""

    @property
    def findings(self) -> int:
        return self.errors + self.warnings + self.notes

    def count(self, finding: Finding) -> None:
        match finding.severity:
            case "error":
                self.errors += 1
            case "warning":
                self.warnings += 1
            case _:
                self.notes += 1


class Report(Protocol):
    """What is done with the hits. One of them is in use from the first file to the last."""

    def hit(self, hit: Hit) -> None: ...
    def file_done(self, name: str, replies: int) -> None: ...
    def done(self, tally: Tally) -> None: ...


class Linter:
    """Reads files one after another; each is a conversation of its own."""

    def __init__(self, options: Options, report: Report) -> None:
        self.tally = Tally()
        self._options = options
        self._report = report
        self._conversation = Conversation()
        self._words = b""
        """The beginning of what is not JSON."""

    def lint(
        self, name: str, file: IO[bytes], copy: IO[bytes] | None, read: Callable[[int], None]
    ) -> bool:
        """Lint one file, and copy it with its repairs; whether there are any.

        *read* is told of the bytes that have been seen to.
        """
        before, fixed = self._seen, self.tally.fixed
        replies, self._words = self.tally.replies, b""
        self._conversation = Conversation(self._options.dialect, self._options.version)
        for piece in pieces(file):
            raw = self._see_to(name, piece)
            if copy is not None:
                copy.write(raw)
            read(len(piece.raw))
        self._report.file_done(name, self.tally.replies - replies)
        if self._seen == before:
            raise NothingToLint(f"{name} {_instead(self._words)}")
        return self.tally.fixed > fixed

    @property
    def _seen(self) -> int:
        """How much JSON there was, good or bad."""
        return self.tally.replies + self.tally.others

    def _see_to(self, name: str, piece: Piece) -> bytes:
        """Check what is in the piece; gives it back, repaired if that was asked for."""
        value = piece.value
        if value is NOTHING or piece.loose:
            self._words = self._words or piece.raw.strip()[:_HEAD]
        if value is NOTHING:
            return piece.raw
        if value is BROKEN:
            self._tell_broken(name, piece)
            return piece.raw
        changed, seen = False, 0
        for answer in self._conversation.answers(value, loose=piece.loose):
            seen += 1
            if findings := self._checked(answer):
                changed = self._answer(name, piece, answer, findings) or changed
        if seen:
            self.tally.replies += seen
        elif not piece.loose or "jsonrpc" in value:
            self.tally.others += 1
        return piece.replaced(spliced(piece.body, value)) if changed else piece.raw

    def _tell_broken(self, name: str, piece: Piece) -> None:
        self.tally.replies += 1
        if not_json.id in self._options.rules:
            what = "UTF-16 or binary, not JSON" if b"\0" in piece.raw[:_HEAD] else "not JSON"
            self._hit(name, piece, not_json.finding(Fault("", f"this is {what}")), "")

    def _answer(
        self, name: str, piece: Piece, answer: Answer, findings: tuple[Finding, ...]
    ) -> bool:
        """Tell what was found, after it was repaired if that was asked for; whether it was."""
        rules, changed = self._options.rules, False
        is_part = _is_part(piece.value, answer)
        if is_part and not self._options.fix:
            told = [each for each in findings if each.rule in rules]
            self.tally.fixable += sum(can_repair(answer.reply, each) for each in told)
        elif is_part:
            left = repair(answer.reply, answer.dialect, answer.given, rules)
            changed = left != findings
            self.tally.fixed += max(0, len(findings) - len(left)) if changed else 0
            findings = left
        for finding in findings:
            if finding.rule in rules:
                at = answer.pointer + finding.pointer
                self._hit(name, piece, finding, at)
        return changed

    def _checked(self, answer: Answer) -> tuple[Finding, ...]:
        try:
            return check(answer.reply, answer.dialect, answer.given)
        except MissingExtraError as exc:
            # Everything but the schema can still be checked.
            self.tally.without_schemas = str(exc)
            given = msgspec.structs.replace(answer.given, schema=None, listed=False)
            return check(answer.reply, answer.dialect, given)

    def _hit(self, name: str, piece: Piece, finding: Finding, at: str) -> None:
        self.tally.count(finding)
        body, line = piece.body, piece.line
        if b"\n" in body and len(body) < _LOCATED:
            line += body.count(b"\n", 0, locate(body, at)[0])
        told = msgspec.structs.replace(finding, pointer=piece.place + at)
        self._report.hit(Hit(name, line, told, body, piece.line, at))


def _is_part(value: Any, answer: Answer) -> bool:
    """Whether the reply is an object of the value itself, and not of a text in it."""
    for step in answer.pointer.split("/")[1:]:
        if isinstance(value, str):
            return False
        value = value[int(step)] if isinstance(value, list) else value.get(step)
    return value is answer.reply and isinstance(value, dict)


def _instead(words: bytes) -> str:
    """What a file is that holds no replies, and what can be done about it."""
    if not words:
        return "is empty, and nothing was checked"
    if words.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) or b"\0" in words:
        return "is UTF-16 or binary, and nothing was checked; save it as UTF-8"
    if words[:1] == b"<":
        return "is HTML or XML, and nothing was checked; lint reads JSON"
    return "has no replies in it, and nothing was checked; lint reads JSON"


def rewrite(path: str, write: Callable[[IO[bytes]], bool]) -> None:
    """Have another file written beside *path*; it takes its place if *write* says so."""
    target = os.path.realpath(path)
    # Named before it is made: whenever somebody interrupts, it is known what to take away.
    name = os.path.join(os.path.dirname(target), f".answerback-{os.urandom(8).hex()}")
    try:
        with open(name, "xb", opener=_for_us_alone) as copy:
            changed = write(copy)
        if changed:
            os.chmod(name, stat.S_IMODE(os.stat(target).st_mode))
            os.replace(name, target)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(name)


def _for_us_alone(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
