"""Introspection: the issuer says whether a token is good; its answer is used for a short time."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest
from tests.auth.conftest import WallClock
from tests.auth.issuer import URL, Issuer
from tests.auth.requests import Caller

from answerback.auth import Introspection, OAuth

TOKEN = "opaque-token-1234567890"


def asking(issuer: Issuer, seconds: float = 30.0) -> Caller:
    settings = Introspection(client_id="tools", client_secret="a-secret", seconds=seconds)
    return Caller(OAuth(issuer=issuer.url, url=URL, introspection=settings))


def active(issuer: Issuer, **changes: Any) -> dict[str, Any]:
    return {"active": True, **issuer.claims(**changes)}


def test_an_active_token_gets_through_and_is_asked_about_once(issuer: Issuer) -> None:
    caller = asking(issuer)
    issuer.active = active(issuer)

    replies = [caller.call(TOKEN) for _ in range(3)]

    assert [reply.status_code for reply in replies] == [200, 200, 200]
    assert caller.ran == ["alice"] * 3
    assert issuer.counts["/introspect"] == 1
    login = b64encode(b"tools:a-secret").decode()
    form = f"token={TOKEN}&token_type_hint=access_token".encode()
    assert issuer.posted == [(f"Basic {login}", form)]


def test_a_revoked_token_is_refused_after_the_time_that_an_answer_is_used(
    issuer: Issuer, wall_clock: WallClock
) -> None:
    caller = asking(issuer, seconds=60)
    issuer.active = active(issuer)
    assert caller.call(TOKEN).status_code == 200
    issuer.active = None
    assert caller.call(TOKEN).status_code == 200
    wall_clock.advance(61)

    reply = caller.call(TOKEN)

    assert 'error="invalid_token"' in reply.headers["www-authenticate"]
    assert caller.call(TOKEN).status_code == 401


def test_a_revoked_token_is_refused_at_once_if_the_app_forgets_its_tokens(issuer: Issuer) -> None:
    caller = asking(issuer, seconds=3600)
    issuer.active = active(issuer)
    caller.call(TOKEN)
    issuer.active = None

    caller.auth.forget_tokens()

    assert caller.call(TOKEN).status_code == 401
    assert caller.ran == ["alice"]


def test_a_token_that_is_not_active_is_asked_about_once_in_a_few_seconds(issuer: Issuer) -> None:
    caller = asking(issuer)

    replies = [caller.call(TOKEN) for _ in range(10)]

    assert {reply.status_code for reply in replies} == {401}
    assert issuer.counts["/introspect"] == 1


BAD_ANSWERS: dict[str, dict[str, Any]] = {
    "inactive": {"active": False},
    "active as text": {"active": "true"},
    "active as a number": {"active": 1},
    "without active": {"active": None},
    "for another audience": {"aud": "https://other.example.com"},
    "without an audience": {"aud": None},
    "of another issuer": {"iss": "https://evil.example.com"},
    "expired": {"exp": 1},
    "without a subject": {"sub": None, "client_id": None},
    "bound to a key": {"cnf": {"jkt": "x"}},
}


@pytest.mark.parametrize("kind", BAD_ANSWERS)
def test_a_token_that_is_not_good_for_this_server_is_refused(issuer: Issuer, kind: str) -> None:
    caller = asking(issuer)
    issuer.active = active(issuer) | BAD_ANSWERS[kind]

    reply = caller.call(TOKEN)

    assert reply.status_code == 401
    assert 'error="invalid_token"' in reply.headers["www-authenticate"]
    assert caller.ran == []


def test_nobody_gets_in_while_the_issuer_does_not_answer(
    issuer: Issuer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    caller = asking(issuer)
    issuer.status = 500

    reply = caller.call(TOKEN)

    assert reply.status_code == 503
    assert caller.ran == []
    assert "introspection failed" in caplog.text
    assert TOKEN not in caplog.text
    assert "a-secret" not in caplog.text + repr(caller.auth) + repr(caller.auth.options)
