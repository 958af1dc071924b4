"""Each rule does what its page says, and its page is what it does."""

from __future__ import annotations

import copy
import re
from pathlib import Path

import pytest

from answerback.rules.catalogue import FAMILIES, RULES, named, selected
from answerback.rules.finding import Example, Rule
from answerback.rules.repair import repair
from answerback.rules.reply_view import Circumstances
from answerback.rules.rule_pages import findings_of, pages
from answerback.versions import VERSIONS

DOCS = Path(__file__).parent.parent.parent / "docs" / "rules"
EACH = pytest.mark.parametrize("rule", RULES.values(), ids=lambda rule: f"{rule.id}-{rule.name}")
# In these an error says something, bytes stand in a text, or there is no base64 to mend:
# what only the author can put right is left as it is.
BEYOND_REPAIR = ("AB107", "AB401", "AB601")
FIXED = [rule for rule in RULES.values() if rule.fix is not None]


def given(example: Example) -> Circumstances:
    version = VERSIONS[example.version] if example.version else None
    return Circumstances(version, example.schema, example.method, example.listed)


@EACH
def test_a_rule_finds_its_bad_example(rule: Rule) -> None:
    assert rule.id in {number for number, _ in findings_of(rule.bad)}


@EACH
def test_nothing_is_found_in_the_good_example_of_a_rule(rule: Rule) -> None:
    assert findings_of(rule.good) == []


@EACH
def test_a_rule_says_why_in_one_sentence_and_what_to_do(rule: Rule) -> None:
    assert rule.why.endswith(".")
    assert ". " not in rule.why
    assert rule.hint


@EACH
def test_a_rule_is_numbered_by_its_family_and_named_in_words(rule: Rule) -> None:
    assert re.fullmatch(r"AB\d{3}", rule.id)
    assert rule.id[:3] in FAMILIES
    assert re.fullmatch(r"[a-z]+(-[a-z0-9]+)*", rule.name)


@pytest.mark.parametrize("rule", FIXED, ids=lambda rule: rule.id)
def test_a_rule_that_can_be_repaired_is_repaired_in_its_bad_example(rule: Rule) -> None:
    reply = copy.deepcopy(rule.bad.made())

    left = repair(reply, rule.bad.dialect, given(rule.bad))

    assert (rule.id in {each.rule for each in left}) == (rule.id in BEYOND_REPAIR)


def test_what_is_repaired_once_is_not_repaired_again() -> None:
    for rule in FIXED:
        reply = copy.deepcopy(rule.bad.made())
        repair(reply, rule.bad.dialect, given(rule.bad))
        again = copy.deepcopy(reply)

        repair(again, rule.bad.dialect, given(rule.bad))

        assert again == reply, rule.id


def test_a_good_reply_is_not_changed_by_a_repair() -> None:
    for rule in RULES.values():
        reply = rule.good.made()
        if isinstance(reply, dict):
            before = copy.deepcopy(reply)

            repair(reply, rule.good.dialect, given(rule.good))

            assert reply == before, rule.id


def test_there_are_rules_of_every_family() -> None:
    assert {rule.id[:3] for rule in RULES.values()} == set(FAMILIES)


def test_names_are_used_once() -> None:
    assert len({rule.name for rule in RULES.values()}) == len(RULES)


def test_the_pages_in_docs_are_those_of_the_rules() -> None:
    """`python -m answerback.rules.rule_pages` writes them."""
    there = {path.name: path.read_text() for path in DOCS.glob("*.md")}

    assert there == pages()


@pytest.mark.parametrize("word", ["AB101", "ab101", "missing-success"])
def test_a_rule_is_found_by_its_id_and_by_its_name(word: str) -> None:
    rule = named(word)

    assert rule is not None
    assert rule.id == "AB101"


def test_rules_are_picked_by_family_by_id_and_by_name() -> None:
    leaks = {number for number in RULES if number.startswith("AB5")}

    assert selected(["AB5"], []) == leaks
    assert selected(["AB5", "missing-success"], ["AB501"]) == leaks - {"AB501"} | {"AB101"}
    assert selected([], ["AB"]) == frozenset()


def test_a_rule_that_there_is_not_cannot_be_picked() -> None:
    with pytest.raises(ValueError, match="no rule is called 'AB999'"):
        selected(["AB999"], [])
