"""All rules, by id, by name, and by the replies they apply to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TypeAlias

import msgspec

from ..contract import Dialect
from ..core.author_errors import did_you_mean
from .checks import ab1_forms, ab2_failures, ab3_text_and_data, ab4_blocks, ab5_leaks, ab6_size
from .finding import Faults, Part, Rule

FAMILIES = {
    "AB1": "shape",
    "AB2": "errors",
    "AB3": "structure",
    "AB4": "content",
    "AB5": "leaks",
    "AB6": "size",
}

_MODULES = (ab1_forms, ab2_failures, ab3_text_and_data, ab4_blocks, ab5_leaks, ab6_size)
_RULES = (each for module in _MODULES for each in vars(module).values() if isinstance(each, Rule))
RULES = {each.id: each for each in sorted(_RULES, key=lambda each: each.id)}
RULE_BY_CHECK = {each.check: each for each in RULES.values()}

_BLOCK_TYPES = ("text", "image", "audio", "resource", "resource_link")

Checks: TypeAlias = tuple[Callable[..., Faults], ...]
"""Check functions; `RULE_BY_CHECK` maps each to its rule."""


class RulePlan(msgspec.Struct, frozen=True):
    """The checks for one kind of reply, grouped by the part of the reply they check."""

    reply: Checks
    text: Checks
    leak: Checks
    tool: Checks
    rpc: Checks
    unknown_block: Checks
    """The checks for a block whose type MCP does not define."""
    blocks: dict[str, Checks]
    """The checks for a block, by block type."""


@cache
def plan_for(dialect: Dialect, failed: bool, has_version: bool, has_schema: bool) -> RulePlan:
    """Return the checks for one kind of reply; cached per kind."""
    known = {None, *(("version",) if has_version else ()), *(("schema",) if has_schema else ())}
    whens = ("always", "failure" if failed else "success")
    rules = [
        each
        for each in RULES.values()
        if dialect in each.scope.dialects and each.scope.when in whens and each.scope.needs in known
    ]
    on_blocks = [each for each in rules if each.scope.part == "block"]
    return RulePlan(
        reply=_checks_of_part("reply", rules),
        text=_checks_of_part("text", rules),
        leak=_checks_of_part("leak", rules),
        tool=_checks_of_part("tool", rules),
        rpc=_checks_of_part("rpc", rules),
        unknown_block=tuple(each.check for each in on_blocks if not each.scope.types),
        blocks={
            block_type: tuple(
                each.check
                for each in on_blocks
                if not each.scope.types or block_type in each.scope.types
            )
            for block_type in _BLOCK_TYPES
        },
    )


def _checks_of_part(part: Part, rules: list[Rule]) -> Checks:
    return tuple(each.check for each in rules if each.scope.part == part)


def find_rule(word: str) -> Rule | None:
    """Return the rule with this id or name, or None."""
    by_name = {each.name: each for each in RULES.values()}
    return RULES.get(word.upper()) or by_name.get(word.lower().replace("_", "-"))


def unknown_rule_message(word: str) -> str:
    """Return the error message for *word*, which is not a rule's id or name.

    It suggests up to three similar ids or names.
    """
    import difflib

    rule_id = word.upper()
    if rule_id[:2] == "AB" and rule_id[2:].isdigit():
        family = [each for each in RULES if each.startswith(rule_id[:3])] or list(RULES)
        wanted = int(rule_id[2:].ljust(3, "0"))
        near = sorted(family, key=lambda each: abs(int(each[2:]) - wanted))[:3]
        similar = [f"{each} ({RULES[each].name})" for each in sorted(near)]
    else:
        names = [each.name for each in RULES.values()]
        name = word.lower().replace("_", "-").replace(" ", "-")
        similar = (
            difflib.get_close_matches(rule_id, RULES, n=1, cutoff=0.8)
            or difflib.get_close_matches(name, names, n=3)
            or [each for each in names if name in each][:3]
        )
    advice = did_you_mean(similar, quoted=False) or "`answerback rule` lists them"
    return f"no rule is called {word!r}; {advice}"


def select_rules(select: Sequence[str], ignore: Sequence[str]) -> frozenset[str]:
    """Return the ids of the rules in *select* (all if it is empty) that are not in *ignore*.

    Each word is an id, a prefix of ids, or a name; raises ValueError if no rule matches.
    """
    picked = {each for word in select for each in _matching_ids(word)} if select else set(RULES)
    return frozenset(picked - {each for word in ignore for each in _matching_ids(word)})


def _matching_ids(word: str) -> list[str]:
    if ids := [each for each in RULES if each.startswith(word.upper())]:
        return ids
    if (rule := find_rule(word)) is not None:
        return [rule.id]
    raise ValueError(unknown_rule_message(word))
