"""Repairs what can be repaired without guessing."""

from __future__ import annotations

from collections.abc import Collection
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from .catalogue import RULES
from .finding import Finding
from .reply_view import Circumstances
from .validation import check

if TYPE_CHECKING:
    from ..contract import Dialect

_ROUNDS = 4  # A repair may bring to light what another can repair.


def repair(
    found: dict[str, Any],
    dialect: Dialect | None,
    given: Circumstances,
    rules: Collection[str] = frozenset(RULES),
) -> tuple[Finding, ...]:
    """Change a decoded reply for the better, in place; gives what is left to be said about it."""
    findings = check(found, dialect, given)
    for _ in range(_ROUNDS):
        fixable = [each for each in findings if each.rule in rules and RULES[each.rule].fix]
        # From the end, so that what is taken out does not move what comes before it.
        for each in sorted(fixable, key=lambda each: each.pointer, reverse=True):
            _apply(found, each)
        left = check(found, dialect, given)
        if left == findings:
            break
        findings = left
    return findings


def can_repair(found: dict[str, Any], finding: Finding) -> bool:
    """Whether the rule's repair would change anything; what is no base64 at all stays as it is."""
    if RULES[finding.rule].fix is None:
        return False
    changed = deepcopy(found)
    _apply(changed, finding)
    return changed != found


def _apply(found: dict[str, Any], finding: Finding) -> None:
    fix = RULES[finding.rule].fix
    if fix is not None:
        try:
            fix(found, finding.pointer)
        except (KeyError, IndexError, TypeError, ValueError):
            # Another repair has changed what this one was for; the next round looks again.
            return
