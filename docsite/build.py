"""Builds the site in a temporary folder, and then puts it in the place of the old one."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from .for_models import write_for_models
from .nav import nav_pages
from .source import ROOT, write_source

SITE = ROOT / "site"
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class BuildError(Exception):
    """The site cannot be built."""


def build(site: Path) -> int:
    """Build the site at *site*, and return the number of its pages."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        texts = write_source(folder / "docs")
        _check_nav(texts)
        shutil.copyfile(ROOT / "mkdocs.yml", folder / "mkdocs.yml")
        run_zensical(folder)
        write_for_models(texts, folder / "site")
        shutil.rmtree(site, ignore_errors=True)
        shutil.copytree(folder / "site", site)
    return len(texts)


def _check_nav(texts: dict[str, str]) -> None:
    nav = nav_pages()
    problems = [f"{page} is not in nav; add it" for page in texts if page not in nav]
    problems += [f"nav has {page}, which does not exist" for page in nav if page not in texts]
    if problems:
        raise BuildError("\n".join(f"mkdocs.yml: {each}" for each in problems))


def run_zensical(folder: Path) -> None:
    """Build the site of the pages and settings in *folder*; a broken link is a BuildError."""
    command = [sys.executable, "-m", "zensical", "build", "--strict"]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if ran.returncode == 0:
        return
    problems = _COLOUR.sub("", ran.stderr)
    if "--strict flag is set" in problems:
        # The traceback after the broken links only says that.
        problems = problems.partition("Traceback (")[0]
    raise BuildError(f"the site was not built:\n{problems.strip()}")
