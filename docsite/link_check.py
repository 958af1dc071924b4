"""Finds links of the built site that lead nowhere, and files that it loads from other hosts."""

from __future__ import annotations

import os
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

from .markdown_links import is_outside, links

_LOADED = {"link": "href", "img": "src", "script": "src", "source": "srcset", "iframe": "src"}
"""The attributes whose file a browser loads together with the page."""
_NOT_LOADED = {"canonical", "alternate", "prev", "next"}
"""The values of `rel` that make a `link` an ordinary link."""


class Link(NamedTuple):
    target: str
    loads: bool
    """Whether the browser loads the target together with the page."""


class _Page(HTMLParser):
    """The links of a page, and the names that a link to it may have after a `#`."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.links: list[Link] = []
        self.anchors = {"", "top"}
        self.feed(html)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attributes}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.append(Link(values["href"], loads=False))
        elif values.get(_LOADED.get(tag, "")):
            loads = values.get("rel") not in _NOT_LOADED
            self.links.append(Link(values[_LOADED[tag]], loads))


def broken_links(site: Path) -> list[str]:
    """A line for each link without a target: the file that has it, and the link."""
    pages = {
        str(file.relative_to(site)): _Page(file.read_text(encoding="utf-8"))
        for file in sorted(site.rglob("*.html"))
    }
    problems = []
    for name, page in pages.items():
        for link in dict.fromkeys(page.links):
            problems += _problem(name, link, pages, site)
    for file in [*sorted(site.rglob("*.md")), site / "llms.txt", site / "llms-full.txt"]:
        name = str(file.relative_to(site))
        for target in dict.fromkeys(links(file.read_text(encoding="utf-8"))):
            problems += _problem(name, Link(target, loads=False), pages, site)
    return problems


def _problem(name: str, link: Link, pages: dict[str, _Page], site: Path) -> list[str]:
    if is_outside(link.target):
        foreign = link.loads and not link.target.startswith("data:")
        return [f"{name}: loads {link.target} from another host"] if foreign else []
    path, _, anchor = unquote(link.target).partition("#")
    path = path.partition("?")[0]
    # A path that begins with a slash begins at the root of the site.
    target = os.path.normpath(os.path.join(os.path.dirname(name), path)) if path else name
    target = path.lstrip("/") if path.startswith("/") else target
    if (site / target).is_dir():
        target = os.path.normpath(os.path.join(target, "index.html"))
    if not (site / target).is_file():
        return [f"{name}: {link.target} has no target"]
    # The anchors of a Markdown twin are those of its page.
    page = pages.get(target.removesuffix(".md") + ".html" if target.endswith(".md") else target)
    if page is not None and anchor not in page.anchors:
        return [f"{name}: {link.target} has no anchor #{anchor}"]
    return []
