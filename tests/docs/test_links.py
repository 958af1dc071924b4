"""Every link has a target, the map has every page, and the code names pages that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
SHELVES = ["start", "guides", "reference", "contributors"]
NAMING = ("src/**/*.py", "tests/**/*.py", "tests/**/*.toml", "examples/*.py", "Makefile", "*.toml")
_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)[^)]*\)")
_NAMED = re.compile(r"(?<![\w/.-])docs/[\w/-]*[\w-](?:\.md|/)")


def prose(page: Path) -> str:
    """The page without its blocks of code."""
    return _FENCE.sub("", page.read_text())


def anchors(page: Path) -> set[str]:
    """The anchors of the page's headings; GitHub numbers those that repeat."""
    found: set[str] = set()
    for heading in re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE):
        anchor = re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-")
        times = sum(re.sub(r"-\d+$", "", each) == anchor for each in found)
        found.add(f"{anchor}-{times}" if times else anchor)
    return found


def links(page: Path) -> list[str]:
    return [link for link in _LINK.findall(prose(page)) if "://" not in link]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_has_a_target(page: Path) -> None:
    for link in links(page):
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        assert target.is_file(), link
        assert not anchor or anchor in anchors(target), link


def test_the_map_has_one_line_for_each_page_on_its_shelf() -> None:
    lines = re.findall(r"^ *- \[[^\]]+\]\(([^)#]+)\): .+$", (DOCS / "index.md").read_text(), re.M)
    pages = [str(page.relative_to(DOCS)) for page in DOCS.glob("*/**/*.md")]

    mapped = [line for line in lines if not line.startswith("../")]
    expected = {page for page in pages if "rules/AB" not in page}
    assert expected - set(mapped) == set(), "add a line to docs/index.md"
    assert sorted(mapped) == sorted(expected)
    shelves = [line.partition("/")[0] for line in mapped]
    assert shelves == sorted(shelves, key=SHELVES.index)


def test_every_page_is_on_one_of_the_shelves() -> None:
    assert {page.name for page in DOCS.iterdir() if page.is_dir()} == {*SHELVES, "assets"}
    assert [page.name for page in DOCS.glob("*.md")] == ["index.md"]


def test_the_pages_that_code_and_settings_name_exist() -> None:
    files = [file for pattern in NAMING for file in ROOT.glob(pattern)]
    named = {
        (file.name, name)
        for file in files
        for name in _NAMED.findall(file.read_text())
        if not name.startswith("docs/en/")
    }

    assert len(named) > 15
    assert [each for each in named if not (ROOT / each[1]).exists()] == []
