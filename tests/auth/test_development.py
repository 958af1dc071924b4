"""Test tokens: issued by the server itself, to clients on this machine alone."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.auth.issuer import Issuer, running_issuer
from tests.auth.requests import CALL, Caller
from tests.conftest import Server, serving

from answerback.auth import OAuth

APP = """
import os
from answerback import App, Context
from answerback.auth import OAuth

app = App("demo", auth=OAuth(
    issuer="https://login.example.com", url="https://tools.example.com/mcp", scopes=["read"]
))

@app.tool
async def who(ctx: Context) -> str:
    return f"{ctx.user.subject} {sorted(ctx.user.scopes)}"

if __name__ == "__main__":
    app.run()
"""
URL = "http://127.0.0.1:8000/mcp"


@pytest.fixture(scope="module")
def app_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("app") / "demo.py"
    path.write_text(APP)
    return path


@pytest.fixture(scope="module")
def server(app_path: Path) -> Iterator[Server]:
    """The app with two workers: the key is made before they start."""
    with serving(app_path, "--dev-auth", "--workers", "2") as running:
        yield running


def post(server: Server, path: str, **options: Any) -> httpx.Response:
    return httpx.post(f"{server.url}{path}", trust_env=False, timeout=60, **options)


def test_the_server_says_loudly_that_it_issues_test_tokens(server: Server) -> None:
    assert "WARNING: DEVELOPMENT AUTH" in server.announced
    assert f"POST {server.url}/dev/token" in server.announced


def test_the_command_prints_a_token_that_every_worker_accepts(server: Server) -> None:
    command = [sys.executable, "-m", "answerback", "token", server.url, "--user", "alice"]
    token = subprocess.run(
        [*command, "--scope", "write"], capture_output=True, check=True, timeout=30
    ).stdout.decode()

    headers = {"Authorization": f"Bearer {token.strip()}"}
    replies = [post(server, "/functions/who", json={}, headers=headers) for _ in range(6)]

    assert {reply.text for reply in replies} == {"{\"result\":\"alice ['read', 'write']\"}"}


def test_the_session_of_another_user_is_unknown_at_every_worker(server: Server) -> None:
    tokens = [
        post(server, "/dev/token", json={"user": user}).json()["access_token"]
        for user in ("alice", "mallory")
    ]
    own, other = ({"Authorization": f"Bearer {token}"} for token in tokens)
    begin = {**CALL, "method": "initialize", "params": {}}
    begin["params"] = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    }
    session = post(server, "/mcp", json=begin, headers=own).headers["mcp-session-id"]
    named = {"Mcp-Session-Id": session}

    own_statuses = {
        post(server, "/mcp", json=CALL, headers=own | named).status_code for _ in "1234"
    }
    statuses = {post(server, "/mcp", json=CALL, headers=other | named).status_code for _ in "1234"}

    assert own_statuses == {200}
    assert statuses == {404}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "https://evil.example.com"}, 403),
        ({"Host": "evil.example.com"}, 421),
        ({"X-Forwarded-For": "203.0.113.7"}, 403),
        ({"Forwarded": "for=203.0.113.7"}, 403),
    ],
)
def test_pages_and_clients_elsewhere_get_no_test_token(
    server: Server, headers: dict[str, str], status: int
) -> None:
    reply = post(server, "/dev/token", json={}, headers=headers)

    assert reply.status_code == status
    assert "access_token" not in reply.text


@pytest.mark.parametrize("body", [b"[]", b"{", b'{"usr": "x"}', b'{"user": 7}'])
def test_a_malformed_request_for_a_test_token_is_400(server: Server, body: bytes) -> None:
    assert post(server, "/dev/token", content=body).status_code == 400


@pytest.mark.parametrize(
    "flags", [("--host", "0.0.0.0"), ("--trust-proxy", "10.0.0.1"), ("--uds", "answerback.sock")]
)
def test_the_server_does_not_start_with_test_tokens_away_from_loopback(
    app_path: Path, flags: tuple[str, ...]
) -> None:
    where = () if "--uds" in flags else ("--port", "0")
    command = [sys.executable, str(app_path), "serve", "--dev-auth", *where, *flags]

    done = subprocess.run(command, capture_output=True, timeout=30, cwd=app_path.parent)

    assert done.returncode == 2
    assert b"only work on this machine" in done.stderr


def test_test_tokens_for_an_app_with_keys_are_refused_with_what_the_app_has(tmp_path: Path) -> None:
    source = tmp_path / "keys.py"
    source.write_text(
        "from answerback import App\n"
        "from answerback.auth import ApiKeys\n"
        f"app = App('keys', auth=ApiKeys({{'{'0' * 64}': 'laptop'}}))\n"
        "app.run()\n"
    )
    command = [sys.executable, str(source), "serve", "--dev-auth", "--port", "0"]

    done = subprocess.run(command, capture_output=True, timeout=30)

    assert done.returncode == 2
    assert b"needs an app with auth=OAuth(...); this one has auth=ApiKeys(...)" in done.stderr


def test_a_development_app_refuses_other_addresses_under_any_server() -> None:
    caller = Caller(OAuth.development(URL))
    token = caller.auth.issue("alice")
    asgi = caller.asgi

    async def elsewhere(scope: Any, receive: Any, send: Any) -> None:
        await asgi({**scope, "server": ("10.0.0.1", 80)}, receive, send)

    assert caller.call(token).status_code == 200
    caller.asgi = elsewhere  # type: ignore[assignment]  # an application around it
    assert caller.call(token).status_code == 403
    assert caller.ran == ["alice"]


def test_a_real_server_does_not_know_the_page_of_test_tokens(
    caller: Caller, issuer: Issuer
) -> None:
    headers = {"Authorization": f"Bearer {issuer.token()}"}

    assert caller.send("POST", "/dev/token", headers, json={}).status_code == 404
    assert caller.call(OAuth.development(URL).issue("alice")).status_code == 401


def test_test_tokens_need_an_address_of_this_machine() -> None:
    with pytest.raises(ValueError, match="this machine"):
        OAuth.development("https://tools.example.com/mcp")


def test_the_token_command_does_not_ask_a_proxy_and_says_who_gives_no_tokens() -> None:
    command = [sys.executable, "-m", "answerback", "token"]
    with running_issuer() as other, running_issuer() as proxy:
        env = {**os.environ, "http_proxy": proxy.url, "no_proxy": "", "NO_PROXY": ""}
        done = subprocess.run([*command, other.url], capture_output=True, timeout=30, env=env)

    assert done.returncode == 2
    assert b"issues no test tokens (404); start it with: serve --dev-auth" in done.stderr
    assert other.posted
    assert not proxy.counts


def test_the_token_command_says_what_is_missing(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "answerback", "token", "http://127.0.0.1:9"]

    done = subprocess.run(command, capture_output=True, timeout=30)

    assert done.returncode == 2
    assert b"did not respond" in done.stderr
