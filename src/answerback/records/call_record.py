"""A finished call's record, as it is queued for the writer thread, and its event."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import msgspec

from ..calls.call import Call, Outcome
from ..core.content import Audio, Block, Embedded, Image, Text
from ..core.peer import NeedsInput, Peer
from ..core.reply import Reply
from ..error_codes import INPUT_REQUIRED, TOOL_NOT_FOUND
from ..tools.tool import Tool
from ..types.json_text import LARGE
from .event import ASKED, CANCELLED, ISSUE, REPLY, Event, Issue
from .recorded_bodies import masker_for

if TYPE_CHECKING:
    from ..rules.finding import Finding


_MAX_NAME_LENGTH = 200
_MAX_UNKNOWN_LENGTH = 60
_encode = msgspec.json.Encoder(enc_hook=repr).encode
_encode_sorted = msgspec.json.Encoder(order="sorted").encode
_decode = msgspec.json.Decoder().decode


class CallRecord(msgspec.Struct, gc=False):
    """A finished call. It has only what is cheap to get, because the caller is still waiting.

    The writer thread works out the rest when it makes the event.
    """

    kind: str
    name: str
    wire: str
    arguments: bytes
    started_at: float
    duration_ns: int
    size: int = 0
    reply: object = None
    """A Reply, another framework's reply, or None if the call has none."""
    code: str = ""
    version: str = ""
    caller: str = ""
    user: str = ""
    request: str = ""
    trace: str = ""
    tool: Tool | None = None
    """The called tool, if there is one."""
    attempts: int = 0
    breaker: str = ""
    opened: bool = False
    returned: int = 0
    total: int = 0
    findings: Sequence[Finding] | None = None
    """The rules' findings, or None if the rules have not run yet."""


def make_call_record(
    kind: str, call: Call, started_at: float, duration_ns: int, outcome: Outcome | None
) -> CallRecord:
    """Return the record of *call*; an *outcome* of None means that the call was cancelled."""
    peer = call.peer
    record = CallRecord(kind, call.name, call.wire, call.arguments, started_at, duration_ns)
    record.caller, record.tool = call.caller, call.tool
    if protocol := peer.protocol:
        record.version = protocol
        record.request = str(peer.id)
    if (run := call.policy_run) is not None:
        record.attempts = run.attempts
        record.breaker = run.breaker
        record.opened = run.opened
    if (user := (call.request or peer).user) is not None:
        record.user = user.key.hex()
    if isinstance(outcome, Reply):
        record.reply = outcome
        record.size = reply_size(outcome)
        if outcome.cuts:
            cut = max(outcome.cuts, key=lambda each: each.total - each.returned)
            record.returned, record.total = cut.returned, cut.total
        if outcome.error is not None:
            record.code = outcome.error.code
    elif outcome is None:
        record.code = CANCELLED
    else:
        record.code = ASKED if _can_answer(peer, outcome) else INPUT_REQUIRED
    return record


def _can_answer(peer: Peer, asked: NeedsInput) -> bool:
    """Return whether the client can be asked; for others, the questions are an error."""
    can = peer.can
    abilities = {"elicitation": can.elicit, "sampling": can.sample, "roots": can.roots}
    return all(abilities[each.capability] for each in asked.questions.values())


def reply_size(reply: Reply[Any]) -> int:
    """Return the size in bytes of the reply's data, content and error message."""
    size = len(reply.encoded or b"")
    if reply.content:
        size += sum(map(_block_size, reply.content))
    if reply.error is not None:
        size += _utf8_length(reply.error.message)
    return size


def _block_size(block: Block) -> int:
    match block:
        case Text(text=text):
            return _utf8_length(text)
        case Image(data=data) | Audio(data=data):
            return len(data or b"")
        case Embedded(text=str(text)):
            return _utf8_length(text)
        case Embedded(blob=bytes(blob)):
            return len(blob)
    return len(block.uri)


def _utf8_length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def make_event(record: CallRecord, findings: Sequence[Finding], kept: dict[str, Any]) -> Event:
    """Return a call's event; *kept* has further members of the event, such as `reply`."""
    issues: tuple[Issue, ...] = ()
    if findings:
        masker = masker_for(record)
        issues = tuple(
            Issue(f.rule, f.name, f.severity, masker.pointer(f.pointer), masker.text(f.message))
            for f in findings
        )
    return Event(
        event=ISSUE if issues else REPLY,
        time=datetime.fromtimestamp(record.started_at, UTC),
        kind=record.kind,
        tool=_name(record),
        wire=record.wire,
        version=record.version,
        caller=record.caller or _cgi_caller(record.wire),
        user=record.user,
        request=record.request[:_MAX_NAME_LENGTH],
        duration_us=record.duration_ns // 1000,
        size=record.size,
        code=record.code,
        findings=issues,
        reference=_reference(record.reply) if record.code else "",
        attempts=record.attempts,
        breaker=record.breaker,
        opened=record.opened,
        returned=record.returned,
        total=record.total,
        digest=digest(record.arguments),
        trace=record.trace,
        **kept,
    )


def _name(record: CallRecord) -> str:
    """Return the name that was called; one that the client made up is masked and shortened."""
    if not record.code and record.kind != "resource":
        return record.name[:_MAX_NAME_LENGTH]
    from ..core.secrets import mask

    unknown = record.code == TOOL_NOT_FOUND
    return mask(record.name)[: _MAX_UNKNOWN_LENGTH if unknown else _MAX_NAME_LENGTH]


def digest(arguments: bytes) -> str:
    """Return a hash of the arguments that does not depend on white space or member order."""
    # Sorting large arguments would hold the GIL too long.
    if len(arguments) <= LARGE:
        try:  # noqa: SIM105 -- runs for each record, and suppress() would double its time
            arguments = _encode_sorted(_decode(arguments))
        except (ValueError, RecursionError):
            pass
    return blake2b(arguments, digest_size=16).hexdigest()


def _reference(reply: object) -> str:
    error = reply.error if isinstance(reply, Reply) else None
    details = error.details if error is not None else None
    found = details.get("reference") if isinstance(details, dict) else None
    return found if isinstance(found, str) else ""


def _cgi_caller(wire: str) -> str:
    """Return the user or address that the web server puts into a CGI process's environment."""
    if wire != "cgi":
        return ""
    return os.environ.get("REMOTE_USER") or os.environ.get("REMOTE_ADDR") or ""
