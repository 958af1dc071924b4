"""The keys of the issuer: fetched rarely, in time, and never from the wrong place."""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from joserfc import jwk
from tests.auth.issuer import METADATA, URL, Issuer, ec_key, rsa_key, running_issuer
from tests.auth.requests import Caller, Sent, oauth_caller

from answerback.auth import OAuth, key_set
from answerback.auth import token_check as identity_provider

FLOOD = 60


def new_key(kid: str) -> Any:
    return jwk.generate_key("EC", "P-256", parameters={"kid": kid})


def posts(*tokens: str) -> list[Sent]:
    return [
        ("POST", "/functions/who", {"Authorization": f"Bearer {token}"}, {"json": {}})
        for token in tokens
    ]


def test_many_first_requests_at_once_cause_one_fetch(caller: Caller, issuer: Issuer) -> None:
    tokens = [issuer.token(jti=number) for number in range(20)]

    replies = caller.send_all(posts(*tokens))

    assert {reply.status_code for reply in replies} == {200}
    assert issuer.counts == {METADATA: 1, "/jwks": 1}


@pytest.mark.parametrize("at_once", [True, False])
def test_a_flood_of_unknown_keys_causes_a_few_fetches(
    caller: Caller, issuer: Issuer, at_once: bool
) -> None:
    caller.call(issuer.token())
    tokens = [issuer.token(ec_key(), {"kid": f"unknown {number}"}) for number in range(FLOOD)]

    if at_once:
        replies = caller.send_all(posts(*tokens))
    else:
        replies = [caller.send_all(posts(token))[0] for token in tokens]

    assert {reply.status_code for reply in replies} == {401}
    assert issuer.counts["/jwks"] <= 1 + key_set.UNKNOWN_BURST
    assert caller.call(issuer.token(jti="still served")).status_code == 200
    assert caller.ran == ["alice", "alice"]


def test_a_new_key_is_found_at_once(caller: Caller, issuer: Issuer) -> None:
    caller.call(issuer.token())
    new = new_key("two")
    issuer.keys.append(new)

    assert caller.call(issuer.token(new)).status_code == 200
    assert issuer.counts["/jwks"] == 2


def test_tokens_of_a_removed_key_are_refused_once_the_keys_are_fetched_again(
    caller: Caller, issuer: Issuer
) -> None:
    old = issuer.token()
    assert caller.call(old).status_code == 200
    new = new_key("two")
    issuer.keys = [new]

    assert caller.call(issuer.token(new)).status_code == 200
    assert caller.call(old).status_code == 401
    assert caller.ran == ["alice", "alice"]


def test_old_keys_are_used_while_new_ones_are_fetched(
    issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The issuer answers after a minute, and replies must not wait for it."""
    monkeypatch.setattr(identity_provider, "TIMEOUT", 600.0)
    caller = oauth_caller(issuer, refresh=0.0)
    token = issuer.token()
    assert caller.call(token).status_code == 200
    issuer.hangs.set()
    started = time.monotonic()

    replies = caller.send_all(posts(*[token] * 5))

    assert {reply.status_code for reply in replies} == {200}
    assert time.monotonic() - started < 30


def test_a_key_that_the_issuer_removed_is_noticed_by_tokens_seen_before(issuer: Issuer) -> None:
    caller = oauth_caller(issuer, refresh=0.0)
    token = issuer.token()
    assert caller.call(token).status_code == 200
    issuer.keys = [new_key("two")]

    reply = caller.call_until(token, 401)

    assert 'error="invalid_token"' in reply.headers["www-authenticate"]


def test_tokens_seen_before_do_not_outlive_keys_that_cannot_be_fetched(
    issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_set, "MAX_STALE", 0.2)
    caller = oauth_caller(issuer, refresh=0.0)
    token = issuer.token()
    assert caller.call(token).status_code == 200
    issuer.status = 500

    assert caller.call_until(token, 503).headers["retry-after"] == "5"


def break_status(issuer: Issuer) -> None:
    issuer.status = 500


def break_redirect(issuer: Issuer) -> None:
    issuer.status = 302
    issuer.headers["Location"] = f"{issuer.url}/jwks"


def break_huge(issuer: Issuer) -> None:
    keys = json.dumps({"keys": [ec_key().as_dict(private=False)]}).encode()
    issuer.body = keys + b" " * identity_provider.MAX_DOCUMENT


def break_garbage(issuer: Issuer) -> None:
    issuer.body = b"<html>"


def break_list(issuer: Issuer) -> None:
    issuer.body = b"[]"


def break_empty(issuer: Issuer) -> None:
    issuer.keys = []


def break_secret(issuer: Issuer) -> None:
    key = {"kty": "oct", "k": "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0", "kid": "one", "alg": "HS256"}
    issuer.body = json.dumps({"keys": [key]}).encode()


def break_encryption_key(issuer: Issuer) -> None:
    keys = [{**key.as_dict(private=False), "use": "enc"} for key in (ec_key(), rsa_key())]
    issuer.body = json.dumps({"keys": keys}).encode()


def break_deep(issuer: Issuer) -> None:
    issuer.body = b'{"keys":' + b"[" * 100_000


def break_other_issuer(issuer: Issuer) -> None:
    issuer.metadata["issuer"] = "https://evil.example.com"


def break_plain_http(issuer: Issuer) -> None:
    issuer.metadata["jwks_uri"] = "http://evil.example.com/jwks"


def break_file(issuer: Issuer) -> None:
    issuer.metadata["jwks_uri"] = "file:///etc/passwd"


def break_number(issuer: Issuer) -> None:
    issuer.metadata["jwks_uri"] = 7


FAULTS: list[Callable[[Issuer], None]] = [
    break_status,
    break_redirect,
    break_huge,
    break_garbage,
    break_list,
    break_empty,
    break_secret,
    break_encryption_key,
    break_deep,
    break_other_issuer,
    break_plain_http,
    break_file,
    break_number,
]


@pytest.mark.parametrize("fault", FAULTS)
def test_nobody_gets_in_while_the_keys_cannot_be_read(
    caller: Caller,
    issuer: Issuer,
    fault: Callable[[Issuer], None],
    caplog: pytest.LogCaptureFixture,
) -> None:
    fault(issuer)
    token = issuer.token()

    replies = [caller.call(token, path) for path in ("/functions/who", "/mcp")]

    assert [reply.status_code for reply in replies] == [503, 503]
    assert [reply.headers["retry-after"] for reply in replies] == ["5", "5"]
    assert caller.ran == []
    assert "issuer" in caplog.text
    assert token not in caplog.text


def test_a_small_key_set_that_unpacks_to_a_large_one_is_not_read(
    issuer: Issuer, caplog: pytest.LogCaptureFixture
) -> None:
    keys = json.dumps({"keys": [ec_key().as_dict(private=False)]}).encode()
    issuer.body = gzip.compress(keys + b" " * identity_provider.MAX_DOCUMENT)
    issuer.headers["Content-Encoding"] = "gzip"
    caller = oauth_caller(issuer, jwks=f"{issuer.url}/jwks")

    reply = caller.call(issuer.token())

    assert reply.status_code == 503
    assert f"is larger than {identity_provider.MAX_DOCUMENT} bytes" in caplog.text


def test_the_proxy_of_the_environment_is_for_issuers_elsewhere(
    issuer: Issuer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with running_issuer() as proxy:
        for name in ("http_proxy", "https_proxy"):
            monkeypatch.setenv(name, proxy.url)
        here = oauth_caller(issuer).call(issuer.token())
        issuer.url = "https://id.example.com"
        elsewhere = oauth_caller(issuer).call(issuer.token())

    assert here.status_code == 200
    assert elsewhere.status_code == 503
    # The issuer of the tests opens no tunnels.
    assert f"the proxy {proxy.url.removeprefix('http://')} answered with" in caplog.text


def test_an_issuer_that_hangs_holds_requests_up_until_the_time_out(
    caller: Caller, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(identity_provider, "TIMEOUT", 0.3)
    issuer.hangs.set()

    replies = caller.send_all(posts(*(issuer.token(jti=number) for number in range(5))))

    assert {reply.status_code for reply in replies} == {503}
    assert issuer.counts["/jwks"] == 1
    assert caller.ran == []


def test_a_failed_fetch_is_not_repeated_for_each_request(caller: Caller, issuer: Issuer) -> None:
    issuer.status = 500

    replies = [caller.call(issuer.token(jti=number)) for number in range(10)]

    assert {reply.status_code for reply in replies} == {503}
    assert issuer.counts[METADATA] == 1


def test_the_metadata_may_be_that_of_openid_connect(issuer: Issuer) -> None:
    issuer.metadata["issuer"] = issuer.url + "/tenant"
    documents = issuer.documents

    def elsewhere(path: str) -> bytes | None:
        place = "/tenant/.well-known/openid-configuration"
        return documents(METADATA) if path == place else documents(path)

    issuer.documents = elsewhere  # type: ignore[method-assign]  # the issuer of this test alone
    caller = Caller(OAuth(issuer=issuer.url + "/tenant", url=URL))

    assert caller.call(issuer.token(iss=issuer.url + "/tenant")).status_code == 200


def test_an_app_can_be_given_the_keys_themselves(issuer: Issuer) -> None:
    caller = oauth_caller(issuer, jwks={"keys": [ec_key().as_dict(private=False)]})

    assert caller.call(issuer.token()).status_code == 200
    assert caller.call(issuer.token(rsa_key())).status_code == 401
    assert issuer.counts == {}
