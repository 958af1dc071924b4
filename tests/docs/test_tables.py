"""The tables of hand-written pages match the code: presets, dependencies and files."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from answerback.contract import PRESETS

ROOT = Path(__file__).parent.parent.parent
REFERENCE = ROOT / "docs" / "reference"


def rows(page: Path, heading: str) -> list[list[str]]:
    """The cells of the table whose header begins with *heading*, without their backquotes."""
    table = page.read_text().partition(f"\n| {heading} |")[2].partition("\n\n")[0]
    lines = table.splitlines()[2:]
    return [[cell.strip().strip("`") for cell in line.strip("|").split(" | ")] for line in lines]


def test_the_page_on_contracts_has_every_preset() -> None:
    page = (REFERENCE / "contracts.md").read_text()

    header = next(line for line in page.splitlines() if line.startswith("| | `standard`"))
    assert re.findall(r"`(\w+)`", header) == list(PRESETS)
    body = next(line for line in page.splitlines() if line.startswith("| HTTP body"))
    assert [cell.strip() for cell in body.strip("|").split("|")[1:]] == [
        preset.http for preset in PRESETS.values()
    ]


def test_the_page_on_dependencies_explains_every_dependency() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"].values()
    wanted = [*project["project"]["dependencies"], *(each for extra in extras for each in extra)]
    wanted += project["dependency-groups"]["dev"]

    names = {re.split(r"[^\w-]", each)[0] for each in wanted} - {"answerback"}
    page = (ROOT / "docs" / "contributors" / "dependencies.md").read_text()
    explained = {
        name
        for cell in re.findall(r"^\| ([\w, -]+) \|", page, re.MULTILINE)
        for name in cell.split(", ")
    }
    assert names - explained == set()


def test_every_file_of_ours_on_the_page_on_conventions_exists() -> None:
    page = (REFERENCE / "conventions.md").read_text()
    named = re.findall(r"`((?:examples|tests)/[\w/.]+|(?:[\w]+/)*[\w]+(?:\.py|/))`", page)
    # These are files of the documents themselves.
    theirs = {"services/mcp-server/app.py", "services/agent/app.py"}

    folders = (ROOT, ROOT / "src" / "answerback")
    ours = [name for name in named if name not in theirs and "kuniumi" not in name]
    assert ours
    assert [name for name in ours if not any((each / name).exists() for each in folders)] == []


def test_the_page_on_conventions_has_every_preset() -> None:
    presets = [
        re.findall(r"\w+", row[2])[0] for row in rows(REFERENCE / "conventions.md", "document")
    ]

    assert sorted(presets) == sorted(PRESETS)
