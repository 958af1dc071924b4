"""The issuer of the tests, and an app that trusts it."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from tests.auth.issuer import Issuer, running_issuer
from tests.auth.requests import Caller, oauth_caller


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with running_issuer() as running:
        yield running


class WallClock:
    """The time of day, which a test can set forward."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._ahead = 0.0
        real = time.time
        monkeypatch.setattr(time, "time", lambda: real() + self._ahead)

    def advance(self, seconds: float) -> None:
        self._ahead += seconds


@pytest.fixture
def wall_clock(monkeypatch: pytest.MonkeyPatch) -> WallClock:
    return WallClock(monkeypatch)


@pytest.fixture
def caller(issuer: Issuer) -> Caller:
    return oauth_caller(issuer, scopes=["read"])
