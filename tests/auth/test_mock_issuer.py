"""Tokens of oauth2-mock-server, which has keys and metadata of its own."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.auth.issuer import URL
from tests.auth.requests import Caller
from tests.protocol.official_tools import node_command, node_environment

from answerback.auth import OAuth

SCRIPT = Path(__file__).parent / "mock_issuer.mjs"


class MockIssuer:
    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._stdin, self._stdout = process.stdin, process.stdout
        self.url = self._stdout.readline().decode().strip()

    def token(self, header: dict[str, Any] | None = None, **claims: Any) -> str:
        good = {"aud": URL, "sub": "alice", "scope": "read", "exp": int(time.time()) + 600}
        asked = {"claims": good | claims, "header": header or {}}
        self._stdin.write(json.dumps(asked).encode() + b"\n")
        self._stdin.flush()
        return self._stdout.readline().decode().strip()


@pytest.fixture(scope="module")
def mock_issuer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MockIssuer]:
    process = subprocess.Popen(
        node_command(SCRIPT),
        env=node_environment(tmp_path_factory.mktemp("home")),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        yield MockIssuer(process)
    finally:
        process.communicate(timeout=60)


BAD: dict[str, dict[str, Any]] = {
    "expired": {"exp": 1},
    "not valid yet": {"nbf": 99_999_999_999},
    "for another audience": {"aud": "other"},
    "of another issuer": {"iss": "https://evil.example.com"},
    "without a subject": {"sub": None},
    "an ID token": {"at_hash": "x"},
    "of the wrong type": {"header": {"typ": "logout+jwt"}},
    "of an unknown key": {"header": {"kid": "unknown"}},
    "with a critical extension": {"header": {"crit": ["x"], "x": 1}},
}


def test_a_good_token_of_the_mock_issuer_gets_through(mock_issuer: MockIssuer) -> None:
    caller = Caller(OAuth(issuer=mock_issuer.url, url=URL))

    assert caller.call(mock_issuer.token(), "/mcp").status_code == 200
    assert caller.ran == ["alice"]


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_token_of_the_mock_issuer_is_refused(mock_issuer: MockIssuer, kind: str) -> None:
    caller = Caller(OAuth(issuer=mock_issuer.url, url=URL))
    token = mock_issuer.token(**BAD[kind])

    reply = caller.call(token, "/mcp")

    assert reply.status_code == 401
    assert 'error="invalid_token"' in reply.headers["www-authenticate"]
    assert caller.ran == []
