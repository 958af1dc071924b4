"""Hostile tokens, and authenticators and issuers that do not behave."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from ssl import PROTOCOL_TLS_SERVER, SSLContext
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from tests.auth.issuer import Issuer, encode, running_issuer
from tests.auth.requests import CALL, PATHS, Caller, oauth_caller

from answerback import App
from answerback.auth import ApiKeys, Introspection, OAuth
from answerback.core.authentication import Credentials
from answerback.gates import login


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
    served = outer.asgi()

    with pytest.raises(ValueError, match="'strict' has auth=, but 'outer', which includes it"):
        (middle if is_nested else outer).include(strict_app())
    assert outer.tools.get("secret") is None
    # An application that nothing refers to is not served.
    del served


def test_an_app_that_requires_a_token_cannot_be_included_in_one_for_everyone() -> None:
    outer = App("outer", auth=ApiKeys({ApiKeys.new().digest: "ci"}, anonymous=True))
    outer.include(strict_app())

    with pytest.raises(ValueError, match="'strict' requires a token, but 'outer'"):
        outer.asgi()


def certificate(folder: Path) -> Path:
    """A certificate that its own key has signed, and the key, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "issuer")])
    names = [x509.IPAddress(ip_address(each)) for each in ("127.0.0.1", "0.0.0.0")]
    now = datetime.now(UTC)
    signed = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(key, SHA256())
    )
    path = folder / "certificate.pem"
    path.write_bytes(
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        + signed.public_bytes(Encoding.PEM)
    )
    return path


def server_tls(path: Path) -> SSLContext:
    context = SSLContext(PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    return context


@pytest.mark.parametrize("scheme", ["https", "HTTPS"])
def test_the_certificate_of_an_issuer_is_verified_however_its_scheme_is_written(
    tmp_path: Path, scheme: str
) -> None:
    with running_issuer(f"{scheme}://127.0.0.1", server_tls(certificate(tmp_path))) as issuer:
        caller = oauth_caller(issuer, jwks=f"{issuer.url}/jwks")

        response = caller.call(issuer.token())

        assert response.status_code == 503
        assert caller.ran == []


@pytest.mark.parametrize("moved", [True, False])
def test_an_issuer_elsewhere_cannot_move_its_keys_to_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, issuer: Issuer, moved: bool
) -> None:
    """The address 0.0.0.0 leads here too, and is not taken for this machine."""
    path = certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(path))
    with running_issuer("https://0.0.0.0", server_tls(path)) as remote:
        if moved:
            remote.metadata["jwks_uri"] = f"{issuer.url}/jwks"
        caller = oauth_caller(remote)

        response = caller.call(remote.token())

        assert response.status_code == (503 if moved else 200)
        assert issuer.counts["/jwks"] == 0


@pytest.mark.parametrize(
    "scope", ["admin\u2003read", "admin\u00a0read", "admin\x1cread", ["admin read"], "admin\nread"]
)
def test_only_a_space_separates_scopes(issuer: Issuer, scope: Any) -> None:
    """The name of one scope must not contain that of another, which the issuer did not grant."""
    caller = oauth_caller(issuer, scopes=["read"])

    response = caller.call(issuer.token(scope=scope))

    assert response.status_code == 403
    assert 'error="insufficient_scope"' in response.headers["www-authenticate"]


@pytest.mark.parametrize(
    "changes", [{"typ": "Refresh"}, {"typ": "ID"}, {"token_use": "id"}, {"events": {}}]
)
def test_a_token_of_another_kind_is_refused_although_the_issuer_says_that_it_is_active(
    issuer: Issuer, changes: dict[str, Any]
) -> None:
    settings = Introspection(client_id="tools", client_secret="a-secret")
    caller = oauth_caller(issuer, introspection=settings)
    issuer.active = {"active": True, **issuer.claims(**changes)}

    response = caller.call("opaque-token-1234567890")

    assert response.status_code == 401
    assert 'error="invalid_token"' in response.headers["www-authenticate"]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Host": "localhost:8000", "Origin": "http://localhost:8000"}, 200),
        ({"Host": "[::1]:8000"}, 200),
        # A page whose name leads to this machine (DNS rebinding).
        ({"Host": "evil.example.com:8000", "Origin": "http://evil.example.com:8000"}, 403),
        ({"Host": "evil.example.com"}, 403),
        ({"Origin": "https://evil.example.com"}, 403),
        ({"Origin": "null"}, 403),
        # A proxy on this machine, for clients elsewhere.
        ({"X-Forwarded-Host": "tools.example.com"}, 403),
        ({"Via": "1.1 tunnel"}, 403),
    ],
)
def test_only_this_machine_gets_test_tokens_also_if_every_host_and_origin_is_allowed(
    headers: dict[str, str], status: int
) -> None:
    caller = Caller(OAuth.development())
    caller.asgi = caller.app.asgi(hosts=["*"], origins=["*"])

    response = caller.send("POST", "/dev/token", headers, json={})

    assert response.status_code == status
    assert ("access_token" in response.text) == (status == 200)


def test_the_repr_of_credentials_shows_neither_headers_nor_the_query() -> None:
    """An author's authenticator may log them."""
    headers = [(b"authorization", b"Bearer secret-token")]

    shown = repr(Credentials("POST", "/mcp", b"access_token=secret-query", headers))

    assert shown == "<Credentials POST /mcp>"


@pytest.mark.parametrize("value", [False, True, "", "alice", 0, {}])
@pytest.mark.parametrize("path", PATHS)
def test_a_value_of_an_authenticator_that_is_no_user_lets_nobody_in(
    value: Any, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    class Odd(Broken):
        async def authenticate(self, credentials: Any) -> Any:
            return value

    caller = Caller(Odd())

    @caller.app.tool(requires=[login()])
    def private() -> str:
        caller.ran.append("private")
        return "private"

    body = {**CALL, "params": {"name": "private"}}
    response = caller.send(
        "POST", path.replace("who", "private"), json={} if "who" in path else body
    )

    assert response.status_code == 500
    assert f"returned {type(value).__name__}" in caplog.text
    assert caller.ran == []


FIRST_TOKEN = """
import asyncio, sys, threading

threads = {}

class Watch:
    def find_spec(self, name, path=None, target=None):
        threads.setdefault(name, threading.current_thread() is threading.main_thread())

sys.meta_path.insert(0, Watch())
from answerback.auth import OAuth
from answerback.core.authentication import Credentials, Unauthorized

auth = OAuth(issuer="https://id.example.com", url="https://example.com/mcp", jwks={"keys": []})
asked = Credentials("POST", "/mcp", b"", [(b"authorization", b"Bearer a.b.c")])

async def main():
    requests = [auth.authenticate(asked) for _ in range(3)]
    found = await asyncio.gather(*requests, return_exceptions=True)
    kinds = {type(each).__name__ for each in found}
    print(kinds, threads["joserfc.jws"], threads["answerback.http1.http_pool"])

asyncio.run(main())
"""


def test_the_first_token_does_not_stop_the_event_loop_for_imports() -> None:
    """They take some 200 milliseconds, so a thread beside the event loop does them."""
    done = subprocess.run(
        [sys.executable, "-c", FIRST_TOKEN],
        env={"PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert done.stdout == "{'Unauthorized'} False False\n", done.stderr
