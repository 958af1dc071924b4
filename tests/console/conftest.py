"""A browser for the tests of the console."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.widgets.browser_driver import Browser, chromium


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with chromium() as opened:
        yield opened
