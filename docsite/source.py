"""The pages that the site is built from: those of `docs/`, and some that are beside it.

A page may link to any file of the repository. The links are rewritten, so that each leads to a
page of the site or to a copy of the file in the folder `files` of the site.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from .markdown_links import replace_links

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
BESIDE = {
    "CONTRIBUTING.md": "contributors/contributing.md",
    "CHANGELOG.md": "contributors/changelog.md",
}
"""The pages in the root of the repository, and where they are in the site."""


def write_source(folder: Path) -> None:
    """Write the source of the site into *folder*, which is empty or missing."""
    shutil.copytree(DOCS, folder)
    pages = {page: str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")}
    pages |= {ROOT / name: place for name, place in BESIDE.items()}
    for page, place in pages.items():
        text = replace_links(
            page.read_text(encoding="utf-8"),
            lambda link, page=page, place=place: _moved(link, page, place, folder),
        )
        (folder / place).write_text(text, encoding="utf-8")


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
