"""Records: turns each call to an App into an event, and passes it to the sinks' writers."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from hashlib import blake2b
from time import perf_counter_ns, time
from typing import Any

import msgspec

from ..calls.call import Call, Handler, Outcome
from ..core.content import Audio, Block, Embedded, Image, Text
from ..core.log import logger
from ..core.reply import Reply
from ..core.secrets import Masker, mask
from ..core.versions import VERSIONS
from ..dialects import as_sent
from ..dialects.mcp import CUT
from ..dialects.mcp_blocks import write_block
from ..dialects.seen_reply import seen_by
from ..errors import INPUT_REQUIRED, TOOL_NOT_FOUND
from ..registry.declarations import HealthState
from ..rules import validate, validation
from ..rules.checks.ab3_text_and_data import lost_in_hosts
from ..rules.finding import Fault, Finding
from ..tools.return_type import can_have_message, declares_reply
from ..tools.tool import Tool
from ..types.json_text import LARGE
from .event import ASKED, CANCELLED, ISSUE, REPLY, Event, Issue, Sink
from .writer import CLOSE_SECONDS, Writer

_MAX_BYTES = 64 * 1024
"""Larger arguments and replies are not recorded."""
_MAX_NAME_LENGTH = 200
_MAX_UNKNOWN_LENGTH = 60
# Rules about undeclared failures, text that differs from data, and tracebacks. They apply only to
# tools: a resource's text may legitimately begin with "Error" or a traceback.
_RULES_FOR_TOOLS = ("AB2", "AB3", "AB501")
_encode = msgspec.json.Encoder(enc_hook=repr).encode
_encode_sorted = msgspec.json.Encoder(order="sorted").encode
_decode = msgspec.json.Decoder().decode


class CallRecord(msgspec.Struct, gc=False):
    """A finished call. It holds only cheap values, because the caller is still waiting.

    The writer thread computes the rest when it creates the event.
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
    """Return a record of *call*; an *outcome* of None means that the call was cancelled."""
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
        # For a client that cannot be asked, the questions are an error.
        can = peer.can
        abilities = {"elicitation": can.elicit, "sampling": can.sample, "roots": can.roots}
        is_asked = all(abilities[each.capability] for each in outcome.questions.values())
        record.code = ASKED if is_asked else INPUT_REQUIRED
    return record


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


def make_event(record: CallRecord, findings: Sequence[Finding], more: dict[str, Any]) -> Event:
    """Return a call's event; *more* holds additional members, such as `reply`."""
    issues: tuple[Issue, ...] = ()
    if findings:
        masker = masker_for(record)
        issues = tuple(
            Issue(f.rule, f.name, f.severity, masker.pointer(f.pointer), masker.text(f.message))
            for f in findings
        )
    name, caller = record.name, record.caller
    if record.code or record.kind == "resource":
        # A client may have made up the name, and it may contain a secret.
        name = mask(name)
    if not caller and record.wire == "cgi":
        # The web server puts the user or the address into the process's environment.
        caller = os.environ.get("REMOTE_USER") or os.environ.get("REMOTE_ADDR") or ""
    return Event(
        event=ISSUE if issues else REPLY,
        time=datetime.fromtimestamp(record.started_at, UTC),
        kind=record.kind,
        tool=name[: _MAX_UNKNOWN_LENGTH if record.code == TOOL_NOT_FOUND else _MAX_NAME_LENGTH],
        wire=record.wire,
        version=record.version,
        caller=caller,
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
        **more,
    )


def digest(arguments: bytes) -> str:
    """Return a hash of the arguments that does not depend on white space or member order."""
    # Sorting large arguments would hold the GIL for too long.
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


def findings_in(record: CallRecord) -> Sequence[Finding]:
    """Return the rules' findings in a call's reply, which may be another framework's."""
    reply = record.reply
    if not isinstance(reply, Reply):
        return validate(reply, version=VERSIONS.get(record.version))
    found = validation.findings_in(reply)
    if record.tool is not None and reply.content and reply.data is not msgspec.UNSET:
        found = (*found, *_lost_texts(reply, record.tool))
    if found and record.kind != "tool" and reply.ok:
        return [each for each in found if not each.rule.startswith(_RULES_FOR_TOOLS)]
    return found


def _lost_texts(reply: Reply[Any], tool: Tool) -> list[Finding]:
    """Return a finding for each text block next to data that a tool declares without `Reply[…]`.

    With `Reply[…]`, under a contract with `message`, the text is also sent in the data.
    """
    returns = tool.signature.returns
    if not tool.contract.message or not tool.returns.declared or declares_reply(returns):
        return []
    # The note next to a cut page repeats its data: `returned`, `total` and `next`.
    if tool.is_paged and reply.cuts:
        return []
    seen = seen_by(as_sent(reply, "mcp", tool.contract), "claude-code")
    # A record keeps only a finding's message.
    message = "hosts that show only the data, such as Claude Code and Codex, do not show this text"
    if tool.settings.message and can_have_message(tool.returns):
        name = returns.__name__ if isinstance(returns, type) else str(returns)
        message += f"; declare Reply[{name}] to include it in the data as message"
    return [
        lost_in_hosts.finding(Fault(each.pointer, message))
        for each in seen.lost
        if each.part == "text"
    ]


def bodies_in(record: CallRecord, *, arguments: bool, content: bool) -> dict[str, Any]:
    """Return the event's members that hold the arguments and the reply, if they are wanted."""
    if not (arguments or content):
        return {}
    bodies: dict[str, bytes] = {}
    if arguments:
        bodies["arguments"] = record.arguments
    if content and record.reply is not None:
        bodies["reply"] = b"" if record.size > _MAX_BYTES else reply_json(record.reply)
    # A large body is not shortened: half a secret would no longer be recognised and masked.
    fitting = {name: body for name, body in bodies.items() if 0 < len(body) <= _MAX_BYTES}
    masker = masker_for(record, fitting.get("reply", b""))
    masked = {name: masker.json(body) for name, body in fitting.items()}
    return {**masked, "omitted": tuple(name for name in bodies if name not in fitting)}


def masker_for(record: CallRecord, reply: bytes = b"") -> Masker:
    """Return the masker for a call's secrets; *reply* is the reply's JSON."""
    # Arguments that are secret even though their names do not suggest it.
    aliases = frozenset() if record.tool is None else record.tool.arguments.aliases
    bodies = (each for each in (record.arguments, reply) if len(each) <= _MAX_BYTES)
    return Masker(*bodies, aliases=aliases)


def reply_json(reply: object) -> bytes:
    """Return the reply as JSON."""
    if not isinstance(reply, Reply):
        return _encode(reply)
    members: dict[str, Any] = {"content": [write_block(block) for block in reply.content]}
    if reply.data is not msgspec.UNSET:
        members["data"] = msgspec.Raw(reply.encoded) if reply.encoded else reply.data
    if reply.error is not None:
        members["error"] = reply.error
    meta = {**reply.meta, CUT: reply.cuts} if reply.cuts else reply.meta
    if meta:
        members["meta"] = meta
    return _encode(members)


class Records:
    """A recorder that writes an event for each reply.

    *sinks* are where it writes, such as `SQLite("audit.db")`. *arguments* also records the
    arguments, with secrets masked. *content* also records the reply, with secrets masked. *check*
    runs the rules on each reply. At most *max_waiting* events wait for a slow sink; further events
    are lost, and their number is recorded.
    """

    def __init__(
        self,
        *sinks: Sink,
        arguments: bool = False,
        content: bool = False,
        check: bool = True,
        max_waiting: int = 10_000,
    ) -> None:
        if not sinks:
            raise ValueError("Records needs a sink, such as SQLite('audit.db')")
        self._arguments = arguments
        self._content = content
        self._check = check
        self._check_failure_logged = False
        self._writers = [Writer(sink, self.make_event, max_waiting) for sink in sinks]
        traces = [sink.trace for sink in sinks if hasattr(sink, "trace")]
        self._traceparent: Callable[[], str] | None = traces[0] if traces else None

    @property
    def sinks(self) -> list[Sink]:
        return [writer.sink for writer in self._writers]

    def recorded(self, handle: Handler, kind: str) -> Handler:
        """Return a handler that records each outcome of *handle*."""
        add = self.add
        traceparent = self._traceparent

        async def handle_and_record(call: Call) -> Outcome:
            started_at, clock = time(), perf_counter_ns()
            parent = "" if traceparent is None else traceparent()
            outcome: Outcome | None = None
            try:
                outcome = await handle(call)
                return outcome
            finally:
                duration_ns = perf_counter_ns() - clock
                record = make_call_record(kind, call, started_at, duration_ns, outcome)
                record.trace = parent
                add(record)
                if call.wire == "memory":
                    for writer in self._writers:
                        writer.yield_to_writer()

        return handle_and_record

    def add(self, record: CallRecord) -> None:
        """Queue the record for every sink, without waiting for any of them."""
        size = record.size + len(record.arguments)
        for writer in self._writers:
            writer.put(record, size)

    def flush(self, seconds: float = CLOSE_SECONDS) -> bool:
        """Wait until all queued records are written; return False on timeout."""
        done = [writer.flush(seconds) for writer in self._writers]
        return all(done)

    def close(self, seconds: float = CLOSE_SECONDS) -> None:
        """Write all queued records and end the chains; any later records start new chains."""
        for writer in self._writers:
            writer.close(seconds)

    def check(self) -> HealthState:
        """Return the records' health. Calls are served even while records cannot be written."""
        details: dict[str, bool | int | str] = {
            "failing": any(writer.is_failing for writer in self._writers),
            "waiting": sum(writer.waiting for writer in self._writers),
        }
        return HealthState(details=details)

    def make_event(self, record: CallRecord, queue_is_filling: bool = False) -> Event:
        """Return the event for *record*; never raises. Called by the writer thread.

        If the queue is filling up, the rules do not run: a record without findings is better than
        a lost one.
        """
        try:
            findings = record.findings
            unchecked = queue_is_filling and self._check and findings is None
            if findings is None:
                is_checked = self._check and not unchecked and record.reply is not None
                findings = findings_in(record) if is_checked else ()
            more = bodies_in(record, arguments=self._arguments, content=self._content)
            if unchecked:
                more["unchecked"] = True
            return make_event(record, findings, more)
        except Exception:  # noqa: BLE001 -- a bug in a rule must not cost the record
            if not self._check_failure_logged:
                self._check_failure_logged = True
                message = "a reply from %r could not be checked; it is recorded without findings"
                logger().exception(message, record.name)
            return make_event(record, (), {"unchecked": True})
