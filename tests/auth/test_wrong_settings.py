"""Wrong values of `auth=` are refused when the app is made, and no secret is in the message."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from answerback import App
from answerback.auth import ApiKeys, OAuth
from answerback.errors import MissingExtraError


class Verifier:
    """Stands for an object of another framework, such as FastMCP's JWTVerifier."""

    async def verify_token(self, token: str) -> None: ...


@pytest.mark.parametrize("given", ["my-secret", Verifier(), {"my-secret": "ci"}, 7])
def test_what_cannot_authenticate_is_refused(given: Any) -> None:
    with pytest.raises(TypeError, match=r"auth=.* cannot authenticate requests") as refused:
        App("shop", auth=given)

    assert "OAuth(issuer=…, url=…) or ApiKeys({…})" in str(refused.value)
    assert "my-secret" not in str(refused.value)


@pytest.mark.parametrize("given", [OAuth, ApiKeys])
def test_a_class_is_refused_with_its_call(given: Any) -> None:
    with pytest.raises(
        TypeError, match=rf"auth is the class {given.__name__} itself; write {given.__name__}"
    ):
        App("shop", auth=given)


def test_several_ways_are_refused_with_how_to_join_them() -> None:
    given: Any = [ApiKeys({}), ApiKeys({})]

    with pytest.raises(TypeError, match="auth takes one object, not a list; write a class"):
        App("shop", auth=given)


@pytest.mark.parametrize("given", [["my-secret"], "my-secret", None])
def test_keys_that_are_no_mapping_are_refused(given: Any) -> None:
    with pytest.raises(TypeError, match=r"ApiKeys takes a dict of digests and names") as refused:
        ApiKeys(given)

    assert "my-secret" not in str(refused.value)


@pytest.mark.parametrize("given", [{"ci": "my-secret"}, {"my-secret": "ci"}])
def test_a_key_in_place_of_its_digest_is_not_in_the_message(given: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="SHA-256") as refused:
        ApiKeys(given)

    assert "my-secret" not in str(refused.value)


def test_required_scopes_is_the_name_of_another_framework() -> None:
    options: Any = {"required_scopes": ["read"]}

    with pytest.raises(TypeError, match="no option 'required_scopes'; did you mean 'scopes'"):
        OAuth(issuer="https://login.example.com", url="https://shop.example.com/mcp", **options)


def test_development_tokens_without_the_extra_are_refused_with_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "joserfc", None)

    with pytest.raises(MissingExtraError, match=r"run: pip install 'answerback\[auth\]'"):
        OAuth.development()
