"""Runs the rules on a reply, and masks secrets in the arguments and replies that are kept.

Both need the package `rules`, which takes long to load. So this module is imported only when the
first event is made, and not when an app starts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from ..reply import Reply
from ..rules import Finding, own_replies, validate
from ..rules.detectors.secrets import MASK, mask
from ..versions import VERSIONS

# The value of a member with such a name is masked, even if it does not look like a secret.
_SECRET_NAME = re.compile(
    r"pass(?:word|wd|phrase|code)|secret|api[-_]?key|private[-_]?key|credential|authorization"
    r"|(?:^|[-_a-z])token$|(?<=[a-z])Token$|^(?:pwd|pin|cvv|cvc|auth)$",
    re.IGNORECASE,
)

# Rules about undeclared failures, about text that differs from data, and about tracebacks. They
# apply only to tools: the text of a resource may well begin with "Error" or with a traceback.
_RULES_FOR_TOOLS = ("AB2", "AB3", "AB501")


def findings_in(reply: Any, version: str = "", kind: str = "tool") -> Sequence[Finding]:
    """Return the findings of the rules in a Reply, or in a reply of another framework."""
    if isinstance(reply, Reply):
        found = own_replies.findings_in(reply)
        if found and kind != "tool" and reply.ok:
            return [each for each in found if not each.rule.startswith(_RULES_FOR_TOOLS)]
        return found
    return validate(reply, version=VERSIONS.get(version))


def masked(body: bytes) -> bytes:
    """Return JSON with its secrets masked; bytes that are not JSON become a JSON string."""
    try:
        found = msgspec.json.decode(body)
    except (ValueError, RecursionError):
        return msgspec.json.encode(mask(body.decode("utf-8", "replace")))
    return msgspec.json.encode(_masked_value(found))


def _masked_value(value: Any) -> Any:
    match value:
        case str():
            return mask(value)
        case list():
            return [_masked_value(each) for each in value]
        case dict():
            return {mask(name): _masked_member(name, each) for name, each in value.items()}
    return value


def _masked_member(name: str, value: Any) -> Any:
    """Mask any value under the name of a secret, except null and booleans, which reveal nothing."""
    if value is None or isinstance(value, bool) or not _SECRET_NAME.search(name):
        return _masked_value(value)
    return MASK
