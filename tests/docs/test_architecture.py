"""The architecture page and CONTRIBUTING.md name the modules, tests and layers that exist."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "contributors" / "architecture.md").read_text()
PATH = re.compile(r"`((?:\w+/)+(?:\w+(?:\.\w+)+)?|\w+\.(?:py|toml))`")


def layers_on_the_page() -> list[set[str]]:
    table = PAGE.partition("\n| layer |")[2].partition("\n\n")[0]
    first_cells = [row.split("|")[1] for row in table.splitlines()[2:]]
    return [set(re.findall(r"`(\w+)`", cell)) for cell in first_cells]


def layers_of_the_project() -> list[set[str]]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    (contract,) = project["tool"]["importlinter"]["contracts"]
    return [set(re.findall(r"\w+", layer)) for layer in contract["layers"]]


def test_every_path_on_the_architecture_page_exists() -> None:
    paths = set(PATH.findall(PAGE)) - {"src/"}
    folders = (ROOT, ROOT / "src" / "answerback")

    missing = {path for path in paths if not any((each / path).exists() for each in folders)}

    assert len(paths) > 50
    assert missing == set()


def packages() -> set[str]:
    return {path.parent.name for path in (ROOT / "src" / "answerback").glob("*/__init__.py")}


def test_every_package_is_on_the_architecture_page() -> None:
    assert packages() - set(re.findall(r"`(\w+)/?", PAGE)) == set()


def test_contributing_names_every_package() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text()

    assert set(re.findall(r"`src/answerback/(\w+)/`", page)) == packages()


def test_the_layers_on_the_architecture_page_are_those_that_are_enforced() -> None:
    assert layers_on_the_page() == layers_of_the_project()
    assert len(layers_on_the_page()) <= 15
