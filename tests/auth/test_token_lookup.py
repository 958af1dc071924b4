"""Opaque tokens of issuers without introspection: an author's object looks them up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from tests.auth.issuer import URL
from tests.auth.requests import Caller

from answerback.auth import CannotAuthenticate, OAuth, TokenLookup

TOKEN = "opaque-token-1234567890"
GOOD: dict[str, Any] = {"sub": "alice", "aud": URL, "scope": "read"}


class Table:
    """Knows one token, and counts the questions."""

    seconds = 30.0

    def __init__(self, found: Mapping[str, Any] | None) -> None:
        self.found = found
        self.asked: list[str] = []
        self.away = False

    async def claims(self, token: str) -> Mapping[str, Any] | None:
        self.asked.append(token)
        if self.away:
            raise CannotAuthenticate("the table is away")
        return self.found


def looking_up(table: TokenLookup) -> Caller:
    issuer = "https://login.example.com"
    return Caller(OAuth(issuer=issuer, url=URL, scopes=["read"], introspection=table))


def test_a_known_token_gets_through_and_is_looked_up_once() -> None:
    table = Table(GOOD)
    caller = looking_up(table)

    statuses = [caller.call(TOKEN).status_code for _ in range(3)]

    assert statuses == [200, 200, 200]
    assert caller.ran == ["alice"] * 3
    assert table.asked == [TOKEN]


@pytest.mark.parametrize(
    ("found", "status"),
    [
        (None, 401),
        ({**GOOD, "aud": "https://other.example.com"}, 401),
        ({"sub": "alice", "scope": "read"}, 401),
        ({**GOOD, "exp": 1}, 401),
        ({**GOOD, "iss": "https://other.example.com"}, 401),
        ({"aud": URL, "scope": "read"}, 401),
        ({**GOOD, "scope": "write"}, 403),
    ],
    ids=["unknown", "audience", "no audience", "expired", "issuer", "no subject", "scope"],
)
def test_a_token_that_is_not_good_for_this_server_is_refused(found: Any, status: int) -> None:
    caller = looking_up(Table(found))

    assert caller.call(TOKEN).status_code == status
    assert caller.ran == []


def test_an_unknown_token_is_looked_up_once_in_a_few_seconds() -> None:
    table = Table(None)
    caller = looking_up(table)

    statuses = [caller.call(TOKEN).status_code for _ in range(5)]

    assert statuses == [401] * 5
    assert table.asked == [TOKEN]


def test_nobody_gets_in_while_tokens_cannot_be_looked_up() -> None:
    table = Table(GOOD)
    table.away = True

    reply = looking_up(table).call(TOKEN)

    assert reply.status_code == 503
    assert "retry-after" in reply.headers


@pytest.mark.parametrize("given", ["https://login.example.com/introspect", object(), Table])
def test_what_cannot_look_up_tokens_is_refused(given: Any) -> None:
    with pytest.raises(TypeError, match=r"introspection=<\w+> should be an Introspection"):
        OAuth(issuer="https://login.example.com", url=URL, introspection=given)
