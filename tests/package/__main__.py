"""`python -m tests.package` builds the wheel and the source distribution, and uses both.

They are left in `dist/`. Each is installed on every declared version of Python, in environments
outside the project, and used there as its users do (`smoke.py`). Then the source distribution is
unpacked, and runs `make quick` and further tests in its own folder, on the newest version.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from tests.docs.page_runner import blocks, paste
from tests.package.distributions import (
    ROOT,
    Distributions,
    build,
    check_metadata,
    faults,
    sdist_files,
    source_files,
    wheel_files,
)
from tests.package.interpreters import declared_versions, find_interpreter

HERE = Path(__file__).parent
DIST = ROOT / "dist"
INSTALL_SECONDS = 600
TEST_SECONDS = 1200
# The tests outside `make quick` that read files beside the library.
FURTHER_TESTS = ["tests/package", "tests/docs/test_links.py", "tests/test_public_names.py"]


class Environment(NamedTuple):
    name: str
    archive: Callable[[Distributions], Path]
    extra: str
    steps: str
    """The steps of `smoke.py`."""
    packages: tuple[str, ...] = ()
    """Further packages, which the steps use."""


ENVIRONMENTS = (
    Environment("wheel", lambda built: built.wheel, "", "plain"),
    Environment("wheel[serve]", lambda built: built.wheel, "[serve]", "serve"),
    Environment("wheel[all]", lambda built: built.wheel, "[all]", "all", ("mypy", "pytest")),
    Environment("sdist[serve]", lambda built: built.sdist, "[serve]", "serve"),
)


class Row(NamedTuple):
    """A line of the summary."""

    python: str
    name: str
    passed: str
    seconds: float
    problems: list[str]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.package", description=__doc__)
    parser.add_argument("--only", metavar="VERSION", help="one version of Python, such as 3.12")
    parser.add_argument(
        "--allow-missing", action="store_true", help="pass without the versions that are not here"
    )
    arguments = parser.parse_args()
    versions = [arguments.only] if arguments.only else declared_versions()
    interpreters = {version: find_interpreter(version) for version in versions}
    missing = [version for version, found in interpreters.items() if found is None]
    _say_missing(missing)

    shutil.rmtree(DIST, ignore_errors=True)
    built = build(DIST)
    rows = [_check(built)]
    with tempfile.TemporaryDirectory(prefix="answerback-package-") as folder:
        found = {version: path for version, path in interpreters.items() if path is not None}
        rows += _try_all(built, found, Path(folder))
    _print_summary(rows)
    _say_missing(missing)
    broken = any(row.problems for row in rows) or (missing and not arguments.allow_missing)
    return 1 if broken else 0


def _say_missing(versions: list[str]) -> None:
    for version in versions:
        sys.stderr.write(
            f"PYTHON {version} IS MISSING, so nothing was tried with it: install python{version} "
            "(pyenv and uv are searched too), or pass without it: make package MISSING=ok\n"
        )


def _check(built: Distributions) -> Row:
    started = time.monotonic()
    problems = faults(built)
    if complaints := check_metadata(built):
        problems.append(complaints)
    for archive, files in zip(built, (wheel_files, sdist_files), strict=True):
        size = archive.stat().st_size / 1e6
        sys.stdout.write(f"{archive.name}: {len(files(archive))} files, {size:.1f} MB\n")
    seconds = time.monotonic() - started
    return _say(Row("", "contents and metadata", "no" if problems else "ok", seconds, problems))


def _try_all(built: Distributions, interpreters: dict[str, Path], folder: Path) -> list[Row]:
    """Try the environments of all versions, two at a time, and then the tests."""
    with ThreadPoolExecutor(2) as pool:
        jobs = [
            pool.submit(_try, built, environment, version, interpreter, folder)
            for version, interpreter in interpreters.items()
            for environment in ENVIRONMENTS
        ]
        rows = [job.result() for job in jobs]
    # Contributors run the tests on the oldest version, and this runs them on the newest.
    newest = list(interpreters.items())[-1:]
    return [*rows, *(_test(built, *each, folder) for each in newest)]


def _try(
    built: Distributions, environment: Environment, version: str, interpreter: Path, folder: Path
) -> Row:
    started = time.monotonic()
    here = folder / f"{version}-{environment.name}"
    here.mkdir()
    passed = "0"
    try:
        python = _install(built, environment, interpreter, here)
        results = _smoke(environment, python, here)
        passed = f"{sum(problem is None for _, problem in results)}/{len(results)}"
        problems = [f"{step}\n{problem}" for step, problem in results if problem]
    except subprocess.SubprocessError as exc:
        problems = [f"{exc}\n{getattr(exc, 'output', '')}"]
    return _say(Row(version, environment.name, passed, time.monotonic() - started, problems))


def _install(
    built: Distributions, environment: Environment, interpreter: Path, folder: Path
) -> Path:
    """Install the archive into a new environment, and return its Python."""
    python = folder / "venv" / "bin" / "python"
    archive = f"answerback{environment.extra} @ {environment.archive(built).as_uri()}"
    pip = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    _run([str(interpreter), "-m", "venv", str(folder / "venv")], folder, INSTALL_SECONDS)
    _run([*pip, archive, *environment.packages], folder, INSTALL_SECONDS)
    return python


def _smoke(environment: Environment, python: Path, folder: Path) -> list[tuple[str, str | None]]:
    """Run `smoke.py` in a folder with the README's program: a problem or None for each step."""
    here = folder / "user"
    here.mkdir()
    shutil.copy(HERE / "smoke.py", here)
    (here / "files.json").write_text(json.dumps(sorted(source_files())))
    paste(next(each for each in blocks(ROOT / "README.md") if each.kind == "python"), here)
    printed = _run([str(python), "smoke.py", environment.steps], here, TEST_SECONDS)
    return [(step, problem) for step, problem in json.loads(printed)]


def _test(built: Distributions, version: str, interpreter: Path, folder: Path) -> Row:
    """Run tests of the unpacked source distribution, in an environment that it makes itself."""
    started = time.monotonic()
    here = folder / f"{version}-tests"
    with tarfile.open(built.sdist) as archive:
        archive.extractall(here, filter="data")
    (root,) = here.iterdir()
    further = [str(root / ".venv" / "bin" / "python"), "-m", "pytest", "-q", *FURTHER_TESTS]
    try:
        printed = [
            _run(["make", "quick", f"PYTHON={interpreter}"], root, TEST_SECONDS),
            _run(further, root, TEST_SECONDS),
        ]
    except subprocess.SubprocessError as exc:
        problems = [f"{exc}\n{str(getattr(exc, 'output', ''))[-5000:]}"]
        return _say(Row(version, "tests of the sdist", "no", time.monotonic() - started, problems))
    passed = sum(int(each.rpartition(" passed")[0].split()[-1]) for each in printed)
    shutil.rmtree(here)
    return _say(Row(version, "tests of the sdist", str(passed), time.monotonic() - started, []))


def _run(command: list[str], folder: Path, seconds: int) -> str:
    """Run a command as from a new terminal: nothing of this project or of `make` reaches it."""
    ours = {"PYTHONPATH", "VIRTUAL_ENV", "MAKEFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "MFLAGS"}
    return subprocess.run(
        command,
        cwd=folder,
        env={name: value for name, value in os.environ.items() if name not in ours},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=seconds,
        check=True,
    ).stdout


def _say(row: Row) -> Row:
    """Print the row at once, with its problems, because the whole takes minutes."""
    sys.stdout.write(f"{_line(row)}\n")
    for problem in row.problems:
        sys.stdout.write("  " + problem.strip().replace("\n", "\n  ") + "\n")
    sys.stdout.flush()
    return row


def _line(row: Row) -> str:
    return f"{row.python:6} {row.name:24} {row.passed:>8} {row.seconds:6.0f} s"


def _print_summary(rows: list[Row]) -> None:
    sys.stdout.write(f"\n{'Python':6} {'installed':24} {'passed':>8} {'time':>8}\n")
    for row in rows:
        sys.stdout.write(f"{_line(row)}{'  BROKEN' if row.problems else ''}\n")


if __name__ == "__main__":
    sys.exit(main())
