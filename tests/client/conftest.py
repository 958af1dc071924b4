"""The transports to the served app, and the file of its runs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import load_app, serving

SERVED = Path(__file__).parent / "served_app.py"
STDIO = [sys.executable, str(SERVED), "mcp"]


@pytest.fixture(scope="session")
def served_url() -> Iterator[str]:
    with serving(SERVED) as server:
        yield f"{server.url}/mcp"


@pytest.fixture(params=["memory", "stdio", "http"])
def target(request: pytest.FixtureRequest, served_url: str) -> Any:
    """The same app over each transport."""
    return {"memory": lambda: load_app(SERVED), "stdio": lambda: STDIO, "http": lambda: served_url}[
        request.param
    ]()


@pytest.fixture(params=["2025-11-25", "2026-07-28"])
def version(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found
