"""The pages of the public API: `docs/reference/api/`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from .classes import Class, defaults_in, described
from .functions import Callable, Parameter
from .guides import DEFAULTS, GUIDES
from .markdown import anchor, table, title_of
from .plan import HEADINGS, MET, PAGES, Page
from .source import alias_of, find

Shown = Class | Callable | Parameter


def api_pages() -> dict[str, str]:
    """Return all pages, by their path below `docs/reference/`."""
    return {f"api/{page.file}.md": _page(page) for page in PAGES} | {"api/index.md": _index()}


def entries(page: Page) -> Iterator[tuple[str, str]]:
    """Yield the module and the name of everything on a page, in order."""
    for line in page.names:
        module, _, names = line.partition(": ")
        yield from ((module, name) for name in names.split())


def _shown_on(page: Page) -> Iterator[tuple[str, str, Shown]]:
    """Yield each name on a page, with its module and what is shown of it.

    A method that another class of the page explains, such as a protocol, is not shown again.
    """
    found = [(module, name, described(module, name)) for module, name in entries(page)]
    classes = [each for _, _, each in found if isinstance(each, Class)]
    explained = {method.name for each in classes for method in each.methods if method.text}
    for module, name, shown in found:
        if isinstance(shown, Class):
            methods = [each for each in shown.methods if each.text or each.name not in explained]
            shown = replace(shown, methods=methods)
        yield module, name, shown


def gaps() -> list[str]:
    """Return everything public on these pages that has no sentence."""
    return [
        gap for page in PAGES for *place, shown in _shown_on(page) for gap in _gaps(place, shown)
    ]


def _gaps(place: list[str], shown: Shown) -> Iterator[str]:
    where = ".".join(place)
    match shown:
        case Parameter(meaning=meaning):
            yield from [] if meaning else [where]
        case Callable(text=text, parameters=rows):
            yield from [] if text else [where]
            yield from (f"{where}({row.name})" for row in rows if row.by_name and not row.meaning)
        case Class(text=text, made=made, attributes=attributes, methods=methods):
            rows = [*(made.parameters if made else ()), *attributes]
            yield from [] if text or (made and made.text) else [where]
            yield from (f"{where}.{row.name}" for row in rows if not (row.meaning and row.type))
            for method in methods:
                yield from _gaps([*place, method.name], method)


def _index() -> str:
    lines = [
        "# API",
        "",
        "Everything that you import, by page. In a table of options, – is the default of an",
    ]
    lines += ["option that is not set unless you give it.", ""]
    for page in PAGES:
        rows = []
        for module, name, shown in _shown_on(page):
            if module not in MET:
                text = shown.meaning if isinstance(shown, Parameter) else shown.text
                link = f"[`{name}`]({page.file}.md#{anchor(_heading(module, name))})"
                first = _first_sentence(text).partition(": `")[0].rstrip(".") + "."
                rows.append([link, f"`{module}`", first])
        lines += [f"## {page.title}", "", *table(["name", "from", "is"], rows)]
    return "\n".join(lines)


def _first_sentence(text: str) -> str:
    return re.split(r"(?<=[.!?])\s", " ".join(text.split()), maxsplit=1)[0]


def _heading(module: str, name: str) -> str:
    """Return a name's heading; the same name of several modules has its module's name too."""
    if module.startswith("answerback.middleware"):
        return f"{name} of {module}"
    return HEADINGS.get(name, name)


def _place(name: str) -> tuple[str, str] | None:
    """Return a name's heading and the address of it; None if no page has it."""
    for page in PAGES:
        for module, each in entries(page):
            if each == name:
                heading = _heading(module, name)
                return heading, f"{page.file}.md#{anchor(heading)}"
    return None


def _link(name: str) -> str:
    """Return a link to a name's heading; empty if no page has it."""
    heading, place = _place(name) or ("", "")
    shown = f"`{name}`" if heading == name else heading[:1].lower() + heading[1:]
    return f"[{shown}]({place})" if place else ""


def _page(page: Page) -> str:
    lines = [f"# {page.title}", "", page.intro, ""]
    done = set()
    for module, name, shown in _shown_on(page):
        found = find(module, name)
        assert found is not None
        if found in done:
            continue
        done.add(found)
        lines += [f"## {_heading(module, name)}", ""]
        if module not in MET:
            lines += ["```py", f"from {module} import {name}", "```", ""]
        match shown:
            case Class():
                lines += _class(shown, found.module)
            case Callable():
                lines += _callable(shown, name)
            case Parameter():
                lines += [f"`{shown.default}`", "", shown.meaning, ""]
    lines += _types(page)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines))


def _class(shown: Class, home: str) -> list[str]:
    made = shown.made
    lines = [*_code(made.signatures if made else []), (made and made.text) or shown.text, ""]
    if linked := [_link(base) for base in shown.bases if _link(base)]:
        lines += [f"It has everything of {' and '.join(linked)}.", ""]
    if made is not None:
        lines += [*_table(made.parameters, shown.name, "parameter"), *_options_and_errors(made)]
    rows = shown.attributes
    if shown.has_options:
        defaults = defaults_in(home, DEFAULTS.get(shown.name, ""))
        rows = [replace(each, default=defaults.get(each.name, "")) for each in rows]
    lines += _table(rows, shown.name, "option" if shown.has_options else "attribute")
    for method in shown.methods:
        where = f"{shown.name}.{method.name}"
        lines += [f"### {where}", "", *_callable(method, where)]
    return lines


def _callable(shown: Callable, where: str) -> list[str]:
    summary = _first_sentence(shown.text)
    # The sentence about a function explains the parameters that it names.
    explained = ("", summary)
    rows = [row for row in shown.parameters if _first_sentence(row.meaning) not in explained]
    table_of_rows = _table(rows, where, "parameter")
    return [*_code(shown.signatures), shown.text, "", *table_of_rows, *_options_and_errors(shown)]


def _code(signatures: list[str]) -> list[str]:
    return ["```py", *signatures, "```", ""] if signatures else []


def _options_and_errors(shown: Callable) -> list[str]:
    lines = []
    for option in shown.options:
        lines += [f"It takes the {_link(option.partition(':')[2])}.", ""]
    raised = ", ".join(filter(None, map(_link, shown.raises)))
    return [*lines, f"Raises {raised}.", ""] if raised else lines


def _table(rows: list[Parameter], where: str, first: str) -> list[str]:
    if not rows:
        return []
    has_defaults = any(row.default is not None for row in rows)
    head = [first, "type", *(["default"] if has_defaults else []), "meaning"]
    lines = []
    for row in rows:
        guide = GUIDES.get(f"{where}.{row.name}")
        more = f" See [{title_of(guide)}](../../{guide})." if guide else ""
        default = "required" if row.default is None and not row.stars else "–"
        default = f"`{row.default}`" if row.default else default
        cells = [_type(row), *([default] if has_defaults else []), _meaning(row) + more]
        lines.append([f"`{row.name}`", *cells])
    return table(head, lines)


def _type(row: Parameter) -> str:
    """Return a type, with a link to the first name in it that a page explains."""
    shown = f"`{row.stars}{row.type}`" if row.type else ""
    places = filter(None, map(_place, re.findall(r"\b[A-Z]\w+", row.type)))
    return next((f"[{shown}]({place})" for _, place in places), shown)


def _meaning(row: Parameter) -> str:
    """Return the meaning without the parameter's name at its start: "`url` is the page" …"""
    text = re.sub(rf"^`{row.name}` (is |are )?(?!and )", "", row.meaning)
    return text if text == row.meaning else text[:1].upper() + text[1:]


def _types(page: Page) -> list[str]:
    """Return the table of the types that the page names and no page explains."""
    found: dict[str, str] = {}
    for module, name, shown in _shown_on(page):
        home = find(module, name)
        for word in re.findall(r"\b[A-Z]\w*[a-z]\w*", _types_in(shown)):
            if word not in found and home is not None and not _link(word):
                found[word] = alias_of(home.module, word)
    rows = [[f"`{word}`", text] for word, text in sorted(found.items()) if text]
    return ["## Types on this page", "", *table(["type", "is"], rows)] if rows else []


def _types_in(shown: Shown) -> str:
    match shown:
        case Callable(signatures=signatures):
            return " ".join(signatures)
        case Class(made=made, methods=methods, attributes=attributes):
            parts = [*(made.signatures if made else ()), *(each.type for each in attributes)]
            return " ".join([*parts, *map(_types_in, methods)])
    return ""
