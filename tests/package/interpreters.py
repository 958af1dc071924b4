"""The versions of Python that the project declares, and where this machine has them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

from tests.package.distributions import ROOT

_VERSION = re.compile(r"Programming Language :: Python :: (3\.\d+)")
_PROBE = "import ensurepip, sys, venv; print('%d.%d' % sys.version_info[:2])"


def declared_versions() -> list[str]:
    """The versions of the project's classifiers, such as "3.12"."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found = map(_VERSION.fullmatch, project["classifiers"])
    return [each[1] for each in found if each is not None]


def find_interpreter(version: str) -> Path | None:
    """An interpreter of this version that can make environments; None if there is none."""
    return next((each for each in _candidates(version) if _is_usable(each, version)), None)


def _candidates(version: str) -> Iterator[Path]:
    if on_path := shutil.which(f"python{version}"):
        yield Path(on_path)
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    yield from sorted(pyenv.glob(f"versions/{version}.*/bin/python{version}"), reverse=True)
    if uv := shutil.which("uv"):
        command = [uv, "python", "find", "--no-python-downloads", version]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            yield Path(done.stdout.strip())


def _is_usable(interpreter: Path, version: str) -> bool:
    """Whether it runs: pyenv has a `python3.12` on PATH that fails if the version is not chosen."""
    command = [str(interpreter), "-c", _PROBE]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() == version
