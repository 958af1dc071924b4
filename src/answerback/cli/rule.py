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
    parser = program.parser("rule", "[RULE]", epilog="Without a rule, all rules are listed.")
    help = "AB101, or missing-success; AB1 lists a family"
    parser.add_argument("rule", nargs="?", metavar="RULE", help=help)
    word: str | None = parser.parse_args(arguments).rule
    if word is None:
        text = _list_rules(FAMILIES)
    elif (family := word.upper()) in FAMILIES:
        text = _list_rules({family: FAMILIES[family]})
    elif (rule := find_rule(word)) is not None:
        text = terminal_page(rule)
    else:
        raise NoSuchRule(unknown_rule_message(word))
    print_line(text)
    return 0


def _list_rules(families: Mapping[str, str]) -> str:
    lines = []
    for prefix, family in families.items():
        lines += ["", f"{family}:"]
        for rule in RULES.values():
            if rule.id.startswith(prefix):
                lines.append(f"  {rule.id}  {rule.severity:7}  {rule.name}")
    return "\n".join(lines[1:])
