"""The wheel and the source distribution: how they are built, and the files in them."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent.parent
SOURCES = "src/"


class Distributions(NamedTuple):
    wheel: Path
    sdist: Path


def build(folder: Path) -> Distributions:
    """Build both into an empty folder: the wheel from the source distribution, as pip would.

    The build backend is that of this environment, so nothing is downloaded.
    """
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"the build failed:\n{done.stdout}")
    (wheel,) = folder.glob("*.whl")
    (sdist,) = folder.glob("*.tar.gz")
    return Distributions(wheel, sdist)


def project_files(with_new: bool = False) -> set[str] | None:
    """The files that git tracks; None outside a repository, as in a source distribution.

    *with_new* adds those that git would track after `git add`.
    """
    if not (ROOT / ".git").exists():
        return None
    new = ["--cached", "--others", "--exclude-standard"] if with_new else []
    command = ["git", "-C", str(ROOT), "ls-files", "-z", *new]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    # A file that was removed without git is listed, but cannot be packed.
    return {name for name in listed.split("\0") if name and (ROOT / name).exists()}


def source_files(with_new: bool = False) -> set[str]:
    """The files of the library, as paths below `src/`."""
    names = project_files(with_new)
    if names is not None:
        return {name.removeprefix(SOURCES) for name in names if name.startswith(SOURCES)}
    folder = ROOT / SOURCES
    found = (each for each in folder.rglob("*") if each.is_file() and each.suffix != ".pyc")
    return {each.relative_to(folder).as_posix() for each in found}


def wheel_files(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def sdist_files(sdist: Path) -> set[str]:
    """The files below the archive's only folder."""
    with tarfile.open(sdist) as archive:
        return {each.name.partition("/")[2] for each in archive if each.isfile()}


def wheel_metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (each for each in archive.namelist() if each.endswith(".dist-info/METADATA"))
        return Parser().parsestr(archive.read(name).decode())


def faults(distributions: Distributions, with_new: bool = False) -> list[str]:
    """A line for each file that is missing in the two archives, or too much."""
    packed = {name for name in wheel_files(distributions.wheel) if ".dist-info/" not in name}
    found = _differences("wheel", packed, source_files(with_new))
    names = project_files(with_new)
    if names is not None:
        # The source distribution has all that git tracks: its tests read the docs and examples.
        found += _differences("sdist", sdist_files(distributions.sdist), names | {"PKG-INFO"})
    return found


def _differences(archive: str, packed: set[str], wanted: set[str]) -> list[str]:
    return [
        *(f"{archive}: {name} is missing" for name in sorted(wanted - packed)),
        *(f"{archive}: {name} does not belong there" for name in sorted(packed - wanted)),
    ]


def check_metadata(distributions: Distributions) -> str:
    """The complaints of `twine check`; an empty string if there are none."""
    command = [sys.executable, "-m", "twine", "--no-color", "check", "--strict"]
    done = subprocess.run(
        [*command, *map(str, distributions)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )
    return done.stdout if done.returncode else ""
