"""The pages in the order of `nav` in `mkdocs.yml`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from .source import ROOT


def nav_pages(settings: Path = ROOT / "mkdocs.yml") -> list[str]:
    """The path of each page in `nav`, relative to the folder of the pages."""
    return list(_paths(yaml.safe_load(settings.read_text(encoding="utf-8"))["nav"]))


def _paths(entry: Any) -> Iterator[str]:
    match entry:
        case str():
            yield entry
        case list():
            for each in entry:
                yield from _paths(each)
        case dict():
            for each in entry.values():
                yield from _paths(each)
