"""The pages of the public API: `docs/reference/api/`."""

from __future__ import annotations

import builtins
import re
from collections.abc import Iterator
from dataclasses import replace

from .guides import DEFAULTS, GUIDES
from .markdown import anchor, table, title_of
from .plan import HEADINGS, MET, PAGES, Page
from .source import Callable, Class, Parameter, alias_of, defaults_in, described, find

Shown = Class | Callable | Parameter


def api_pages() -> dict[str, str]:
    """Return all pages, by their path below `docs/reference/`."""
    return {f"api/{page.file}.md": _page(page) for page in PAGES} | {"api/index.md": _index()}


def entries(page: Page) -> Iterator[tuple[str, str]]:
    """Yield the module and the name of everything on a page, in order."""
    for line in page.names:
        module, _, names = line.partition(": ")
        yield from ((module, name) for name in names.split())


def _index() -> str:
    lines = [
        "# API",
        "",
        "Everything that you import, by page. `make reference` writes these pages",
    ]
    lines += ["from the source: signatures, options, defaults and their meaning.", ""]
    for page in PAGES:
        rows = []
        for module, name in entries(page):
            if module not in MET:
                text = _first_sentence(_text(described(module, name)))
                link = f"[`{name}`]({page.file}.md#{anchor(_heading(module, name))})"
                rows.append([link, f"`{module}`", text])
        lines += [f"## {page.title}", "", *table(["name", "from", "is"], rows)]
    return "\n".join(lines)


def _text(shown: Shown) -> str:
    return shown.meaning if isinstance(shown, Parameter) else shown.text


def _first_sentence(text: str) -> str:
    sentence = re.split(r"(?<=[.!?])\s", " ".join(text.split()), maxsplit=1)[0]
    return sentence.partition(": `")[0]


def _heading(module: str, name: str) -> str:
    """Return a name's heading; the same name of several modules has its module's name too."""
    if module.startswith("answerback.middleware"):
        return f"{name} of {module}"
    return HEADINGS.get(name, name)


def _page(page: Page) -> str:
    lines = [f"# {page.title}", "", page.intro, ""]
    done = set()
    for module, name in entries(page):
        found = find(module, name)
        if found in done:
            continue
        done.add(found)
        lines += [f"## {_heading(module, name)}", ""]
        if module not in MET:
            lines += ["```py", f"from {module} import {name}", "```", ""]
        shown = described(module, name)
        if isinstance(shown, Class):
            lines += _class(shown, module, _explained(page))
        elif isinstance(shown, Callable):
            lines += _callable(shown, name)
        else:
            lines += [f"`{shown.default or shown.type}`", "", shown.meaning, ""]
    lines += _types(page)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip() + "\n"


def _explained(page: Page) -> set[str]:
    """Return the methods that some class of the page explains: others that have them need not."""
    shown = [described(module, name) for module, name in entries(page)]
    classes = [each for each in shown if isinstance(each, Class)]
    return {method.name for each in classes for method in each.methods if method.text}


def _class(shown: Class, module: str, explained: set[str]) -> list[str]:
    lines = []
    if shown.made is not None:
        lines += _code(shown.made.signatures)
    lines += [shown.made.text if shown.made and shown.made.text else shown.text, ""]
    if linked := [_link(base) for base in shown.bases if _link(base)]:
        lines += [f"It has everything of {' and '.join(linked)}.", ""]
    if shown.made is not None:
        lines += _parameters(shown.made, shown.name)
    if shown.attributes:
        rows = shown.attributes
        if shown.has_options:
            defaults = defaults_in(_home(module, shown.name), DEFAULTS.get(shown.name, ""))
            rows = [
                Parameter(each.name, each.type, defaults.get(each.name, ""), each.meaning)
                for each in rows
            ]
        lines += _table(rows, shown.name, "option" if shown.has_options else "attribute")
    for method in shown.methods:
        if not method.text and method.name in explained:
            continue
        lines += [
            f"### {shown.name}.{method.name}",
            "",
            *_callable(method, f"{shown.name}.{method.name}"),
        ]
    return lines


def _home(module: str, name: str) -> str:
    found = find(module, name)
    return found.module if found else module


def _callable(shown: Callable, where: str) -> list[str]:
    return [*_code(shown.signatures), shown.text, "", *_parameters(shown, where)]


def _code(signatures: list[str]) -> list[str]:
    return ["```py", *signatures, "```", ""]


def _parameters(shown: Callable, where: str) -> list[str]:
    summary = _first_sentence(shown.text)
    # The sentence about a function explains its positional parameters.
    rows = [
        each
        for each in shown.parameters
        if each.is_option or (each.meaning and _first_sentence(each.meaning) != summary)
    ]
    lines = _table(rows, where, "parameter") if rows else []
    for option in shown.options:
        name = option.partition(":")[2]
        lines += [f"It takes the {_link(name).replace('[O', '[o', 1)}.", ""]
    raised = [_link(each) or f"`{each}`" for each in shown.raises if _is_public_error(each)]
    if raised:
        lines += [f"Raises {', '.join(raised)}.", ""]
    return lines


def _is_public_error(name: str) -> bool:
    return bool(_link(name)) or hasattr(builtins, name)


def _meaning(row: Parameter) -> str:
    """Return the meaning without the parameter's name at its start: "`url` is the page" …"""
    text = re.sub(rf"^`{row.name}` (is |are )?", "", row.meaning)
    return text if text == row.meaning else text[:1].upper() + text[1:]


def _table(rows: list[Parameter], where: str, first: str) -> list[str]:
    has_defaults = any(row.default is not None for row in rows)
    head = [first, "type", *(["default"] if has_defaults else []), "meaning"]
    lines = []
    for row in rows:
        guide = GUIDES.get(f"{where}.{row.name}")
        more = f" See [{title_of(guide)}](../../{guide})." if guide else ""
        default = [f"`{row.default}`" if row.default else "–"] if has_defaults else []
        kind = f"`{row.type}`" if row.type else ""
        lines.append([f"`{row.name}`", kind, *default, _meaning(row) + more])
    return table(head, lines)


def _types(page: Page) -> list[str]:
    """Return the table of the types that the page names and does not explain."""
    found: dict[str, str] = {}
    for module, name in entries(page):
        home = _home(module, name)
        for word in dict.fromkeys(
            re.findall(r"\b[A-Z]\w*[a-z]\w*", _types_in(described(module, name)))
        ):
            if word not in found and not _link(word) and (text := alias_of(home, word)):
                found[word] = text
    rows = [[f"`{word}`", text] for word, text in sorted(found.items())]
    return ["## Types on this page", "", *table(["type", "is"], rows)] if rows else []


def _types_in(shown: Shown) -> str:
    match shown:
        case Parameter():
            return shown.type
        case Callable():
            return " ".join(shown.signatures)
    made = shown.made.signatures if shown.made else []
    methods = [text for each in shown.methods for text in each.signatures]
    return " ".join([*made, *methods, *(each.type for each in shown.attributes)])


def _link(name: str) -> str:
    """Return a link to a name's heading; empty if no page has it."""
    for page in PAGES:
        for module, each in entries(page):
            if each == name:
                heading = _heading(module, name)
                shown = f"`{name}`" if heading == name else heading
                return f"[{shown}]({page.file}.md#{anchor(heading)})"
    return ""


def gaps() -> list[str]:
    """Return everything public on these pages that has no sentence."""
    return [
        gap
        for page in PAGES
        for module, name in entries(page)
        for gap in _gaps_of(described(module, name), f"{module}.{name}", _explained(page))
    ]


def _gaps_of(shown: Shown, where: str, explained: set[str]) -> Iterator[str]:
    if isinstance(shown, Parameter):
        if not shown.meaning:
            yield where
        return
    if not shown.text and not (isinstance(shown, Class) and shown.made and shown.made.text):
        yield where
    if isinstance(shown, Callable):
        unexplained = [each for each in shown.parameters if each.is_option and not each.meaning]
        yield from (f"{where}({each.name})" for each in unexplained)
        return
    if shown.made is not None and (shown.text or shown.made.text):
        yield from _gaps_of(replace(shown.made, text="…"), where, explained)
    yield from (f"{where}.{each.name}" for each in shown.attributes if not each.meaning)
    for method in shown.methods:
        if method.text or method.name not in explained:
            yield from _gaps_of(method, f"{where}.{method.name}", explained)
