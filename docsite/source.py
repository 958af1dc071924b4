"""The pages that the site is built from: those of `docs/`, and some that are beside it.

A page may link to any file of the repository. The links are rewritten, so that each leads to a
page of the site or to a copy of the file in the folder `files` of the site.

The pages are written for repository viewers. Zensical reads another Markdown, Python-Markdown's,
so the few places that it reads differently are rewritten too.
"""

from __future__ import annotations

import os
import re
import shutil
from functools import partial
from pathlib import Path

from .markdown_links import replace_links

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
BESIDE = {
    "CONTRIBUTING.md": "contributors/contributing.md",
    "CHANGELOG.md": "contributors/changelog.md",
    "SECURITY.md": "contributors/security.md",
}
"""The pages in the root of the repository, and where they are in the site."""


def write_source(folder: Path) -> dict[str, str]:
    """Write the source of the site into *folder*, and return the texts of the pages by place.

    The texts are still for repository viewers; those in the folder are for Zensical.
    """
    shutil.copytree(DOCS, folder)
    texts = {}
    pages = {page: str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")}
    pages |= {ROOT / name: place for name, place in BESIDE.items()}
    for page, place in pages.items():
        moved = partial(_moved, page=page, place=place, folder=folder)
        texts[place] = replace_links(page.read_text(encoding="utf-8"), moved)
        (folder / place).write_text(for_zensical(texts[place]), encoding="utf-8")
    return texts


def for_zensical(text: str) -> str:
    """Put a page that a repository viewer shows properly into Python-Markdown."""
    # Blocks of code without a line between them would be parts of one paragraph.
    text = re.sub(r"^```\n(?=```\w)", "```\n\n", text, flags=re.MULTILINE)
    # In code in a table, the backslash before a bar would be shown.
    return re.sub(r"^\|.*", lambda row: _with_bars(row[0]), text, flags=re.MULTILINE)


def _with_bars(row: str) -> str:
    return re.sub(r"`[^`]*`", lambda code: code[0].replace("\\|", "|"), row)


def _moved(link: str, page: Path, place: str, folder: Path) -> str:
    """The link as it must be in the site, where the page is at *place*."""
    name, mark, anchor = link.partition("#")
    file = Path(os.path.normpath(page.parent / name))
    # A link without a target stays as it is: the check of links names it.
    if not name or not file.is_file():
        return link
    moved = os.path.relpath(_place_of(file, folder), os.path.dirname(place) or ".")
    return moved + mark + anchor


def _place_of(file: Path, folder: Path) -> str:
    """Where a file of the repository is in the site; a file without a place is copied."""
    if file.is_relative_to(DOCS):
        return str(file.relative_to(DOCS))
    name = str(file.relative_to(ROOT))
    # The first page of the site says what the README says.
    if name == "README.md":
        return "index.md"
    if name in BESIDE:
        return BESIDE[name]
    # A browser shows a text file; a file of Python or HTML it would download or open.
    copy = folder / "files" / f"{name}.txt"
    copy.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(file, copy)
    return str(copy.relative_to(folder))
