"""Runs the rules on a reply.

The package `rules` is slow to load, so this module is imported only when the first event is
made, not when an app starts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from ..core.reply import Reply
from ..core.versions import VERSIONS
from ..dialects import as_sent
from ..dialects.seen_reply import seen_by
from ..rules import validate
from ..rules import validation as own_replies
from ..rules.checks.ab3_text_and_data import lost_in_hosts
from ..rules.finding import Fault, Finding
from ..tools.return_type import can_have_message, declares_reply

if TYPE_CHECKING:
    from ..tools.tool import Tool

# Rules about undeclared failures, about text that differs from data, and about tracebacks. They
# apply only to tools: the text of a resource may well begin with "Error" or with a traceback.
_RULES_FOR_TOOLS = ("AB2", "AB3", "AB501")


def findings_in(
    reply: object, version: str = "", kind: str = "tool", tool: Tool | None = None
) -> Sequence[Finding]:
    """Return the rules' findings in a Reply of *tool*, or in another framework's reply."""
    if isinstance(reply, Reply):
        found = own_replies.findings_in(reply)
        if tool is not None and reply.content and reply.data is not msgspec.UNSET:
            found = (*found, *_lost_texts(reply, tool))
        if found and kind != "tool" and reply.ok:
            return [each for each in found if not each.rule.startswith(_RULES_FOR_TOOLS)]
        return found
    return validate(reply, version=VERSIONS.get(version))


def _lost_texts(reply: Reply[Any], tool: Tool) -> list[Finding]:
    """Return a finding for each text beside data that a tool declares without `Reply[…]`.

    Under a contract with `message`, a tool that declares it sends the text in the data too.
    """
    returns = tool.signature.returns
    if not tool.contract.message or not tool.returns.declared or declares_reply(returns):
        return []
    # The note beside a cut page says what its data has too: `returned`, `total` and `next`.
    if tool.is_paged and reply.cuts:
        return []
    seen = seen_by(as_sent(reply, "mcp", tool.contract), "claude-code")
    # A record keeps only the message of a finding.
    message = "hosts that show only the data, such as Claude Code and Codex, do not show this text"
    if tool.settings.message and can_have_message(tool.returns):
        message += f"; declare Reply[{_name(returns)}], and the data has it as message"
    return [
        lost_in_hosts.finding(Fault(each.pointer, message))
        for each in seen.lost
        if each.part == "text"
    ]


def _name(annotation: object) -> str:
    return annotation.__name__ if isinstance(annotation, type) else str(annotation)
