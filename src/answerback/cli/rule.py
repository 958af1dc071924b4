"""`rule`: explain one rule, or list them all."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from ..errors import AnswerbackError
from .program import Program


class NoSuchRule(AnswerbackError):
    code = "NO_SUCH_RULE"


def run(program: Program, arguments: Sequence[str]) -> int:
    parser = program.parser("rule", "[RULE]", epilog="Without a rule, all of them are listed.")
    parser.add_argument("rule", nargs="?", metavar="RULE", help="AB101, or missing-success")
    given = parser.parse_args(arguments)
    sys.stdout.write((listed() if given.rule is None else explained(given.rule)) + "\n")
    return 0


def explained(word: str) -> str:
    from ..rules.catalogue import RULES, named
    from ..rules.pages import in_words

    rule = named(word)
    if rule is None:
        import difflib

        words = [*RULES, *(each.name for each in RULES.values())]
        near = difflib.get_close_matches(word, words, n=2)
        advice = f"did you mean {' or '.join(near)}?" if near else "`answerback rule` lists them"
        raise NoSuchRule(f"no rule is called {word!r}; {advice}")
    return in_words(rule)


def listed() -> str:
    from ..rules.catalogue import FAMILIES, RULES

    lines = []
    for beginning, family in FAMILIES.items():
        lines += ["", f"{family}:"]
        for rule in RULES.values():
            if rule.id.startswith(beginning):
                lines.append(f"  {rule.id}  {rule.severity:7}  {rule.name}")
    return "\n".join(lines[1:])
