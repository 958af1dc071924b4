"""Servers that share a database, and the commands that look after it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.conftest import Server


def environment(url: str) -> dict[str, str]:
    return {**os.environ, "ANSWERBACK_STATE": url, "ANSWERBACK_SECRET": "s" * 32}


def answerback(
    url: str, *arguments: str, secret: str = "s" * 32
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "answerback", *arguments]
    env = {**environment(url), "ANSWERBACK_SECRET": secret}
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=60)


@contextmanager
def started(url: str, path: Path, command: str, *flags: str) -> Iterator[Server]:
    """Start a server or a worker for the app at *path*, on a free port."""
    process = subprocess.Popen(
        [sys.executable, str(path), command, "--port", "0", *flags],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        env=environment(url),
    )
    try:
        yield Server(process)
    finally:
        process.terminate()
        process.communicate(timeout=60)
