"""A call and what it came to, as it is handed over to be recorded; and the event it becomes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any

import msgspec

from ..calls.call import Call, Outcome
from ..content import Audio, Block, Embedded, Image, Text
from ..dialects.mcp_blocks import write_block
from ..reply import Reply
from .event import ASKED, CANCELLED, ISSUE, REPLY, Event, Issue

KEPT_BYTES = 64 * 1024
_LONGEST_NAME = 200
# Putting larger ones in order would hold up those who answer calls.
_ORDERED_BYTES = 16 * 1024
_encode = msgspec.json.Encoder(enc_hook=repr).encode
_encode_ordered = msgspec.json.Encoder(order="sorted").encode
_decode = msgspec.json.Decoder().decode


class Answered(msgspec.Struct, gc=False):
    """Little is worked out while the caller waits: the rest is for the thread that writes."""

    kind: str
    name: str
    wire: str
    arguments: bytes
    began: float
    took_ns: int
    size: int
    reply: Any
    """A Reply, what another framework answered, or None if there is no reply."""
    code: str = ""
    version: str = ""
    caller: str = ""
    request: str = ""
    trace: str = ""
    findings: Any = None
    """What the rules said, if they were asked already."""


def answered(
    kind: str, call: Call, began: float, took_ns: int, outcome: Outcome | None
) -> Answered:
    """What is handed over for *outcome*; None is a call that was given up."""
    peer: Any = call.peer
    version = getattr(peer, "version", None)
    found = Answered(
        kind, call.name, call.wire, call.arguments, began, took_ns, 0, None, caller=call.caller
    )
    if version is not None:
        found.version = version.name
        found.request = str(peer.id)
    if isinstance(outcome, Reply):
        found.reply = outcome
        found.size = size_of(outcome)
        if outcome.error is not None:
            found.code = outcome.error.code
    else:
        found.code = CANCELLED if outcome is None else ASKED
    return found


def size_of(reply: Reply[Any]) -> int:
    """The bytes of its data and content."""
    size = len(reply.encoded or b"")
    if reply.content:
        size += sum(map(_block_size, reply.content))
    if reply.error is not None:
        size += _bytes(reply.error.message)
    return size


def _block_size(block: Block) -> int:
    match block:
        case Text(text=text):
            return _bytes(text)
        case Image(data=data) | Audio(data=data):
            return len(data or b"")
        case Embedded(text=str(text)):
            return _bytes(text)
        case Embedded(blob=bytes(blob)):
            return len(blob)
    return len(getattr(block, "uri", ""))


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def event_of(item: Answered, findings: Sequence[Any], kept: dict[str, Any]) -> Event:
    """The event; *kept* is what was asked to be kept of arguments and reply."""
    issues: tuple[Issue, ...] = ()
    if findings:
        issues = tuple(
            Issue(each.rule, each.name, each.severity, each.pointer, each.message)
            for each in findings
        )
    return Event(
        event=ISSUE if issues else REPLY,
        time=datetime.fromtimestamp(item.began, UTC),
        kind=item.kind,
        tool=item.name[:_LONGEST_NAME],
        wire=item.wire,
        version=item.version,
        caller=item.caller or _caller(item.wire),
        request=item.request,
        duration_us=item.took_ns // 1000,
        size=item.size,
        code=item.code,
        findings=issues,
        reference=_reference(item.reply) if item.code else "",
        digest=digest(item.arguments),
        trace=item.trace,
        **kept,
    )


def digest(arguments: bytes) -> str:
    """The same for the same arguments, however they are spaced and ordered."""
    if len(arguments) <= _ORDERED_BYTES:
        try:  # noqa: SIM105 -- on the path of each record, and suppress() takes as long as this
            arguments = _encode_ordered(_decode(arguments))
        except (ValueError, RecursionError):
            pass
    return blake2b(arguments, digest_size=16).hexdigest()


def reply_json(reply: Any) -> bytes:
    """What a reply says, as JSON."""
    if not isinstance(reply, Reply):
        return _encode(reply)
    members: dict[str, Any] = {"content": [write_block(block) for block in reply.content]}
    if reply.data is not msgspec.UNSET:
        members["data"] = msgspec.Raw(reply.encoded) if reply.encoded else reply.data
    if reply.error is not None:
        members["error"] = reply.error
    if reply.meta:
        members["meta"] = reply.meta
    return _encode(members)


def _reference(reply: Any) -> str:
    error = reply.error if isinstance(reply, Reply) else None
    details = error.details if error is not None else None
    found = details.get("reference") if isinstance(details, dict) else None
    return found if isinstance(found, str) else ""


def _caller(wire: str) -> str:
    """Who it is where the process knows: a web server says it to CGI."""
    if wire != "cgi":
        return ""
    return os.environ.get("REMOTE_USER") or os.environ.get("REMOTE_ADDR") or ""
