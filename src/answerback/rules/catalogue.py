"""All the rules, and which of them apply where."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from .checks import (
    ab1_content,
    ab1_envelope,
    ab1_result,
    ab2_failures,
    ab3_text_and_data,
    ab4_blocks,
    ab5_leaks,
    ab6_size,
    ab32_output_schema,
)
from .finding import Faults, Rule

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..contract import Dialect
    from .finding import Part

FAMILIES = {
    "AB1": "shape",
    "AB2": "errors",
    "AB3": "structure",
    "AB4": "content",
    "AB5": "leaks",
    "AB6": "size",
}


def _rules_in(modules: Iterable[ModuleType]) -> list[Rule]:
    return [each for module in modules for each in vars(module).values() if isinstance(each, Rule)]


_MODULES = (
    ab1_content,
    ab1_envelope,
    ab1_result,
    ab2_failures,
    ab3_text_and_data,
    ab32_output_schema,
    ab4_blocks,
    ab5_leaks,
    ab6_size,
)
RULES = {each.id: each for each in sorted(_rules_in(_MODULES), key=lambda each: each.id)}

RULE_OF = {each.check: each for each in RULES.values()}

# These are seen before there is a subject to check.
_BEFORE = ("AB100", "AB116")
_TYPES = ("text", "image", "audio", "resource", "resource_link")


Checks: TypeAlias = tuple[Callable[..., Faults], ...]
"""What to call; `RULE_OF` says which rule it is the check of."""


class Plan(msgspec.Struct, frozen=True):
    """The rules for one sort of reply, by what they look at."""

    reply: Checks
    text: Checks
    leak: Checks
    tool: Checks
    rpc: Checks
    other: Checks
    """On blocks of a type that nobody knows."""
    blocks: dict[str, Checks]


@cache
def plan_for(dialect: Dialect, failed: bool, versioned: bool, with_schema: bool) -> Plan:
    """What is to be checked; worked out once for each sort of reply."""
    known = {None, *(("version",) if versioned else ()), *(("schema",) if with_schema else ())}
    whens = ("always", "failure" if failed else "success")
    rules = [
        each
        for each in RULES.values()
        if dialect in each.scope.dialects and each.scope.when in whens and each.scope.needs in known
    ]
    blocks = [each for each in rules if each.scope.part == "block"]
    return Plan(
        reply=_on("reply", rules),
        text=_on("text", rules),
        leak=_on("leak", rules),
        tool=_on("tool", rules),
        rpc=_on("rpc", rules),
        other=_checks(each for each in blocks if not each.scope.types),
        blocks={noun: _checks(each for each in blocks if _is_on(each, noun)) for noun in _TYPES},
    )


def _on(part: Part, rules: list[Rule]) -> Checks:
    return _checks(each for each in rules if each.scope.part == part)


def _checks(rules: Iterable[Rule]) -> Checks:
    return tuple(each.check for each in rules if each.id not in _BEFORE)


def _is_on(rule: Rule, noun: str) -> bool:
    return not rule.scope.types or noun in rule.scope.types


def named(word: str) -> Rule | None:
    """The rule of that id or name."""
    by_name = {each.name: each for each in RULES.values()}
    return RULES.get(word.upper()) or by_name.get(word.lower().replace("_", "-"))


def nearest(word: str) -> list[str]:
    """What somebody may have meant who named a rule that there is not: ids or names."""
    import difflib

    number = word.upper()
    if number[:2] == "AB" and number[2:].isdigit():
        family = [each for each in RULES if each.startswith(number[:3])] or list(RULES)
        wanted = int(number[2:].ljust(3, "0"))
        near = sorted(family, key=lambda each: abs(int(each[2:]) - wanted))[:3]
        return [f"{each} ({RULES[each].name})" for each in sorted(near)]
    names = [each.name for each in RULES.values()]
    spelt = word.lower().replace("_", "-").replace(" ", "-")
    within = [each for each in names if spelt in each]
    ids = difflib.get_close_matches(number, RULES, n=1, cutoff=0.8)
    return (ids or difflib.get_close_matches(spelt, names, n=3) or within)[:3]


def no_such_rule(word: str) -> str:
    """What to say about a rule that there is not."""
    near = nearest(word)
    advice = f"did you mean {' or '.join(near)}?" if near else "`answerback rule` lists them"
    return f"no rule is called {word!r}; {advice}"


def selected(select: Sequence[str], ignore: Sequence[str]) -> frozenset[str]:
    """The ids of the rules that the words pick: ids, beginnings of ids, or names."""
    picked = {each for word in select for each in _matching(word)} if select else set(RULES)
    return frozenset(picked - {each for word in ignore for each in _matching(word)})


def _matching(word: str) -> list[str]:
    found = [each for each in RULES if each.startswith(word.upper())]
    one = named(word)
    if not found and one is None:
        raise ValueError(no_such_rule(word))
    return found or [one.id] if one is not None else found
