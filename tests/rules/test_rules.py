"""Each rule finds its bad example, passes its good one, and has an up-to-date page in docs."""

from __future__ import annotations

import copy
import re
from pathlib import Path

import pytest

from answerback.core.versions import VERSIONS
from answerback.rules.catalogue import FAMILIES, RULES, find_rule, select_rules
from answerback.rules.finding import Example, Rule
from answerback.rules.reply_view import CheckContext
from answerback.rules.rule_pages import example_findings, pages
from answerback.rules.validation import repair

DOCS = Path(__file__).parent.parent.parent / "docs" / "reference" / "rules"
EACH_RULE = pytest.mark.parametrize(
    "rule", RULES.values(), ids=lambda rule: f"{rule.id}-{rule.name}"
)
# The bad examples of these rules cannot be repaired: the error has a message, the data is not
# base64, or a text block holds the bytes of an image.
NOT_REPAIRABLE = ("AB107", "AB401", "AB601")
RULES_WITH_FIX = [rule for rule in RULES.values() if rule.fix is not None]


def context_of(example: Example) -> CheckContext:
    version = VERSIONS[example.version] if example.version else None
    return CheckContext(version, example.schema, example.method, example.listed, example.max_chars)


@EACH_RULE
def test_a_rule_finds_its_bad_example(rule: Rule) -> None:
    assert rule.id in {rule_id for rule_id, _ in example_findings(rule.bad)}


@EACH_RULE
def test_the_good_example_of_a_rule_has_no_findings(rule: Rule) -> None:
    assert example_findings(rule.good) == []


@EACH_RULE
def test_a_rule_has_a_reason_of_one_sentence_and_a_hint(rule: Rule) -> None:
    assert rule.why.endswith(".")
    assert ". " not in rule.why
    assert rule.hint


@EACH_RULE
def test_a_rule_is_numbered_by_its_family_and_named_in_words(rule: Rule) -> None:
    assert re.fullmatch(r"AB\d{3}", rule.id)
    assert rule.id[:3] in FAMILIES
    assert re.fullmatch(r"[a-z]+(-[a-z0-9]+)*", rule.name)


@pytest.mark.parametrize("rule", RULES_WITH_FIX, ids=lambda rule: rule.id)
def test_a_fix_repairs_the_bad_example_of_its_rule(rule: Rule) -> None:
    reply = copy.deepcopy(rule.bad.build_reply())

    left = repair(reply, rule.bad.dialect, context_of(rule.bad))

    assert (rule.id in {each.rule for each in left}) == (rule.id in NOT_REPAIRABLE)


def test_a_second_repair_changes_nothing() -> None:
    for rule in RULES_WITH_FIX:
        reply = copy.deepcopy(rule.bad.build_reply())
        repair(reply, rule.bad.dialect, context_of(rule.bad))
        again = copy.deepcopy(reply)

        repair(again, rule.bad.dialect, context_of(rule.bad))

        assert again == reply, rule.id


def test_a_repair_does_not_change_a_good_reply() -> None:
    for rule in RULES.values():
        reply = rule.good.build_reply()
        if isinstance(reply, dict):
            before = copy.deepcopy(reply)

            repair(reply, rule.good.dialect, context_of(rule.good))

            assert reply == before, rule.id


def test_every_family_has_rules() -> None:
    assert {rule.id[:3] for rule in RULES.values()} == set(FAMILIES)


def test_rule_names_are_unique() -> None:
    assert len({rule.name for rule in RULES.values()}) == len(RULES)


def test_the_pages_in_docs_are_up_to_date() -> None:
    """`python -m answerback.rules.rule_pages` writes them."""
    written = {path.name: path.read_text() for path in DOCS.glob("*.md")}

    assert written == pages()


@pytest.mark.parametrize("word", ["AB101", "ab101", "missing-success"])
def test_a_rule_is_found_by_its_id_and_by_its_name(word: str) -> None:
    rule = find_rule(word)

    assert rule is not None
    assert rule.id == "AB101"


def test_rules_are_selected_by_family_by_id_and_by_name() -> None:
    leaks = {rule_id for rule_id in RULES if rule_id.startswith("AB5")}

    assert select_rules(["AB5"], []) == leaks
    assert select_rules(["AB5", "missing-success"], ["AB501"]) == leaks - {"AB501"} | {"AB101"}
    assert select_rules([], ["AB"]) == frozenset()


def test_selecting_an_unknown_rule_raises_value_error() -> None:
    with pytest.raises(ValueError, match="no rule is called 'AB999'"):
        select_rules(["AB999"], [])
