"""The benchmarks in `bench/` can be imported, and its programs print their figures."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
# It needs a package that the development environment does not install.
WITHOUT = {"bench.peers.fast_tasks"}
# These run in environments of their own; `python -m bench public` makes them.
SERVERS = Path("bench", "public", "servers")


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )


@pytest.mark.slow
def test_every_module_of_the_benchmarks_can_be_imported() -> None:
    files = [path.relative_to(ROOT) for path in (ROOT / "bench").rglob("*.py")]
    ours = [file for file in files if file.parent != SERVERS]
    names = {".".join(file.with_suffix("").parts) for file in ours}

    done = _run("-c", "\n".join(f"import {name}" for name in sorted(names - WITHOUT)))

    assert done.returncode == 0, done.stderr


def test_a_part_of_the_benchmarks_prints_its_figures_and_exits_with_the_number_of_misses() -> None:
    done = _run("-m", "bench", "around")

    rows = [line.split()[0] for line in done.stdout.splitlines()]
    assert len(rows) == 2, done.stderr
    assert set(rows) <= {"ok", "FAIL"}
    assert done.returncode == rows.count("FAIL")


def test_a_checkout_is_compared_with_itself() -> None:
    done = _run("-m", "bench.compare", ".", "1", "validate")

    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["here", "validate"]


def test_an_unknown_part_is_refused_with_the_names_of_all() -> None:
    done = _run("-m", "bench", "no-such-part")

    assert done.returncode == 2
    assert "growth" in done.stdout
