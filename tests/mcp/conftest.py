"""What the official clients share: the server that they are shown."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.conftest import serving
from tests.mcp.judges import JUDGED


@pytest.fixture(scope="session")
def judged_url() -> Iterator[str]:
    with serving(JUDGED) as server:
        yield f"{server.url}/mcp"
