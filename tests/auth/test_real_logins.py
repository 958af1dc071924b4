"""Real logins: the official clients at a real identity provider (oidc-provider), in both eras."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import msgspec
import pytest
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata
from pydantic import AnyUrl
from tests.auth.sdk_storage import SdkStorage
from tests.ports import listening
from tests.protocol.official_tools import node_command, node_environment

HERE = Path(__file__).parent
REDIRECT = "http://127.0.0.1:9/callback"
BOUND = 60


@contextmanager
def accounts_served(home: Path) -> Iterator[str]:
    """The address of an app behind a real identity provider."""
    provider = subprocess.Popen(
        node_command(HERE / "identity_provider.mjs"),
        env=node_environment(home),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert provider.stdout is not None
    issuer = provider.stdout.readline().decode().strip()
    url = "http://127.0.0.1:{}/mcp"

    def command(port: int) -> list[str]:
        app = [sys.executable, str(HERE / "accounts_app.py"), "serve", "--port", str(port)]
        return ["env", f"ISSUER={issuer}", f"URL={url.format(port)}", *app]

    try:
        with listening(command, home / "log") as app:
            yield url.format(app.port)
    finally:
        provider.communicate(timeout=60)


@pytest.fixture(scope="module")
def accounts_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of an app behind a real identity provider."""
    with accounts_served(tmp_path_factory.mktemp("home")) as url:
        yield url


class Login(SdkStorage):
    """The storage and the browser of a user who logs in and consents."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.answer: dict[str, list[str]] = {}

    async def visit(self, page: str) -> None:
        self.asked += parse_qs(urlsplit(page).query)["scope"]
        async with httpx.AsyncClient(trust_env=False) as browser:
            while not page.startswith(REDIRECT):
                page = str(httpx.URL(page).join((await browser.get(page)).headers["location"]))
        self.answer = parse_qs(urlsplit(page).query)

    async def callback(self) -> AuthorizationCodeResult:
        found = {name: values[0] for name, values in self.answer.items()}
        return AuthorizationCodeResult(
            code=found["code"], state=found.get("state"), iss=found.get("iss")
        )


async def log_in(url: str, mode: str) -> dict[str, Any]:
    login = Login()
    provider = OAuthClientProvider(
        url,
        OAuthClientMetadata(
            client_name="test",
            redirect_uris=[AnyUrl(REDIRECT)],
            grant_types=["authorization_code"],
            token_endpoint_auth_method="none",
        ),
        login,
        login.visit,
        login.callback,
    )
    async with (
        asyncio.timeout(BOUND),
        create_mcp_http_client(auth=provider) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode) as client,
    ):
        who = await client.call_tool("who", {})
        transfer = await client.call_tool("transfer", {})
        return {
            "era": "legacy" if client.session.discover_result is None else "modern",
            "who": who.content[0].text,  # type: ignore[union-attr]  # it is text
            "transfer": transfer.content[0].text,  # type: ignore[union-attr]  # it is text
            "asked": login.asked,
        }


EXPECTED = {
    "who": "alice accounts:read",
    "transfer": "alice accounts:read accounts:write",
}


@pytest.mark.parametrize(("mode", "era"), [("legacy", "legacy"), ("auto", "modern")])
def test_the_python_client_logs_in_after_the_401_and_again_for_another_scope(
    accounts_url: str, mode: str, era: str
) -> None:
    found = asyncio.run(log_in(accounts_url, mode))

    asked = found.pop("asked")
    assert found == {**EXPECTED, "era": era}
    assert asked[0] == "accounts:read"
    assert "accounts:write" in asked[1]


@pytest.mark.parametrize(("mode", "era"), [("legacy", "legacy"), ("auto", "modern")])
def test_the_typescript_client_logs_in_after_the_401_and_again_for_another_scope(
    accounts_url: str, tmp_path: Path, mode: str, era: str
) -> None:
    done = subprocess.run(
        node_command(HERE / "typescript_login.mjs", mode, accounts_url),
        env=node_environment(tmp_path),
        capture_output=True,
        timeout=BOUND,
    )

    assert done.stderr.decode() == ""
    found = msgspec.json.decode(done.stdout)
    asked = found.pop("asked")
    assert found == {**EXPECTED, "era": era}
    assert asked[0] == "accounts:read"
    assert "accounts:write" in asked[1]
