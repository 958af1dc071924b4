"""All the rules, and which of them apply where."""

from __future__ import annotations

from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING

from . import contents, envelope, failures, items, leaks, outputs, result, sizes, structure
from .finding import Rule

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


_MODULES = (contents, envelope, failures, items, leaks, outputs, result, sizes, structure)
RULES = {each.id: each for each in sorted(_rules_in(_MODULES), key=lambda each: each.id)}


@cache
def rules_for(dialect: Dialect, part: Part) -> tuple[Rule, ...]:
    """The rules on a part of a reply in a dialect; worked out once."""
    return tuple(each for each in RULES.values() if dialect in each.dialects and each.part == part)


def named(word: str) -> Rule | None:
    """The rule of that id or name."""
    by_name = {each.name: each for each in RULES.values()}
    return RULES.get(word.upper()) or by_name.get(word.lower())


def selected(select: Sequence[str], ignore: Sequence[str]) -> frozenset[str]:
    """The ids of the rules that the words pick: ids, beginnings of ids, or names."""
    picked = {each for word in select for each in _matching(word)} if select else set(RULES)
    return frozenset(picked - {each for word in ignore for each in _matching(word)})


def _matching(word: str) -> list[str]:
    found = [each for each in RULES if each.startswith(word.upper())]
    one = named(word)
    if not found and one is None:
        raise ValueError(f"no rule is called {word!r}")
    return found or [one.id] if one is not None else found
