"""The issuer of the tests, and an app that trusts it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.auth.issuer import Issuer, running_issuer
from tests.auth.requests import Caller, oauth_caller


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with running_issuer() as running:
        yield running


@pytest.fixture
def caller(issuer: Issuer) -> Caller:
    return oauth_caller(issuer, scopes=["read"])
