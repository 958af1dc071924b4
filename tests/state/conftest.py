"""Fixtures of the tests with several hosts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.conftest import Server
from tests.state.hosts import answerback, started


@pytest.fixture
def start_app(state_url: str) -> Iterator[Callable[..., Server]]:
    """Starts servers and workers that share a database: `start_app(path, "serve")`."""
    assert answerback(state_url, "state", "init").returncode == 0
    with ExitStack() as stack:

        def start(path: Path, command: str, *flags: str) -> Server:
            return stack.enter_context(started(state_url, path, command, *flags))

        yield start
