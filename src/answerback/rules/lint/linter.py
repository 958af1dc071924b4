"""Checks recorded replies against the rules, file by file, and repairs them on request."""

from __future__ import annotations

from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections import Counter
from collections.abc import Callable
from typing import IO, TYPE_CHECKING, Any

import msgspec

from ...core.secrets import mask_pointer
from ...errors import AnswerbackError, MissingExtraError
from ..catalogue import RULES
from ..checks.ab1_forms import not_json
from ..finding import Fault, Finding, Severity
from ..validation import can_repair, check, repair
from .inputs import INVALID, NO_VALUE, Conversation, LoggedReply, Piece, read_pieces
from .rewriting import locate, patched

if TYPE_CHECKING:
    from ...contract import Dialect
    from ...core.versions import Version

_HEAD = 64
_MAX_LOCATED = 1024 * 1024
"""Findings in a longer value are not located; they are reported on its first line."""


class NothingToLint(AnswerbackError):
    """The file contains no replies or other messages."""

    code = "NOTHING_TO_LINT"


class LintOptions(msgspec.Struct, frozen=True, kw_only=True):
    dialect: Dialect | None = None
    version: Version | None = None
    rules: frozenset[str] = frozenset(RULES)
    fix: bool = False


class FileFinding(msgspec.Struct, frozen=True):
    """A finding and its location in a file; `finding.pointer` is relative to the whole document."""

    file: str
    line: int
    finding: Finding
    body: bytes
    """The JSON value that holds the reply."""
    body_line: int
    """The line on which *body* begins."""
    body_pointer: str
    """The finding's pointer within *body*."""


class LintCounts(msgspec.Struct):
    """The number of replies and findings so far."""

    replies: int = 0
    other_messages: int = 0
    """Messages that are not replies, such as requests and notifications."""
    by_severity: Counter[Severity] = msgspec.field(default_factory=Counter)
    fixable: int = 0
    fixed: int = 0
    schemas_unchecked: str = ""
    """Why output schemas were not checked; empty if they were."""

    @property
    def errors(self) -> int:
        return self.by_severity["error"]


class Report:
    """Writes findings in one format; one report covers all files in a run."""

    def add(self, found: FileFinding) -> None:
        raise NotImplementedError

    def done(self, counts: LintCounts) -> None:
        """Write whatever comes after the last file."""


class Linter:
    """Lints files one after another; each file is a separate conversation."""

    def __init__(self, options: LintOptions, report: Report) -> None:
        self.counts = LintCounts()
        self._options = options
        self._report = report
        self._conversation = Conversation()
        self._other_text = b""
        """The beginning of the first non-JSON text in the file."""

    def lint(
        self, name: str, file: IO[bytes], copy: IO[bytes] | None, on_read: Callable[[int], None]
    ) -> bool:
        """Lint one file, and write a repaired *copy*; return whether anything was repaired.

        *on_read* is called with the number of bytes in each piece. Raises NothingToLint.
        """
        messages, fixed = self._message_count, self.counts.fixed
        self._other_text = b""
        self._conversation = Conversation(self._options.dialect, self._options.version)
        for piece in read_pieces(file):
            raw = self._lint_piece(name, piece)
            if copy is not None:
                copy.write(raw)
            on_read(len(piece.raw))
        if self._message_count == messages:
            raise NothingToLint(f"{name} {_why_no_replies(self._other_text)}")
        return self.counts.fixed > fixed

    @property
    def _message_count(self) -> int:
        return self.counts.replies + self.counts.other_messages

    def _lint_piece(self, name: str, piece: Piece) -> bytes:
        """Check the replies in a piece; return its bytes, repaired if requested."""
        value = piece.value
        if value is NO_VALUE or piece.in_log_text:
            self._other_text = self._other_text or piece.raw.strip()[:_HEAD]
        if value is NO_VALUE:
            return piece.raw
        if value is INVALID:
            self.counts.replies += 1
            if not_json.id in self._options.rules:
                form = "UTF-16 or binary, not JSON" if b"\0" in piece.raw[:_HEAD] else "not JSON"
                finding = not_json.finding(Fault("", f"this is {form}"))
                self._report_finding(name, piece, finding, "")
            return piece.raw
        is_changed, replies = False, 0
        for logged in self._conversation.replies(value, in_log_text=piece.in_log_text):
            replies += 1
            if findings := self._check(logged):
                is_changed = self._handle_findings(name, piece, logged, findings) or is_changed
        if replies:
            self.counts.replies += replies
        elif not piece.in_log_text or "jsonrpc" in value:
            self.counts.other_messages += 1
        return piece.with_body(patched(piece.body, value)) if is_changed else piece.raw

    def _handle_findings(
        self, name: str, piece: Piece, logged: LoggedReply, findings: tuple[Finding, ...]
    ) -> bool:
        """Repair the reply if requested, and report the remaining findings.

        Return whether the reply was changed.
        """
        rules, is_changed = self._options.rules, False
        is_object = _is_object_in(piece.value, logged)
        if is_object and not self._options.fix:
            wanted = [each for each in findings if each.rule in rules]
            self.counts.fixable += sum(can_repair(logged.reply, each) for each in wanted)
        elif is_object:
            left = repair(logged.reply, logged.dialect, logged.context, rules)
            is_changed = left != findings
            self.counts.fixed += max(0, len(findings) - len(left)) if is_changed else 0
            findings = left
        for finding in findings:
            if finding.rule in rules:
                at = logged.pointer + finding.pointer
                self._report_finding(name, piece, finding, at)
        return is_changed

    def _check(self, logged: LoggedReply) -> tuple[Finding, ...]:
        try:
            return check(logged.reply, logged.dialect, logged.context)
        except MissingExtraError as exc:
            # Without jsonschema-rs, skip the rules about output schemas.
            self.counts.schemas_unchecked = str(exc)
            context = msgspec.structs.replace(logged.context, schema=None, listed=False)
            return check(logged.reply, logged.dialect, context)

    def _report_finding(self, name: str, piece: Piece, finding: Finding, at: str) -> None:
        self.counts.by_severity[finding.severity] += 1
        body, line = piece.body, piece.line
        if b"\n" in body and len(body) < _MAX_LOCATED:
            line += body.count(b"\n", 0, locate(body, at)[0])
        finding = msgspec.structs.replace(finding, pointer=mask_pointer(piece.pointer + at))
        self._report.add(FileFinding(name, line, finding, body, piece.line, at))


def _is_object_in(value: Any, logged: LoggedReply) -> bool:
    """Return whether the reply is an object in *value*, rather than decoded from a string in it."""
    for step in logged.pointer.split("/")[1:]:
        if isinstance(value, str):
            return False
        value = value[int(step)] if isinstance(value, list) else value.get(step)
    return value is logged.reply and isinstance(value, dict)


def _why_no_replies(text: bytes) -> str:
    if not text:
        return "is empty, so nothing was checked"
    if text.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) or b"\0" in text:
        return "is UTF-16 or binary, so nothing was checked; save it as UTF-8"
    if text[:1] == b"<":
        return "is HTML or XML, so nothing was checked; lint reads JSON"
    return "contains no replies, so nothing was checked; lint reads JSON"
