"""Runs the programs of docs/guides/recipes/logins.md against a stand-in of each provider."""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from mcp import Client
from mcp.client.auth import OAuthClientProvider, OAuthTokenError
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
)
from pydantic import AnyUrl
from tests.auth.login_providers import (
    PROVIDERS,
    SECRET,
    Auth0,
    Entra,
    GitHub,
    Google,
    Keycloak,
    StandIn,
    moved,
    serving,
)
from tests.auth.sdk_storage import SdkStorage
from tests.docs.test_deployment import served
from tests.ports import free_port

from answerback import connect
from answerback.client import ConnectError
from answerback.client.login import Login, RegisteredClient

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "guides" / "recipes" / "logins.md").read_text()
BOUND = 60
PAST = int(time.time()) - 3600
ENVIRON = {
    "GOOGLE_CLIENT_IDS": f"another-client,{Google.client_id}",
    "GOOGLE_CLIENT_ID": Google.client_id,
    "GOOGLE_CLIENT_SECRET": SECRET,
    "GITHUB_CLIENT_ID": GitHub.client_id,
    "GITHUB_CLIENT_SECRET": SECRET,
    "KEYCLOAK_SECRET": SECRET,
}
Provider = type[StandIn]
every_provider = pytest.mark.parametrize("kind", PROVIDERS, ids=lambda kind: kind.__name__)
with_own_scopes = pytest.mark.parametrize("kind", [Auth0, Keycloak, Entra])


def section(name: str) -> str:
    found = re.search(rf"^## {name}\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE)
    assert found is not None
    return found[1]


def block(text: str, language: str, number: int = 0) -> str:
    found: list[str] = re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)
    return found[number]


class Site(NamedTuple):
    """A provider, and the page's server that accepts its tokens."""

    provider: Any
    url: str
    """The address of the MCP endpoint."""

    def call(self, token: str | None, tool: str = "who", **arguments: Any) -> httpx.Response:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        address = f"{self.url.removesuffix('/mcp')}/functions/{tool}"
        return httpx.post(address, json=arguments, headers=headers, trust_env=False, timeout=BOUND)

    def moved(self, text: str) -> str:
        return moved(type(self.provider), text, self.provider.base, self.url)

    def login(self, visitor: Visitor) -> Login:
        """The login of the section's client.py."""
        names: dict[str, Any] = {}
        exec(self.moved(block(section(self.provider.name), "py", 1)), names)
        login: Login = names["login"]
        login.open_url = visitor
        return login


class Visitor:
    """The browser of a user who agrees to every login."""

    def __call__(self, page: str) -> None:
        redirect = parse_qs(urlsplit(page).query)["redirect_uri"][0]
        with httpx.Client(trust_env=False, timeout=BOUND) as browser:
            while not page.startswith(redirect):
                page = browser.get(page).headers["location"]
            browser.get(page)


Sites = Callable[[Provider], Site]


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sites]:
    """Starts the page's server for a provider at its first use."""
    with ExitStack() as stack:
        started: dict[Provider, Site] = {}

        def start(kind: Provider) -> Site:
            if kind not in started:
                folder = tmp_path_factory.mktemp("server")
                started[kind] = stack.enter_context(_started(kind, folder))
            started[kind].provider.asked.clear()
            return started[kind]

        yield start


@pytest.fixture(autouse=True)
def _environ(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in ENVIRON.items():
        monkeypatch.setenv(name, value)


@contextmanager
def _started(kind: Provider, folder: Path, program: int = 0) -> Iterator[Site]:
    """A provider and the server with the section's program of that number."""
    text, port = section(kind.name), free_port()
    address = f"http://127.0.0.1:{port}/mcp"
    with serving(kind, block(text, "json"), address) as provider:
        if isinstance(provider, Entra):
            provider.application_uri = address
        site = Site(provider, address)
        (folder / "tools.py").write_text(block(section("The server"), "py"))
        (folder / "login.py").write_text(site.moved(block(text, "py", program)))
        command = [sys.executable, "tools.py", "serve", "--port", str(port)]
        with served(command, folder, **ENVIRON):
            yield site


def asked_scopes(response: httpx.Response) -> list[str]:
    """The scopes that a challenge names."""
    found = re.search(r'scope="(.*?)"', response.headers["www-authenticate"])
    assert found is not None
    return found[1].split()


@every_provider
def test_a_token_is_accepted_and_its_user_is_as_the_page_says(sites: Sites, kind: Provider) -> None:
    site = sites(kind)

    response = site.call(site.provider.token())

    assert response.status_code == 200
    assert response.json() == json.loads(block(section(kind.name), "json", 1))


@every_provider
def test_a_client_without_a_token_learns_where_to_log_in(sites: Sites, kind: Provider) -> None:
    site = sites(kind)

    refused = site.call(None)
    named = re.search(r'resource_metadata="(.*?)"', refused.headers["www-authenticate"])
    assert named is not None
    metadata = httpx.get(named[1], trust_env=False).json()

    assert refused.status_code == 401
    assert metadata["resource"] == site.url
    assert metadata["authorization_servers"] == [site.provider.issuer]
    assert metadata["scopes_supported"] == asked_scopes(refused)


BAD_TOKENS: list[tuple[Provider, str, dict[str, Any], str]] = [
    (Auth0, "of another API", {"aud": "https://other.example.com"}, "for another audience"),
    (Auth0, "of another tenant", {"iss": "https://o.auth0.com/"}, "from another issuer"),
    (Auth0, "of the tenant without the slash", {"iss": "…"}, "from another issuer"),
    (Auth0, "that has expired", {"exp": PAST}, "has expired"),
    (Keycloak, "without the mapper", {"aud": None}, "for another audience"),
    (Keycloak, "for account", {"aud": "account"}, "for another audience"),
    (Keycloak, "of another realm", {"iss": "https://x.example.com/realms/o"}, "another issuer"),
    (Keycloak, "that refreshes others", {"typ": "Refresh"}, "not an access token"),
    (Keycloak, "that is an ID token", {"typ": "ID"}, "not an access token"),
    (Keycloak, "that has expired", {"exp": PAST}, "has expired"),
    (Entra, "of Graph", {"aud": "00000003-0000-0000-c000-000000000000"}, "for another audience"),
    (
        Entra,
        "of another tenant",
        {"iss": "https://login.microsoftonline.com/other/v2.0", "tid": "other"},
        "from another issuer",
    ),
    (
        Entra,
        "of version 1",
        {"ver": "1.0", "iss": "https://sts.windows.net/1/", "azp": None, "appid": "9"},
        "from another issuer",
    ),
    (Entra, "that has expired", {"exp": PAST}, "has expired"),
    (Google, "of another client", {"aud": "x.apps.googleusercontent.com"}, "another audience"),
    (Google, "that has expired", {"exp": str(PAST)}, "not active"),
    (GitHub, "of another application", {"app": {"client_id": "Iv1.other"}}, "not active"),
    (GitHub, "that has expired", {"expires_at": "2026-01-01T00:00:00Z"}, "has expired"),
]


@pytest.mark.parametrize(
    ("kind", "what", "changes", "reason"),
    BAD_TOKENS,
    ids=[f"{kind.__name__}: {what}" for kind, what, _, _ in BAD_TOKENS],
)
def test_a_token_that_is_not_for_this_server_is_refused(
    sites: Sites, kind: Provider, what: str, changes: dict[str, Any], reason: str
) -> None:
    site = sites(kind)
    if changes.get("iss") == "…":
        changes = {"iss": site.provider.issuer.rstrip("/")}

    response = site.call(site.provider.token(**changes))

    challenge = response.headers["www-authenticate"]
    assert response.status_code == 401
    assert 'error="invalid_token"' in challenge
    assert reason in challenge


@pytest.mark.parametrize("kind", [Google, GitHub])
def test_a_token_that_the_provider_does_not_know_is_refused(sites: Sites, kind: Provider) -> None:
    response = sites(kind).call("ghp_a-personal-token-or-any-other-text")

    assert response.status_code == 401
    assert "not active" in response.headers["www-authenticate"]


def test_an_encrypted_token_of_auth0_is_refused(sites: Sites) -> None:
    site = sites(Auth0)

    response = site.call(site.provider.encrypted_token())

    assert response.status_code == 401
    assert "the token is malformed" in response.headers["www-authenticate"]


WITHOUT_SCOPE: list[tuple[Provider, dict[str, Any]]] = [
    (Auth0, {"scope": "openid"}),
    (Keycloak, {"scope": "profile email"}),
    (Entra, {"scp": "User.Read"}),
    (Google, {"scope": "openid"}),
    (GitHub, {"scopes": []}),
]


@pytest.mark.parametrize(("kind", "changes"), WITHOUT_SCOPE)
def test_a_token_without_the_scope_is_refused_with_the_scope_to_ask_for(
    sites: Sites, kind: Provider, changes: dict[str, Any]
) -> None:
    site = sites(kind)

    response = site.call(site.provider.token(**changes))

    assert response.status_code == 403
    assert 'error="insufficient_scope"' in response.headers["www-authenticate"]
    assert asked_scopes(response) == asked_scopes(site.call(None))


def test_entras_clients_are_told_the_scopes_with_the_prefix(sites: Sites) -> None:
    site = sites(Entra)
    token = site.provider.token(scp="notes.read")

    response = site.call(token, "add_note", text="x")

    assert response.status_code == 403
    assert asked_scopes(response) == [f"{site.url}/notes.read", f"{site.url}/notes.write"]


def test_a_programs_roles_at_entra_count_as_its_scopes(sites: Sites) -> None:
    site = sites(Entra)
    program = {"scp": None, "name": None, "preferred_username": None, "azpacr": "1"}

    response = site.call(site.provider.token(**program, roles=["notes.read"]))

    assert response.json()["scopes"] == ["notes.read"]


def test_a_wider_scope_of_github_includes_the_needed_one(sites: Sites) -> None:
    site = sites(GitHub)

    response = site.call(site.provider.token(scopes=["user", "repo"]))

    assert response.json()["scopes"] == ["read:user", "repo", "user"]


@pytest.mark.parametrize(
    ("kind", "path"),
    [(Google, "/tokeninfo"), (GitHub, f"/applications/{GitHub.client_id}/token")],
)
def test_the_provider_is_asked_once_about_a_token(sites: Sites, kind: Provider, path: str) -> None:
    site = sites(kind)
    token = site.provider.token()
    before = site.provider.counts[path]

    answers = [site.call(token).status_code for _ in range(3)]

    assert answers == [200, 200, 200]
    assert site.provider.counts[path] == before + 1


@pytest.mark.parametrize("kind", [Google, GitHub])
def test_nobody_gets_in_while_the_provider_does_not_work(sites: Sites, kind: Provider) -> None:
    site = sites(kind)
    token = site.provider.token()
    site.provider.away = True
    try:
        response = site.call(token)
    finally:
        site.provider.away = False

    assert response.status_code == 503
    assert site.call(token).status_code == 200


def test_a_logout_at_keycloak_counts_with_introspection(tmp_path: Path) -> None:
    with _started(Keycloak, tmp_path, program=2) as site:
        staying, leaving = (site.provider.token(jti=name) for name in ("one", "two"))
        site.provider.ended.add(leaving)

        accepted, refused = site.call(staying), site.call(leaving)
        elsewhere = site.call(site.provider.token(aud="account"))

    assert accepted.json() == json.loads(block(section("Keycloak"), "json", 1))
    assert refused.status_code == 401
    assert "not active" in refused.headers["www-authenticate"]
    assert elsewhere.status_code == 401


@every_provider
def test_our_client_logs_in_with_the_pages_settings(sites: Sites, kind: Provider) -> None:
    site = sites(kind)
    shown = json.loads(block(section(kind.name), "json", 1))

    with connect(site.url, auth=site.login(Visitor())) as server:
        reply = server.call("who")

    assert reply.data["subject"] == shown["subject"]
    assert len(site.provider.asked) == 1
    assert site.provider.asked[0]["resource"] == site.url
    if kind.client_id:
        assert reply.data["client"] == shown["client"]


@with_own_scopes
def test_our_client_logs_in_again_for_another_scope(sites: Sites, kind: Provider) -> None:
    site = sites(kind)

    with connect(site.url, auth=site.login(Visitor())) as server:
        first, second = server.call("who"), server.call("add_note", text="milk")

    assert "notes.write" not in first.data["scopes"]
    assert second.data == f"{first.data['subject']} wrote milk"
    assert len(site.provider.asked) == 2


@pytest.mark.parametrize("kind", [Google, GitHub])
def test_a_scope_of_your_own_cannot_be_had_from_google_or_github(
    sites: Sites, kind: Provider
) -> None:
    with connect(sites(kind).url, auth=sites(kind).login(Visitor())) as server:
        reply = server.call("add_note", text="milk")

    assert not reply.ok


def test_our_client_does_not_log_in_at_entra_unless_it_may_assume_pkce(sites: Sites) -> None:
    site = sites(Entra)
    login = site.login(Visitor())
    login.assume_pkce = False

    with pytest.raises(ConnectError, match="assume_pkce=True"), connect(site.url, auth=login):
        pass

    assert site.provider.asked == []


def test_a_login_at_entra_fails_if_the_application_uri_is_not_the_servers_address(
    sites: Sites, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = sites(Entra)
    monkeypatch.setattr(site.provider, "application_uri", "api://notes")

    with (
        pytest.raises(ConnectError, match="AADSTS"),
        connect(site.url, auth=site.login(Visitor())),
    ):
        pass


def test_a_login_at_auth0_without_the_profile_for_resource_ends_with_a_refused_token(
    sites: Sites, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = sites(Auth0)
    monkeypatch.setattr(site.provider, "has_resource_profile", False)

    with (
        pytest.raises(ConnectError, match="the token is malformed"),
        connect(site.url, auth=site.login(Visitor())),
    ):
        pass


def test_a_registration_that_keycloaks_policy_refuses_says_so(
    sites: Sites, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = sites(Keycloak)
    monkeypatch.setattr(site.provider, "allowed", frozenset({"profile"}))

    with (
        pytest.raises(ConnectError, match="refused to register this program"),
        connect(site.url, auth=site.login(Visitor())),
    ):
        pass

    assert site.provider.asked == []


@pytest.mark.parametrize("kind", [Entra, Google, GitHub])
def test_a_client_without_an_id_is_told_to_register_one(sites: Sites, kind: Provider) -> None:
    site = sites(kind)
    login = Login(open_url=Visitor(), assume_pkce=True)

    with (
        pytest.raises(ConnectError, match="does not register programs automatically"),
        connect(site.url, auth=login),
    ):
        pass


def test_a_client_with_a_wrong_secret_gets_no_token(sites: Sites) -> None:
    site = sites(GitHub)
    client = RegisteredClient(GitHub.client_id, "wrong", site.provider.issuer)

    with (
        pytest.raises(ConnectError, match="issued no token"),
        connect(site.url, auth=Login(client, open_url=Visitor())),
    ):
        pass


class SdkLogin(SdkStorage):
    """The storage and the browser of a user of the official SDK's client."""

    def __init__(self, kind: Provider) -> None:
        # Entra knows the name and not the address.
        host = "localhost" if kind is Entra else "127.0.0.1"
        self.redirect = f"http://{host}:9/callback"
        if kind.client_id:
            self.client = OAuthClientInformationFull(
                client_id=kind.client_id,
                client_secret=kind.secret,
                redirect_uris=[AnyUrl(self.redirect)],
                token_endpoint_auth_method="client_secret_post" if kind.secret else "none",
            )
        self.answer: dict[str, str] = {}

    async def visit(self, page: str) -> None:
        async with httpx.AsyncClient(trust_env=False) as browser:
            found = (await browser.get(page)).headers["location"]
        query = parse_qs(urlsplit(found).query)
        self.answer = {name: values[0] for name, values in query.items()}

    async def callback(self) -> AuthorizationCodeResult:
        return AuthorizationCodeResult(
            code=self.answer["code"], state=self.answer.get("state"), iss=self.answer.get("iss")
        )


def who_by_the_sdk(site: Site, kind: Provider) -> Any:
    """What `who` answers to the official SDK's client after a login."""
    login = SdkLogin(kind)
    metadata = OAuthClientMetadata(
        client_name="test",
        redirect_uris=[AnyUrl(login.redirect)],
        grant_types=["authorization_code"],
        token_endpoint_auth_method="none",
    )
    provider = OAuthClientProvider(site.url, metadata, login, login.visit, login.callback)

    async def who() -> Any:
        async with (
            asyncio.timeout(BOUND),
            create_mcp_http_client(auth=provider) as http,
            Client(streamable_http_client(site.url, http_client=http)) as client,
        ):
            return (await client.call_tool("who", {})).structured_content

    return asyncio.run(who())


@pytest.mark.parametrize("kind", [Auth0, Keycloak, Entra, Google])
def test_the_official_client_logs_in(sites: Sites, kind: Provider) -> None:
    shown = json.loads(block(section(kind.name), "json", 1))

    assert who_by_the_sdk(sites(kind), kind)["subject"] == shown["subject"]


def test_the_official_client_cannot_read_githubs_answer(sites: Sites) -> None:
    """If this fails, the SDK has learnt it: the page says that it has not."""
    with pytest.raises(BaseExceptionGroup) as caught:
        who_by_the_sdk(sites(GitHub), GitHub)

    assert caught.group_contains(OAuthTokenError, match="Invalid JSON")
