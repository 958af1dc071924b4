"""Credentials in other places than one Authorization header, and the challenges of refusals."""

from __future__ import annotations

import pytest
from tests.auth.issuer import URL, Issuer
from tests.auth.requests import CALL, Caller, oauth_caller

from answerback.auth import OAuth
from answerback.core.authentication import Challenge, Credentials, Unauthorized, User

ROOT = "/.well-known/oauth-protected-resource"
CHALLENGE = f'Bearer resource_metadata="https://tools.example.com{ROOT}/mcp", scope="read"'
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}


@pytest.mark.parametrize("path", ["/mcp", "/message", "/functions/who", "/unknown", "/dev/token"])
def test_a_post_without_a_token_is_401_with_a_challenge(caller: Caller, path: str) -> None:
    reply = caller.call(path=path)

    assert reply.status_code == 401
    assert reply.headers["www-authenticate"] == CHALLENGE
    assert reply.headers["cache-control"] == "no-store"
    assert "LOGIN_REQUIRED" in reply.text + str(reply.headers)
    assert caller.ran == []


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/mcp"), ("DELETE", "/mcp"), ("GET", "/functions"), ("GET", "/openapi.json")],
)
def test_other_methods_without_a_token_are_401(caller: Caller, method: str, path: str) -> None:
    reply = caller.send(method, path)

    assert reply.status_code == 401
    assert reply.headers["www-authenticate"] == CHALLENGE


@pytest.mark.parametrize(
    "path",
    [
        "/healthz/../functions",
        "/healthz/functions",
        "//healthz",
        "/healthz%2f..%2ffunctions",
        "/.well-known/../functions",
        f"{ROOT}/../../functions",
        "/HEALTHZ",
    ],
)
def test_a_path_that_looks_like_an_open_one_needs_a_token(caller: Caller, path: str) -> None:
    reply = caller.send("GET", path)

    assert reply.status_code == 401
    assert reply.headers["www-authenticate"] == CHALLENGE


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_health_needs_no_token(caller: Caller, path: str) -> None:
    assert caller.send("GET", path).status_code == 200


@pytest.mark.parametrize(
    "query", ["access_token={}", "x=1&access_token={}", "acc%65ss_token={}", "ACCESS_TOKEN={}"]
)
def test_a_token_in_the_query_is_refused(caller: Caller, issuer: Issuer, query: str) -> None:
    token = issuer.token()

    alone = caller.call(path="/functions/who?" + query.format(token))
    beside = caller.call(token, path="/functions/who?" + query.format(token))

    for reply in (alone, beside):
        assert reply.status_code == 400
        assert 'error="invalid_request"' in reply.headers["www-authenticate"]
        assert token not in reply.text + str(reply.headers)
    assert caller.ran == []


@pytest.mark.parametrize(
    "headers",
    [
        {"Cookie": "access_token={}"},
        {"Cookie": "Authorization=Bearer {}"},
        {"X-Authorization": "Bearer {}"},
        {"X-Forwarded-Authorization": "Bearer {}"},
        {"Proxy-Authorization": "Bearer {}"},
        {"X-API-Key": "{}"},
        {"X-Forwarded-User": "alice", "Remote-User": "alice"},
    ],
)
def test_a_token_in_another_header_does_not_count(
    caller: Caller, issuer: Issuer, headers: dict[str, str]
) -> None:
    sent = {name: value.format(issuer.token()) for name, value in headers.items()}

    reply = caller.send("POST", "/mcp", sent, json=CALL)

    assert reply.status_code == 401
    assert reply.headers["www-authenticate"] == CHALLENGE
    assert caller.ran == []


def test_a_token_in_the_body_does_not_count(caller: Caller, issuer: Issuer) -> None:
    form = caller.send("POST", "/functions/who", data={"access_token": issuer.token()})
    json = caller.send("POST", "/functions/who", json={"access_token": issuer.token()})

    assert [form.status_code, json.status_code] == [401, 401]
    assert caller.ran == []


def test_two_authorization_headers_are_refused_even_if_both_are_good(
    caller: Caller, issuer: Issuer
) -> None:
    header = ("Authorization", f"Bearer {issuer.token()}")

    reply = caller.send("POST", "/mcp", [header, header], json=CALL)

    assert reply.status_code == 400
    assert 'error="invalid_request"' in reply.headers["www-authenticate"]
    assert caller.ran == []


@pytest.mark.parametrize(
    "value",
    [
        "",
        "Bearer",
        "Bearer ",
        "{}",
        "Basic {}",
        "DPoP {}",
        "Token {}",
        "Bearer{}",
        "Bearer\t{}",
        "Bearer: {}",
        "Bearer {} {}",
        "Bearer {}, Bearer {}",
        'Bearer "{}"',
        "Bearer token={}",
        "Bearer {}\x00",
        "Bearer {}\xe9",
        "Bearer Bearer {}",
    ],
)
def test_a_malformed_authorization_header_is_401(
    caller: Caller, issuer: Issuer, value: str
) -> None:
    token = issuer.token()

    reply = caller.send("POST", "/mcp", {"Authorization": value.replace("{}", token)}, json=CALL)

    assert reply.status_code == 401
    assert 'error="invalid_token"' in reply.headers["www-authenticate"]
    assert token not in reply.text + str(reply.headers)
    assert caller.ran == []


@pytest.mark.parametrize("value", ["bearer {}", "BEARER {}", "Bearer   {}", "Bearer {}  "])
def test_case_and_spaces_of_the_scheme_do_not_matter(
    caller: Caller, issuer: Issuer, value: str
) -> None:
    reply = caller.send("POST", "/mcp", {"Authorization": value.format(issuer.token())}, json=CALL)

    assert reply.status_code == 200
    assert caller.ran == ["alice"]


def test_an_anonymous_server_serves_without_a_token_and_still_refuses_a_bad_one(
    issuer: Issuer,
) -> None:
    caller = oauth_caller(issuer, anonymous=True)

    listed = caller.send("POST", "/mcp", json=LIST)
    called = caller.call(path="/mcp")
    bad = caller.call(issuer.token(exp=1), path="/mcp")
    good = caller.call(issuer.token(), path="/mcp")

    assert [listed.status_code, called.status_code, bad.status_code] == [200, 200, 401]
    assert good.status_code == 200
    assert caller.ran == [None, "alice"]


@pytest.mark.parametrize("path", [ROOT, f"{ROOT}/mcp", f"{ROOT}/mcp/"])
def test_the_metadata_is_at_both_places_and_for_every_origin(caller: Caller, path: str) -> None:
    reply = caller.send("GET", path, {"Origin": "https://client.example.com"})
    preflight = caller.send("OPTIONS", path, {"Origin": "https://client.example.com"})

    assert reply.json() == {
        "resource": URL,
        "authorization_servers": [caller.auth.issuer],
        "bearer_methods_supported": ["header"],
        "scopes_supported": ["read"],
    }
    assert reply.headers["access-control-allow-origin"] == "*"
    assert preflight.status_code == 204
    assert preflight.headers["access-control-allow-origin"] == "*"


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "localhost"},
        {"X-Forwarded-Host": "evil.example.com", "X-Forwarded-Proto": "http"},
        {"Forwarded": "host=evil.example.com;proto=http"},
        {"X-Forwarded-Prefix": "/evil"},
        {"X-Original-URL": "/healthz", "X-Rewrite-URL": "/healthz"},
    ],
)
def test_headers_change_neither_the_challenge_nor_the_metadata(
    caller: Caller, headers: dict[str, str]
) -> None:
    refused = caller.send("POST", "/mcp", headers, json=CALL)
    shown = caller.send("GET", f"{ROOT}/mcp", headers)

    assert refused.status_code == 401
    assert refused.headers["www-authenticate"] == CHALLENGE
    assert shown.json()["resource"] == URL
    assert "evil" not in shown.text


def test_a_foreign_host_gets_in_nowhere_even_with_a_good_token(
    caller: Caller, issuer: Issuer
) -> None:
    headers = {"Host": "evil.example.com", "Authorization": f"Bearer {issuer.token()}"}

    reply = caller.send("POST", "/mcp", headers, json=CALL)

    assert reply.status_code == 421
    assert caller.ran == []


def test_texts_of_others_cannot_end_the_quotation_in_a_challenge() -> None:
    auth = OAuth(issuer="https://login.example.com", url=URL)
    text = 'a"\r\nSet-Cookie: x=1\\\x00\x7f\u2028é'

    written = auth.www_authenticate(Challenge(error="invalid_token", description=text))

    assert "\r" not in written
    assert "\n" not in written
    assert written.isascii()
    assert written.count('"') == 6
    assert "\\" not in written


class Proof:
    """Accepts requests with the right proof."""

    scheme = "DPoP"

    async def check(self, credentials: Credentials, token: bytes, user: User) -> None:
        if (b"dpop", b"right") not in credentials.headers or "cnf" not in user.claims:
            raise Unauthorized(Challenge(error="invalid_dpop_proof", description="no proof"))


def test_a_proof_is_checked_with_every_request(issuer: Issuer) -> None:
    caller = oauth_caller(issuer, proof=Proof())
    token = issuer.token(cnf={"jkt": "thumbprint"})
    header = {"Authorization": f"DPoP {token}"}

    right = caller.send("POST", "/mcp", header | {"DPoP": "right"}, json=CALL)
    wrong = caller.send("POST", "/mcp", header | {"DPoP": "wrong"}, json=CALL)
    unbound = caller.send("POST", "/mcp", bearer_and_proof(issuer.token()), json=CALL)

    assert [right.status_code, wrong.status_code, unbound.status_code] == [200, 401, 401]
    assert 'error="invalid_dpop_proof"' in wrong.headers["www-authenticate"]
    assert caller.ran == ["alice"]


def bearer_and_proof(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}", "DPoP": "right"}


@pytest.mark.parametrize(
    "options",
    [
        {"issuer": "http://login.example.com"},
        {"issuer": "login.example.com"},
        {"url": "http://tools.example.com/mcp"},
        {"url": "https://tools.example.com/mcp?x=1"},
        {"url": "https://user:password@tools.example.com/mcp"},
        {"url": 'https://tools.example.com/"mcp'},
        {"scopes": ["offline_access"]},
        {"scopes": ['a"b']},
        {"algorithms": ["none"]},
        {"algorithms": ["HS256"]},
        {"algorithms": []},
        {"jwks": "http://login.example.com/jwks"},
    ],
)
def test_settings_that_would_be_unsafe_are_refused(options: dict[str, object]) -> None:
    settings = {"issuer": "https://login.example.com", "url": URL} | options

    with pytest.raises(ValueError, match=r"should|cannot|leave"):
        OAuth(**settings)  # type: ignore[arg-type]  # the options are of any type


def test_a_misspelt_option_is_refused_with_the_near_name() -> None:
    with pytest.raises(TypeError, match="did you mean 'audience'"):
        OAuth(issuer="https://login.example.com", url=URL, audiance="x")  # type: ignore[call-arg]  # the mistake is tested
