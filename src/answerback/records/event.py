"""What is kept about one reply; and what the records say about themselves."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

REPLY = "mcp_response"
ISSUE = "mcp_response_format_issue"
STARTED = "records_started"
LOST = "records_lost"
ENDED = "records_ended"

CANCELLED = "CANCELLED"
"""The code of a call that was given up before there was a reply."""
ASKED = "INPUT_REQUIRED"
"""The code of a call that came to a question, which is no failure."""


class Issue(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a rule found in a reply."""

    rule: str
    name: str
    severity: str
    pointer: str
    message: str


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One event. Those about replies have a `kind`; the others are the records' own."""

    event: str
    time: datetime
    """When the call came."""
    kind: str = ""
    """tool, resource, prompt or completion."""
    tool: str = ""
    wire: str = ""
    version: str = ""
    """Of MCP, where that is the wire."""
    caller: str = ""
    request: str = ""
    """The id of the JSON-RPC request."""
    duration_us: int = 0
    size: int = 0
    """Bytes of the reply's data and content, before a wire wraps them."""
    code: str = ""
    """Why it failed; empty if it did not."""
    findings: tuple[Issue, ...] = ()
    unchecked: bool = False
    """The rules were not asked, because too many replies waited to be written."""
    reference: str = ""
    """What the caller read, and the log has the traceback under."""
    digest: str = ""
    """Of the arguments, however they were spaced and ordered."""
    trace: str = ""
    """The W3C traceparent, where there is tracing."""
    arguments: Any = None
    reply: Any = None
    omitted: tuple[str, ...] = ()
    """What was to be kept and was too large for it."""
    lost: int = 0
    why: str = ""
    process: int = 0
    after: str = ""
    """The newest record that was there when this process began its chain."""

    @property
    def is_reply(self) -> bool:
        return bool(self.kind)

    @property
    def failed(self) -> bool:
        return self.code not in ("", ASKED)
