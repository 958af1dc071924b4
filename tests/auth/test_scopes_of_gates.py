"""The scopes that every token needs, together with those of the gates of a tool."""

from __future__ import annotations

import re

import pytest
from tests.auth.issuer import Issuer
from tests.auth.requests import Caller, oauth_caller

from answerback.gates import scope

LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}


@pytest.fixture
def both(issuer: Issuer) -> Caller:
    """An app whose tokens need `read`, with a tool that needs `write` too."""
    caller = oauth_caller(issuer, scopes=["read"], anonymous=True)

    @caller.app.tool(requires=[scope("write")])
    def change() -> str:
        return "changed"

    return caller


@pytest.mark.parametrize(("granted", "status"), [(None, 401), ("read", 403)])
def test_a_challenge_of_a_gate_names_the_scopes_that_every_token_needs_too(
    both: Caller, issuer: Issuer, granted: str | None, status: int
) -> None:
    token = None if granted is None else issuer.token(scope=granted)
    headers = {} if token is None else {"authorization": f"Bearer {token}"}

    reply = both.send("POST", "/functions/change", headers, json={})

    assert reply.status_code == status
    assert reply.headers["www-authenticate"].endswith('scope="read write"')


def test_a_client_that_asks_for_the_scopes_of_each_challenge_gets_in(
    both: Caller, issuer: Issuer
) -> None:
    statuses, asked = [], "other"
    for _ in range(4):
        headers = {"authorization": f"Bearer {issuer.token(scope=asked)}"}
        reply = both.send("POST", "/functions/change", headers, json={})
        statuses.append(reply.status_code)
        found = re.search('scope="(.*)"', reply.headers.get("www-authenticate", ""))
        asked = found[1] if found else asked

    assert statuses == [403, 403, 200, 200]


def test_the_security_schemes_have_the_scopes_that_every_token_needs(both: Caller) -> None:
    headers = {"mcp-protocol-version": "2025-11-25"}
    listed = both.send("POST", "/mcp", headers, json=LIST).json()["result"]["tools"]
    schemes = {each["name"]: each["securitySchemes"] for each in listed}

    assert schemes["change"] == [{"type": "oauth2", "scopes": ["read", "write"]}]
