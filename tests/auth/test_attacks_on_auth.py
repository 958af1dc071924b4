"""Hostile tokens, and authenticators and issuers that do not behave."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.auth.issuer import Issuer, encode
from tests.auth.requests import PATHS, Caller, oauth_caller

from answerback import App
from answerback.auth import ApiKeys


def test_a_token_whose_header_is_nested_deeply_is_refused_at_every_depth(issuer: Issuer) -> None:
    """Decoders differ in the depth that they refuse, so every depth around it is tried."""
    caller = oauth_caller(issuer)
    payload = encode(json.dumps(issuer.claims()).encode())
    headers = [
        b'{"alg":"ES256","kid":"one","x":%b%b}' % (b"[" * depth, b"]" * depth)
        for depth in range(900, 1001)
    ]
    tokens = [b".".join((encode(header), payload, b"A" * 86)).decode() for header in headers]

    found = caller.send_all(
        [
            ("POST", "/functions/who", [("Authorization", f"Bearer {token}")], {"json": {}})
            for token in tokens
        ]
    )

    assert {response.status_code for response in found} == {401}
    assert caller.ran == []


class Broken:
    """An authenticator whose database is down."""

    anonymous = True

    async def authenticate(self, credentials: Any) -> Any:
        raise OSError("no database")

    def www_authenticate(self, challenge: Any) -> str:
        return "Bearer"


@pytest.mark.parametrize("path", PATHS)
def test_an_authenticator_that_fails_lets_nobody_in_and_the_response_says_nothing_of_it(
    path: str, caplog: pytest.LogCaptureFixture
) -> None:
    caller = Caller(Broken())

    response = caller.call("token", path)

    assert response.status_code == 500
    assert "Internal server error" in response.text
    assert "database" not in response.text
    assert "no database" in caplog.text
    assert caller.ran == []


def strict_app(name: str = "strict") -> App:
    app = App(name, auth=ApiKeys({ApiKeys.new().digest: "ci"}))

    @app.tool
    def secret() -> str:
        return "secret"

    return app


@pytest.mark.parametrize("is_nested", [False, True])
def test_an_app_that_authenticates_cannot_be_included_in_an_open_one_that_is_served(
    is_nested: bool,
) -> None:
    outer, middle = App("outer"), App("middle")
    outer.include(middle)
    outer.asgi()

    with pytest.raises(ValueError, match="'strict' has auth=, and 'outer', which includes it"):
        (middle if is_nested else outer).include(strict_app())
    assert outer.tools.get("secret") is None


def test_an_app_that_requires_a_token_cannot_be_included_in_one_for_everyone() -> None:
    outer = App("outer", auth=ApiKeys({ApiKeys.new().digest: "ci"}, anonymous=True))
    outer.include(strict_app())

    with pytest.raises(ValueError, match="'strict' requires a token, and 'outer'"):
        outer.asgi()
