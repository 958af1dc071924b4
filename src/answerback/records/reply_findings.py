"""Runs the rules on a reply.

The package `rules` is slow to load, so this module is imported only when the first event is
made, not when an app starts.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..core.reply import Reply
from ..core.versions import VERSIONS
from ..rules import Finding, own_replies, validate

# Rules about undeclared failures, about text that differs from data, and about tracebacks. They
# apply only to tools: the text of a resource may well begin with "Error" or with a traceback.
_RULES_FOR_TOOLS = ("AB2", "AB3", "AB501")


def findings_in(reply: object, version: str = "", kind: str = "tool") -> Sequence[Finding]:
    """Return the rules' findings in a Reply, or in another framework's reply."""
    if isinstance(reply, Reply):
        found = own_replies.findings_in(reply)
        if found and kind != "tool" and reply.ok:
            return [each for each in found if not each.rule.startswith(_RULES_FOR_TOOLS)]
        return found
    return validate(reply, version=VERSIONS.get(version))
