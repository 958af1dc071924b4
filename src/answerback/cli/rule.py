"""`rule`: explains one rule, or lists them all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..errors import AnswerbackError
from ..rules.catalogue import FAMILIES, RULES, find_rule, unknown_rule_message
from ..rules.rule_pages import terminal_page
from .program import Program, print_line


class NoSuchRule(AnswerbackError):
    code = "NO_SUCH_RULE"


def run(program: Program, arguments: Sequence[str]) -> int:
    parser = program.parser("rule", "[RULE]", epilog="Without a rule, all of them are listed.")
    help = "AB101, or missing-success; AB1 lists a family"
    parser.add_argument("rule", nargs="?", metavar="RULE", help=help)
    options = parser.parse_args(arguments)
    print_line(_text_for(options.rule))
    return 0


def _text_for(word: str | None) -> str:
    if word is None:
        return _list_rules(FAMILIES)
    family = word.upper()
    return _list_rules({family: FAMILIES[family]}) if family in FAMILIES else _explain(word)


def _explain(word: str) -> str:
    rule = find_rule(word)
    if rule is None:
        raise NoSuchRule(unknown_rule_message(word))
    return terminal_page(rule)


def _list_rules(families: Mapping[str, str]) -> str:
    lines = []
    for prefix, family in families.items():
        lines += ["", f"{family}:"]
        for rule in RULES.values():
            if rule.id.startswith(prefix):
                lines.append(f"  {rule.id}  {rule.severity:7}  {rule.name}")
    return "\n".join(lines[1:])
