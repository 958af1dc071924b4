"""Tokens that must not get in: nobody gets through, and every refusal is a challenge."""

from __future__ import annotations

import hmac
import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from joserfc import jwk
from tests.auth.conftest import WallClock
from tests.auth.issuer import URL, Issuer, ec_key, encode, rsa_key, sign
from tests.auth.requests import PATHS, Caller, oauth_caller

METADATA = 'resource_metadata="https://tools.example.com/.well-known/oauth-protected-resource/mcp"'
HOUR = 3600


def hmac_with_public_key(issuer: Issuer) -> str:
    header = json.dumps({"alg": "HS256", "kid": "rsa", "typ": "at+jwt"}).encode()
    start = b".".join((encode(header), encode(json.dumps(issuer.claims()).encode())))
    signature = hmac.digest(rsa_key().as_pem(private=False), start, "sha256")
    return b".".join((start, encode(signature))).decode()


def unsigned(issuer: Issuer, algorithm: str = "none") -> str:
    header = encode(json.dumps({"alg": algorithm, "typ": "at+jwt", "kid": "one"}).encode())
    return f"{header.decode()}.{encode(json.dumps(issuer.claims()).encode()).decode()}."


def with_other_claims(issuer: Issuer) -> str:
    header, _, signature = issuer.token().split(".")
    return (
        f"{header}.{encode(json.dumps(issuer.claims(sub='admin')).encode()).decode()}.{signature}"
    )


def signed_payload(payload: bytes) -> Callable[[Issuer], str]:
    return lambda issuer: sign({"alg": "ES256", "kid": "one", "typ": "at+jwt"}, payload, ec_key())


def own_key(header: str, value: Any) -> Callable[[Issuer], str]:
    """A token of an attacker's own key, with a header that names it."""
    key = jwk.generate_key("EC", "P-256", parameters={"kid": "evil"})
    given = key.as_dict(private=False) if header == "jwk" else value
    return lambda issuer: issuer.token(key, {header: given})


def claim(**changes: Any) -> Callable[[Issuer], str]:
    return lambda issuer: issuer.token(**changes)


def header(**changes: Any) -> Callable[[Issuer], str]:
    return lambda issuer: issuer.token(header=changes)


BAD_TOKENS: dict[str, Callable[[Issuer], str]] = {
    "expired": claim(exp=int(time.time()) - 1),
    "expired long ago": claim(exp=1),
    "without an expiry": claim(exp=None),
    "with a text as expiry": claim(exp="9999999999"),
    "with true as expiry": claim(exp=True),
    "with an infinite expiry": claim(exp=10**400),
    "not valid yet": claim(nbf=int(time.time()) + HOUR),
    "with a text as not-before": claim(nbf="now"),
    "issued in the future": claim(iat=int(time.time()) + HOUR),
    "for another audience": claim(aud="https://other.example.com/mcp"),
    "for the origin of this server only": claim(aud="https://tools.example.com"),
    "for an audience that begins like ours": claim(aud=URL + "/more"),
    "for our audience with other case": claim(aud=URL.upper()),
    "for a list of other audiences": claim(aud=["a", "b"]),
    "for an empty list of audiences": claim(aud=[]),
    "for an audience in an object": claim(aud={URL: True}),
    "for a list in a list of audiences": claim(aud=[[URL]]),
    "without an audience": claim(aud=None),
    "of another issuer": claim(iss="https://evil.example.com"),
    "of an issuer with a slash more": lambda issuer: issuer.token(iss=issuer.url + "/"),
    "of a list of issuers": lambda issuer: issuer.token(iss=[issuer.url]),
    "without an issuer": claim(iss=None),
    "without a subject": claim(sub=None),
    "with an empty subject": claim(sub=""),
    "with a number as subject": claim(sub=7),
    "with a huge subject": claim(sub="x" * 5000),
    "bound to a key": claim(cnf={"jkt": "abc"}),
    "that is an ID token by its nonce": lambda issuer: issuer.token(
        header={"typ": "JWT"}, nonce="n"
    ),
    "that is an ID token by its hash": lambda issuer: issuer.token(
        header={"typ": None}, at_hash="h"
    ),
    "that is an ID token by its claim": claim(typ="ID"),
    "that is an ID token of Cognito": claim(token_use="id"),
    "that is a refresh token": claim(typ="Refresh"),
    "that is a logout token": claim(events={"x": {}}),
    "of the type logout": header(typ="logout+jwt"),
    "of the type dpop": header(typ="dpop+jwt"),
    "with a number as type": header(typ=3),
    "with no algorithm": unsigned,
    "with no algorithm, in other case": lambda issuer: unsigned(issuer, "NoNe"),
    "with an empty algorithm": lambda issuer: unsigned(issuer, ""),
    "signed by HMAC with the public key": hmac_with_public_key,
    "with the algorithm of another kind of key": header(alg="RS256"),
    "with other claims than were signed": with_other_claims,
    "without a signature": lambda issuer: issuer.token().rpartition(".")[0] + ".",
    "with a cut signature": lambda issuer: issuer.token()[:-4],
    "of another key with a known id": lambda issuer: issuer.token(
        jwk.generate_key("EC", "P-256", parameters={"kid": "one"})
    ),
    "of an unknown key": lambda issuer: issuer.token(
        jwk.generate_key("EC", "P-256", parameters={"kid": "new"})
    ),
    "of an unknown key without an id": lambda issuer: issuer.token(
        jwk.generate_key("EC", "P-256"), {"kid": None}
    ),
    "with its own key in the header": own_key("jwk", None),
    "with a URL of keys in the header": own_key("jku", "https://evil.example.com/jwks"),
    "with a URL of a certificate": own_key("x5u", "https://evil.example.com/cert"),
    "with a certificate in the header": own_key("x5c", ["MIIB"]),
    "with a path as key id": header(kid="../../../../dev/null"),
    "with SQL as key id": header(kid="' OR 1=1 --"),
    "with a list as key id": header(kid=["one"]),
    "with an empty key id": header(kid=""),
    "with a critical extension": header(crit=["exp"], exp=1),
    "with an empty list of extensions": header(crit=[]),
    "with an unencoded payload": header(b64=False, crit=["b64"]),
    "with another token in it": header(cty="JWT"),
    "with a token as payload": lambda issuer: signed_payload(issuer.token().encode())(issuer),
    "with a list as claims": signed_payload(b"[]"),
    "with claims that are not JSON": signed_payload(b"{"),
    "with deep claims": signed_payload(b"[" * 5000),
    "that is encrypted": lambda issuer: "a.b.c.d.e",
    "of one part": lambda issuer: "abc",
    "of two parts": lambda issuer: "abc.def",
    "of empty parts": lambda issuer: "..",
    "with a header that is not base64": lambda issuer: "~~~." + issuer.token().partition(".")[2],
    "with a list as header": lambda issuer: "W10." + issuer.token().partition(".")[2],
    "good, but of 20,000 bytes": claim(padding="x" * 20_000),
    "of 17,000 bytes": lambda issuer: issuer.token() + "A" * 17_000,
}


@pytest.mark.parametrize("kind", BAD_TOKENS)
def test_a_bad_token_is_refused_with_401_on_every_path(
    kind: str, caller: Caller, issuer: Issuer, caplog: pytest.LogCaptureFixture
) -> None:
    token = BAD_TOKENS[kind](issuer)

    replies = [caller.call(token, path) for path in PATHS]

    for reply in replies:
        assert reply.status_code == 401
        challenge = reply.headers["www-authenticate"]
        assert challenge.startswith('Bearer error="invalid_token", error_description="the ')
        assert METADATA in challenge
        assert token not in reply.text + str(reply.headers)
    assert caller.ran == []
    assert token not in caplog.text


GOOD_TOKENS: dict[str, Callable[[Issuer], str]] = {
    "as it should be": claim(),
    "of an RSA key": lambda issuer: issuer.token(rsa_key()),
    "for several audiences": claim(aud=["other", URL]),
    "with scopes as a list": claim(scope=None, scp=["read"]),
    "with scopes of Entra": claim(scope=None, scp="read other"),
    "of the type JWT": header(typ="JWT"),
    "of the type application/at+jwt": header(typ="application/AT+JWT"),
    "without a type": header(typ=None),
    "without a key id": header(kid=None),
    "of Keycloak": lambda issuer: issuer.token(header={"typ": "JWT"}, typ="Bearer", nonce="n"),
    "of a clock half a minute ahead": claim(iat=int(time.time()) + 30, nbf=int(time.time()) + 30),
    "with a key set in the header, which does not count": header(jku="https://evil.example.com"),
}


@pytest.mark.parametrize("kind", GOOD_TOKENS)
def test_a_good_token_gets_through_on_every_path(kind: str, caller: Caller, issuer: Issuer) -> None:
    token = GOOD_TOKENS[kind](issuer)

    replies = [caller.call(token, path) for path in PATHS]

    assert [reply.status_code for reply in replies] == [200, 200, 200]
    assert caller.ran == ["alice", "alice", "alice"]


def test_a_token_that_was_seen_is_refused_once_it_expires(
    caller: Caller, issuer: Issuer, wall_clock: WallClock
) -> None:
    token = issuer.token(exp=time.time() + 60)
    first = caller.call(token)
    wall_clock.advance(61)

    reply = caller.call(token)

    assert first.status_code == 200
    assert "expired" in reply.headers["www-authenticate"]


def test_a_token_without_a_scope_that_all_need_is_403(caller: Caller, issuer: Issuer) -> None:
    reply = caller.call(issuer.token(scope="other"), "/mcp")

    assert reply.status_code == 403
    assert reply.headers["www-authenticate"] == (
        f'Bearer error="insufficient_scope", error_description="the token lacks a scope", '
        f'{METADATA}, scope="read"'
    )
    assert caller.ran == []


def test_a_scope_includes_those_below_it(issuer: Issuer) -> None:
    hierarchy = {"admin": ["write"], "write": ["read", "admin"]}
    caller = oauth_caller(issuer, scopes=["read"], hierarchy=hierarchy)

    assert caller.call(issuer.token(scope="admin")).status_code == 200
    assert caller.call(issuer.token(scope="reader")).status_code == 403


def test_an_algorithm_that_the_author_left_out_is_refused(issuer: Issuer) -> None:
    caller = oauth_caller(issuer, algorithms=["ES256"])

    assert caller.call(issuer.token()).status_code == 200
    assert caller.call(issuer.token(rsa_key())).status_code == 401


@pytest.mark.parametrize("audience", ["api://tools", ["api://tools", "api://old"]])
def test_the_author_can_name_another_audience_than_the_url(
    issuer: Issuer, audience: str | list[str]
) -> None:
    caller = oauth_caller(issuer, audience=audience)

    assert caller.call(issuer.token(aud="api://tools")).status_code == 200
    assert caller.call(issuer.token()).status_code == 401
    document = caller.send("GET", "/.well-known/oauth-protected-resource").json()
    assert document["resource"] == URL
