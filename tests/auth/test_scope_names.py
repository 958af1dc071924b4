"""Issuers that name scopes in their own way: in other claims, or with a prefix when asked."""

from __future__ import annotations

from typing import Any

import pytest
from tests.auth.issuer import URL, Issuer
from tests.auth.requests import oauth_caller

from answerback.auth import OAuth
from answerback.gates import scope

LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
METADATA = "/.well-known/oauth-protected-resource/mcp"
PREFIX = "api://tools/"


@pytest.mark.parametrize(
    ("names", "claims", "status"),
    [
        (["roles"], {"roles": ["read"]}, 200),
        (["scp", "roles"], {"scp": "write", "roles": ["read"]}, 200),
        (["scp", "roles"], {"scp": "read write"}, 200),
        ("permissions", {"permissions": ["read"]}, 200),
        (["roles"], {"scope": "read"}, 403),
        (["roles"], {"roles": {"read": True}}, 403),
        (["roles"], {}, 403),
    ],
)
def test_the_scopes_are_those_of_the_named_claims(
    issuer: Issuer, names: Any, claims: dict[str, Any], status: int
) -> None:
    caller = oauth_caller(issuer, scopes=["read"], scope_claims=names)

    reply = caller.call(issuer.token(**{"scope": None} | claims))

    assert reply.status_code == status


def test_clients_are_told_the_scopes_with_the_prefix_and_tokens_have_them_without(
    issuer: Issuer,
) -> None:
    caller = oauth_caller(issuer, scopes=["read"], scope_prefix=PREFIX)

    @caller.app.tool(requires=[scope("write")])
    def change() -> str:
        return "changed"

    token = {"authorization": f"Bearer {issuer.token(scope='read')}"}
    version = {"mcp-protocol-version": "2025-11-25"}

    passed = caller.call(issuer.token(scope="read"))
    refused = caller.send("POST", "/functions/change", token, json={})
    metadata = caller.send("GET", METADATA).json()
    listed = caller.send("POST", "/mcp", token | version, json=LIST).json()["result"]["tools"]

    asked = [f"{PREFIX}read", f"{PREFIX}write"]
    assert passed.status_code == 200
    assert refused.status_code == 403
    assert refused.headers["www-authenticate"].endswith(f'scope="{" ".join(asked)}"')
    assert metadata["scopes_supported"] == [f"{PREFIX}read"]
    [scheme] = next(each["securitySchemes"] for each in listed if each["name"] == "change")
    assert scheme["scopes"] == asked


def test_a_token_whose_scopes_have_the_prefix_is_refused(issuer: Issuer) -> None:
    caller = oauth_caller(issuer, scopes=["read"], scope_prefix=PREFIX)

    assert caller.call(issuer.token(scope=f"{PREFIX}read")).status_code == 403


@pytest.mark.parametrize("prefix", ["api://my tools/", 'a"', 7])
def test_a_prefix_that_no_scope_can_have_is_refused(prefix: Any) -> None:
    with pytest.raises(ValueError, match="scope_prefix"):
        OAuth(issuer="https://login.example.com", url=URL, scope_prefix=prefix)


def test_test_tokens_have_neither_the_prefix_nor_the_claims_of_the_real_issuer() -> None:
    from answerback.auth.development import development_of

    real = OAuth(
        issuer="https://login.example.com",
        url=URL,
        scopes=["read"],
        scope_claims=["roles"],
        scope_prefix=PREFIX,
    )

    auth = development_of(real, "http://127.0.0.1:8000")

    assert auth.asked_scopes(auth.scopes) == ("read",)
