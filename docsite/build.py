"""Builds the site in a temporary folder, and then puts it in the place of the old one."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from .for_models import write_for_models
from .source import ROOT, write_source

SITE = ROOT / "site"


class BuildError(Exception):
    """Zensical could not build the site."""


def build(site: Path) -> int:
    """Build the site at *site*, and return the number of its pages."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_source(folder / "docs")
        shutil.copyfile(ROOT / "mkdocs.yml", folder / "mkdocs.yml")
        _run_zensical(folder)
        write_for_models(folder / "docs", folder / "site")
        shutil.rmtree(site, ignore_errors=True)
        shutil.copytree(folder / "site", site)
    return sum(1 for page in site.rglob("*.md"))


def _run_zensical(folder: Path) -> None:
    command = [sys.executable, "-m", "zensical", "build", "--strict"]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        raise BuildError(f"zensical build ended with {ran.returncode}:\n{ran.stdout}{ran.stderr}")
