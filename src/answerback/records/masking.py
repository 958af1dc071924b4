"""What the rules have to do with records: findings in a reply, and secrets made unreadable."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from ..reply import Reply
from ..rules import Finding, own_replies, validate
from ..rules.detectors.secrets import MASK, mask
from ..versions import VERSIONS

# What is called so is a secret whatever it looks like.
_SECRET_NAME = re.compile(
    r"pass(?:word|wd|phrase|code)|secret|api[-_]?key|private[-_]?key|credential|authorization"
    r"|(?:^|[-_a-z])token$|(?<=[a-z])Token$|^(?:pwd|pin|cvv|cvc|auth)$",
    re.IGNORECASE,
)


# Only a call can fail unsaid, or say one thing in text and another in data; a file may begin with
# the word error, or with a traceback.
_OF_CALLS = ("AB2", "AB3", "AB501")


def findings_in(reply: Any, version: str = "", kind: str = "tool") -> Sequence[Finding]:
    """What the rules find in a Reply, or in what another framework answered."""
    if isinstance(reply, Reply):
        found = own_replies.findings_in(reply)
        if found and kind != "tool" and reply.ok:
            return [each for each in found if not each.rule.startswith(_OF_CALLS)]
        return found
    return validate(reply, version=VERSIONS.get(version))


def masked(body: bytes) -> bytes:
    """JSON without its secrets; what is no JSON becomes a string of it."""
    try:
        found = msgspec.json.decode(body)
    except (ValueError, RecursionError):
        return msgspec.json.encode(mask(body.decode("utf-8", "replace")))
    return msgspec.json.encode(_masked(found))


def _masked(value: Any) -> Any:
    match value:
        case str():
            return mask(value)
        case list():
            return [_masked(each) for each in value]
        case dict():
            return {mask(name): _member(name, each) for name, each in value.items()}
    return value


def _member(name: str, value: Any) -> Any:
    """Numbers can be secrets too; whether there is one at all is none."""
    if value is None or isinstance(value, bool) or not _SECRET_NAME.search(name):
        return _masked(value)
    return MASK
