"""Generates each rule's documentation, for `docs/reference/rules/` and for the terminal.

`python -m answerback.rules.rule_pages FOLDER` writes all pages.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from ..core.versions import VERSIONS
from .catalogue import FAMILIES, RULES
from .finding import Example, Rule
from .reply_view import CheckContext
from .validation import check, validate

_MAX_STRING = 160
_DIALECTS = {"mcp": "MCP", "envelope": "envelope", "rest": "REST", "problem": "problem"}


def page(rule: Rule) -> str:
    """Return the Markdown page for one rule."""
    repaired = " Repaired by `answerback lint --fix`." if rule.fix else ""
    off = f"`answerback lint --ignore {rule.id}` switches it off."
    summary = [f"{rule.severity.capitalize()}. Applies to {_applies_to(rule)}.{repaired} {off}"]
    lines = [f"# {rule.id} {rule.name}", "", rule.why, "", *summary, ""]
    lines += ["## Not like this", "", *_conditions(rule.bad), *_fenced(rule.bad), ""]
    lines += [f"> {message}" for message in _messages(rule)]
    lines += ["", rule.hint[:1].upper() + rule.hint[1:] + "." if rule.hint else "", ""]
    lines += ["## Like this instead", "", *_conditions(rule.good), *_fenced(rule.good)]
    return "\n".join(lines).replace("\n\n\n", "\n\n") + "\n"


def index() -> str:
    """Return the Markdown page that lists all rules."""
    lines = ["# Rules", "", "The rules for replies. `answerback lint` checks recorded replies,"]
    lines += ["and `validate` your own; `answerback rule AB101` shows a page in the terminal."]
    lines += ["`--ignore AB203` switches a rule off, and `--select AB1` checks only some; see"]
    lines += ["[lint's options](../../guides/lint.md#on-the-command-line).", ""]
    for beginning, family in FAMILIES.items():
        lines += [
            f"## {family.capitalize()}",
            "",
            "| rule | | applies to | why |",
            "|---|---|---|---|",
        ]
        for rule in RULES.values():
            if rule.id.startswith(beginning):
                name = f"[{rule.id}]({rule.id}.md) {rule.name}"
                mark = " \U0001f527" if rule.fix else ""
                lines += [f"| {name}{mark} | {rule.severity} | {_applies_to(rule)} | {rule.why} |"]
        lines.append("")
    lines += ["`answerback lint --fix` can repair violations of rules marked with \U0001f527."]
    return "\n".join(lines) + "\n"


def terminal_page(rule: Rule) -> str:
    """Return the description of one rule as plain text."""
    lines = [f"{rule.id} {rule.name} ({rule.severity}; {_applies_to(rule)})", "", rule.why, ""]
    lines += ["not like this:", *_indented(rule.bad)]
    lines += [f"  → {message}" for message in _messages(rule)]
    lines += ["", "like this instead:", *_indented(rule.good)]
    lines += ["", f"hint: {rule.hint}"] if rule.hint else []
    lines += ["`answerback lint --fix` repairs it."] if rule.fix else []
    return "\n".join(lines)


def pages() -> dict[str, str]:
    """Return all pages, by file name."""
    return {"index.md": index()} | {f"{rule.id}.md": page(rule) for rule in RULES.values()}


def example_findings(example: Example) -> list[tuple[str, str]]:
    """Return the rule id and the message of each finding in an example."""
    version = VERSIONS[example.version] if example.version else None
    context = CheckContext(
        version, example.schema, example.method, example.listed, example.max_chars
    )
    reply = example.build_reply()
    if isinstance(reply, bytes):
        findings = validate(reply, example.dialect)
    else:
        findings = check(reply, example.dialect, context)
    return [(each.rule, each.message) for each in findings]


def _messages(rule: Rule) -> list[str]:
    return [message for rule_id, message in example_findings(rule.bad) if rule_id == rule.id]


def _applies_to(rule: Rule) -> str:
    names = ", ".join(_DIALECTS[each] for each in rule.scope.dialects)
    if rule.scope.part == "tool":
        return f"{names}: the list of tools"
    if rule.scope.part == "rpc":
        return f"{names}: JSON-RPC errors"
    return f"{names}, failures only" if rule.scope.when == "failure" else names


def _conditions(example: Example) -> list[str]:
    has_no_schema = example.listed and example.schema is None
    conditions = [
        f"in reply to `{example.method}`" if example.method else "",
        f"in MCP {example.version}" if example.version else "",
        "from a tool whose output schema is below" if example.schema else "",
        "from a tool that declares no output schema" if has_no_schema else "",
        f"from a tool that allows {example.max_chars:,} characters" if example.max_chars else "",
        f"as {_DIALECTS[example.dialect]}" if example.dialect in ("rest", "problem") else "",
    ]
    text = ", ".join(each for each in conditions if each)
    return [text[:1].upper() + text[1:] + ":", ""] if text else []


def _fenced(example: Example) -> list[str]:
    lines = ["```json", *_json(example.build_reply()).splitlines(), "```"]
    if example.schema is not None:
        lines += ["", "```json", *_json(example.schema).splitlines(), "```"]
    return lines


def _indented(example: Example) -> list[str]:
    return [f"  {line}" for line in _json(example.build_reply()).splitlines()]


def _json(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode()
    return json.dumps(_shortened(value), indent=2, ensure_ascii=False)


def _shortened(value: Any) -> Any:
    match value:
        case str() if len(value) > _MAX_STRING:
            return f"{value[:60]}… ({len(value):,} characters)"
        case dict():
            return {name: _shortened(each) for name, each in value.items()}
        case list():
            return [_shortened(each) for each in value]
    return value


def main(folder: str) -> None:
    """Write every page, and delete pages for rules that no longer exist."""
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    written = pages()
    for old in target.glob("*.md"):
        if old.name not in written:
            old.unlink()
    for name, text in written.items():
        (target / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "docs/reference/rules")
