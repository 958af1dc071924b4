"""The site for language models: a Markdown twin of each page, `llms.txt` and `llms-full.txt`.

`llms.txt` has the form of https://llmstxt.org: a title, a quoted summary, and lists of links.
"""

from __future__ import annotations

import os
import re
from functools import partial
from pathlib import Path

from .markdown_links import replace_links
from .nav import nav_pages

ALL_PAGES = "## All pages"
"""The heading in `docs/index.md` above the list of all pages, by shelf."""
_ABOUT = """Each page of this site is also there as Markdown: at the same address, with `.md` in
place of `.html`. [llms-full.txt](llms-full.txt) has all pages in one file."""
_LINE = re.compile(r"^ *(?P<entry>- \[[^\]]+\]\((?P<page>[^)#]+)\): .+)$", re.MULTILINE)


def write_for_models(texts: dict[str, str], site: Path) -> None:
    """Write the twins of the pages, whose *texts* are given by path, and both lists into *site*."""
    for page, text in texts.items():
        (site / page).write_text(text, encoding="utf-8")
    texts = {page: texts[page] for page in nav_pages()}
    (site / "llms.txt").write_text(llms(texts), encoding="utf-8")
    (site / "llms-full.txt").write_text(llms_full(texts), encoding="utf-8")


def llms(texts: dict[str, str]) -> str:
    """`llms.txt`, from the texts of the pages by path: the list of the first page, and the rest."""
    first, _, shelves = texts["index.md"].partition(ALL_PAGES)
    title, summary, details = first.split("\n\n")[:3]
    lines = [title, "", f"> {_one_line(summary)}", "", details, "", _ABOUT, ""]
    for shelf in re.split(r"^### ", shelves, flags=re.MULTILINE)[1:]:
        name = shelf.partition("\n")[0]
        lines += [f"## {name}", "", *(found["entry"] for found in _LINE.finditer(shelf)), ""]
    listed = {found["page"] for found in _LINE.finditer(shelves)} | {"index.md"}
    lines += ["## Optional", ""]
    lines += [_entry(page, text) for page, text in texts.items() if page not in listed]
    return "\n".join(lines) + "\n"


def llms_full(texts: dict[str, str]) -> str:
    """All pages in one text, with links that are relative to it."""
    parts = []
    for page, text in texts.items():
        moved = replace_links(text, partial(_from_root, folder=os.path.dirname(page)))
        parts.append(f"<!-- {page} -->\n\n{moved.strip()}\n")
    return "\n".join(parts)


def _entry(page: str, text: str) -> str:
    moved = replace_links(text, partial(_from_root, folder=os.path.dirname(page)))
    title, paragraph = moved.split("\n\n")[:2]
    return f"- [{title.removeprefix('# ')}]({page}): {_one_line(paragraph)}"


def _one_line(paragraph: str) -> str:
    return " ".join(paragraph.split())


def _from_root(link: str, folder: str) -> str:
    return link if link.startswith("#") else os.path.normpath(os.path.join(folder, link))
