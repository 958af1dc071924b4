"""Other ways to an app: CGI, an app that includes it, another server, the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.auth.issuer import URL, Issuer, ec_key
from tests.auth.requests import Caller

from answerback import App
from answerback.auth import ApiKeys, OAuth
from answerback.core.authentication import Challenge, Credentials, User

APP = """
import os, json
from answerback import App, Context
from answerback.auth import ApiKeys, OAuth

app = App("cgi", auth=OAuth(
    issuer=os.environ["ISSUER"], url="https://tools.example.com/mcp",
    jwks=json.loads(os.environ["JWKS"]),
))

@app.tool
def who(ctx: Context) -> str:
    return ctx.user.subject

if __name__ == "__main__":
    app.run()
"""


def cgi(path: Path, issuer: Issuer, environ: dict[str, str]) -> tuple[str, str]:
    """The head and the body of a CGI response."""
    keys = {"keys": [ec_key().as_dict(private=False)]}
    done = subprocess.run(
        [sys.executable, str(path), "cgi"],
        input=b"{}",
        env={
            "PYTHONPATH": ":".join(sys.path),
            "ISSUER": issuer.url,
            "JWKS": json.dumps(keys),
            "REQUEST_METHOD": "POST",
            "PATH_INFO": "/who",
            "CONTENT_LENGTH": "2",
            "CONTENT_TYPE": "application/json",
            **environ,
        },
        capture_output=True,
        timeout=30,
    )
    assert done.stderr == b""
    head, _, body = done.stdout.decode().partition("\r\n\r\n")
    return head, body


def test_cgi_authenticates_too(tmp_path: Path, issuer: Issuer) -> None:
    path = tmp_path / "app.py"
    path.write_text(APP)

    good, body = cgi(path, issuer, {"HTTP_AUTHORIZATION": f"Bearer {issuer.token()}"})
    bad, _ = cgi(path, issuer, {"HTTP_AUTHORIZATION": f"Bearer {issuer.token(exp=1)}"})
    none, _ = cgi(path, issuer, {"REMOTE_USER": "alice"})
    shown, metadata = cgi(
        path,
        issuer,
        {"REQUEST_METHOD": "GET", "PATH_INFO": "/.well-known/oauth-protected-resource"},
    )

    assert good.startswith("Status: 200")
    assert body == '{"result":"alice"}'
    assert bad.startswith("Status: 401")
    assert 'WWW-Authenticate: Bearer error="invalid_token"' in bad
    assert none.startswith("Status: 401")
    assert 'WWW-Authenticate: Bearer resource_metadata="https://tools' in none
    assert shown.startswith("Status: 200")
    assert json.loads(metadata)["resource"] == URL


def test_an_app_that_includes_one_with_auth_needs_auth_itself(caller: Caller) -> None:
    outer = App("outer")
    outer.include(caller.app)

    with pytest.raises(ValueError, match="pass auth= to 'outer'"):
        outer.asgi()


def test_a_user_that_other_middleware_put_into_the_scope_does_not_count(issuer: Issuer) -> None:
    caller = Caller(OAuth(issuer=issuer.url, url=URL, anonymous=True))
    asgi = caller.asgi

    class Admin:
        subject = "admin"

    async def with_user(scope: Any, receive: Any, send: Any) -> None:
        await asgi({**scope, "user": Admin()}, receive, send)

    caller.asgi = with_user  # type: ignore[assignment]  # an application around it

    assert caller.call().status_code == 200
    assert caller.ran == [None]


@pytest.mark.parametrize(
    ("auth", "warns"),
    [("", True), (", auth=ApiKeys({'" + "0" * 64 + "': 'ci'})", False)],
    ids=["without auth", "with auth"],
)
def test_a_server_away_from_loopback_warns_unless_it_authenticates(
    tmp_path: Path, serve: Any, auth: str, warns: bool
) -> None:
    path = tmp_path / "app.py"
    path.write_text(
        "from answerback import App\n"
        "from answerback.auth import ApiKeys\n"
        f"app = App('x'{auth})\n"
        "app.run()\n"
    )

    with serve(path, "--host", "0.0.0.0") as server:
        announced = server.announced

    assert ("nothing authenticates clients" in announced) == warns


def test_an_app_with_oauth_that_gets_no_token_loads_neither_jose_nor_an_http_client() -> None:
    code = (
        "import sys\n"
        "from answerback import App\n"
        "assert 'answerback.auth' not in sys.modules\n"
        "assert 'answerback.core.authentication' not in sys.modules\n"
        "from answerback.auth import OAuth\n"
        "App('x', auth=OAuth(issuer='https://a.example.com', url='https://b.example.com/mcp'))\n"
        "heavy = ('joserfc', 'answerback.http1', 'cryptography')\n"
        "print([name for name in heavy if name in sys.modules])\n"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=30)

    assert done.stdout.decode() == "[]\n"
    assert done.stderr.decode() == ""


class ByGateway:
    """A way of an author's own: the header that a gateway sets."""

    anonymous = False

    async def authenticate(self, credentials: Credentials) -> User | None:
        names = [value for name, value in credentials.headers if name == b"x-gateway-user"]
        return User(subject=names[0].decode(), issuer="gateway") if names else None

    def www_authenticate(self, challenge: Challenge) -> str:
        return "Gateway"


def test_an_author_can_write_another_way_to_authenticate() -> None:
    caller = Caller(ByGateway())

    good = caller.send("POST", "/functions/who", {"X-Gateway-User": "alice"}, json={})
    none = caller.send("POST", "/functions/who", json={})

    assert [good.status_code, none.status_code] == [200, 401]
    assert none.headers["www-authenticate"] == "Gateway"
    assert caller.ran == ["alice"]


@pytest.mark.parametrize("auth", ["secret", OAuth, ByGateway, object()])
def test_a_value_that_cannot_authenticate_is_refused_when_the_app_is_made(auth: Any) -> None:
    with pytest.raises(TypeError, match="auth"):
        App("open", auth=auth)


def test_a_missing_extra_is_named_when_the_app_is_made() -> None:
    code = (
        "import sys\n"
        "sys.modules['joserfc'] = None\n"
        "from answerback.auth import OAuth\n"
        "OAuth(issuer='https://a.example.com', url='https://b.example.com/mcp')\n"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=30)

    assert b"joserfc is not installed; run: pip install 'answerback[auth]'" in done.stderr


def test_the_openapi_document_says_how_to_authenticate(caller: Caller) -> None:
    document = caller.app.openapi()
    keys = App("keys", auth=ApiKeys({}, anonymous=True)).openapi()

    assert document["security"] == [{"bearer": []}]
    assert document["components"]["securitySchemes"] == {
        "bearer": {"type": "http", "scheme": "bearer"}
    }
    assert document["paths"]["/healthz"]["get"]["security"] == []
    assert keys["security"] == [{}, {"bearer": []}, {"key": []}]
    without = App("open").openapi()
    assert without["security"] == []
    assert "security" not in without["paths"]["/healthz"]["get"]
