"""Applies the rules' fixes to a decoded reply."""

from __future__ import annotations

from collections.abc import Collection
from copy import deepcopy
from typing import Any

from ..contract import Dialect
from .catalogue import RULES
from .finding import Finding
from .reply_view import NO_CONTEXT, CheckContext
from .validation import check

_MAX_ROUNDS = 4  # A fix may cause a finding that another fix can repair.


def repair(
    reply: dict[str, Any],
    dialect: Dialect | None = None,
    context: CheckContext = NO_CONTEXT,
    rules: Collection[str] = frozenset(RULES),
) -> tuple[Finding, ...]:
    """Repair a decoded reply in place; return the remaining findings."""
    findings = check(reply, dialect, context)
    for _ in range(_MAX_ROUNDS):
        fixable = [each for each in findings if each.rule in rules and RULES[each.rule].fix]
        # Last pointer first: an item that a fix removes does not shift the items before it.
        for each in sorted(fixable, key=lambda each: each.pointer, reverse=True):
            _apply_fix(reply, each)
        left = check(reply, dialect, context)
        if left == findings:
            break
        findings = left
    return findings


def can_repair(reply: dict[str, Any], finding: Finding) -> bool:
    """Return whether the rule's fix changes the reply; it does not change, for example, data that
    is not base64 in any form."""
    if RULES[finding.rule].fix is None:
        return False
    changed = deepcopy(reply)
    _apply_fix(changed, finding)
    return changed != reply


def _apply_fix(reply: dict[str, Any], finding: Finding) -> None:
    fix = RULES[finding.rule].fix
    if fix is not None:
        try:
            fix(reply, finding.pointer)
        except (KeyError, IndexError, TypeError, ValueError):
            # Another fix has changed this place; the next round checks the reply again.
            return
