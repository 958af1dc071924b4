"""Fixtures of the tests with several hosts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.conftest import Server
from tests.state.hosts import started
from tests.state.stores import make_tables


@pytest.fixture
def start_app(state_url: str) -> Iterator[Callable[..., Server]]:
    """Starts servers and workers that share a database: `start_app(path, "serve")`."""
    make_tables(state_url)
    with ExitStack() as stack:

        def start(path: Path, command: str, *flags: str) -> Server:
            return stack.enter_context(started(state_url, path, command, *flags))

        yield start
