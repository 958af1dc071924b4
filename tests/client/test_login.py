"""The OAuth login of the client: its order, its checks, and what it never does."""

from __future__ import annotations

import asyncio
import os
import shlex
import subprocess
import sys
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import msgspec
import pytest
from tests.client.login_server import LoginServer, login_servers
from tests.loop_clock import advance_clock

from answerback import Reply, connect
from answerback.client import ConnectError
from answerback.client.faults import LoginError
from answerback.client.login import (
    ClientCredentials,
    Login,
    MemoryTokens,
    RegisteredClient,
)
from answerback.client.login.discovery import (
    BearerChallenge,
    IssuerMetadata,
    ResourceMetadata,
    bearer_challenge,
    send,
)
from answerback.client.login.server_login import ChosenIssuer, log_in
from answerback.core.clocks import WaitingClocks

PAGES = ("/register", "/authorize", "/token")


@pytest.fixture(scope="module")
def new_server() -> Iterator[Callable[[], LoginServer]]:
    with login_servers() as make:
        yield make


@pytest.fixture
def server(new_server: Callable[[], LoginServer]) -> LoginServer:
    return new_server()


def greet(server: LoginServer, login: Any = None, times: int = 1) -> Reply[Any]:
    with connect(server.url, auth=login or Login(open_url=server.visit)) as remote:
        for _ in range(times):
            reply = remote.call("greet")
    return reply


def refused(server: LoginServer, login: Any = None) -> str:
    """The message of a connection that cannot be opened."""
    with (
        pytest.raises(ConnectError) as caught,
        connect(server.url, auth=login or Login(open_url=server.visit, timeout=60)),
    ):
        pass
    return str(caught.value)


def test_the_user_logs_in_once_and_both_requests_name_the_server_and_use_s256(
    server: LoginServer,
) -> None:
    reply = greet(server, times=3)

    assert reply.ok
    assert server.paths(*PAGES) == ["/register", "/authorize", "/token"]
    asked, exchanged = server.sent("/authorize"), server.sent("/token")
    assert asked["code_challenge_method"] == "S256"
    assert asked["scope"] == "read"
    assert asked["resource"] == exchanged["resource"] == server.url
    assert asked["redirect_uri"] == exchanged["redirect_uri"]
    assert asked["redirect_uri"].startswith("http://127.0.0.1:")
    assert server.sent("/register")["application_type"] == "native"


def test_calls_that_are_refused_at_once_log_in_once(server: LoginServer) -> None:
    async def run() -> list[Reply[Any]]:
        async with connect(server.url, auth=Login(open_url=server.visit)) as remote:
            server.revoked |= set(server.tokens)
            server.refused_refresh = True
            return await asyncio.gather(*(remote.call("greet") for _ in range(8)))

    replies = asyncio.run(run())

    assert [reply.ok for reply in replies] == [True] * 8
    assert server.paths("/authorize") == ["/authorize"] * 2


@pytest.mark.parametrize(
    ("change", "login", "expected"),
    [
        ({}, {"client": "known"}, ("known", [])),
        (
            {"client_id_metadata_document_supported": True},
            {"document": "https://app.example.com/client.json"},
            ("https://app.example.com/client.json", []),
        ),
        (
            {"client_id_metadata_document_supported": True},
            {"client": "known", "document": "https://app.example.com/client.json"},
            ("known", []),
        ),
        (
            {},
            {"document": "https://app.example.com/client.json"},
            ("registered", ["/register"]),
        ),
        ({"registration_endpoint": None}, {"ask_client": lambda _: "asked"}, ("asked", [])),
    ],
    ids=["registered before", "document", "registered and document", "registered now", "asked"],
)
def test_the_client_is_chosen_in_the_order_of_the_specification(
    server: LoginServer, change: Any, login: Any, expected: tuple[str, list[str]]
) -> None:
    server.metadata |= change

    reply = greet(server, Login(open_url=server.visit, **login))

    assert reply.ok
    assert (server.sent("/authorize")["client_id"], server.paths("/register")) == expected


def test_without_a_way_to_get_a_client_the_error_says_what_to_do(server: LoginServer) -> None:
    server.metadata["registration_endpoint"] = None

    message = refused(server)

    assert "register a client there with the redirect address http://127.0.0.1:" in message
    assert "Login(client=RegisteredClient(id, secret, issuer))" in message


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("client_secret_basic", {"basic": "id%2F1:a%20b", "client_id": "id/1"}),
        ("client_secret_post", {"client_id": "id/1", "client_secret": "a b"}),
    ],
)
def test_a_secret_is_sent_as_the_issuer_wants_it(
    server: LoginServer, method: str, expected: dict[str, str]
) -> None:
    server.metadata["token_endpoint_auth_methods_supported"] = [method]
    client = RegisteredClient("id/1", "a b", server.issuer)

    greet(server, Login(client, open_url=server.visit))

    sent = server.sent("/token")
    if "basic" in sent:
        sent["basic"] = b64decode(sent["basic"].removeprefix("Basic ")).decode()
    names = ("basic", "client_id", "client_secret")
    assert {name: sent[name] for name in names if name in sent} == expected


@pytest.mark.parametrize("named", ["https://other.example.com", None], ids=["named", "bound"])
def test_a_secret_is_not_sent_to_another_issuer_than_its_own(
    server: LoginServer, named: str | None
) -> None:
    store = MemoryTokens()
    client = RegisteredClient("known", "secret", named)
    if named is None:
        greet(server, Login(client, open_url=server.visit, store=store))
        server.tokens.clear()
        server.requests.clear()
        server.resource = {
            "resource": server.url,
            "authorization_servers": ["https://other.example.com"],
        }

    message = refused(server, Login(client, open_url=server.visit, store=store))

    assert "is registered with" in message
    assert server.paths("/authorize", "/token") == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"iss": "https://evil.example.com"}, "is from the issuer 'https://evil.example.com'"),
        ({"iss": None}, "does not name its issuer"),
        ({"state": "wrong"}, "1 answers had the state of another login"),
        ({"state": None}, "1 answers had the state of another login"),
        ({"code": None, "error": "access_denied"}, "the user did not agree"),
        ({"code": None, "error": "server_error"}, "refuses the login: server_error"),
        (
            {"code": None, "error": "access_denied", "iss": "https://evil.example.com"},
            "is from the issuer",
        ),
        ({"code": "stolen"}, "issued no token: invalid_grant"),
    ],
)
def test_an_answer_that_is_not_right_ends_the_login(
    server: LoginServer, change: dict[str, str | None], said: str
) -> None:
    server.answer |= change

    async def visit(page: str) -> None:
        # An answer that is refused gets an error page, which a browser would show.
        with suppress(OSError):
            (await asyncio.to_thread(urlopen, page, timeout=60)).close()
        # The wait for the right answer goes on after one with a wrong state.
        if "state" in change:
            advance_clock(120)

    message = refused(server, Login(open_url=visit, timeout=60))

    assert said in message
    assert server.paths("/token") == (["/token"] if change == {"code": "stolen"} else [])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"issuer": "https://attacker.example.com"}, "is the metadata of 'https://attacker"),
        ({"code_challenge_methods_supported": None}, "PKCE with S256"),
        ({"code_challenge_methods_supported": ["plain"]}, "PKCE with S256"),
        ({"authorization_endpoint": "http://example.com/a"}, "should be an https URL"),
        ({"authorization_endpoint": "javascript:alert(1)"}, "should be an https URL"),
        ({"token_endpoint": "ftp://127.0.0.1/token"}, "should be an https URL"),
        ({"token_endpoint": None}, "token_endpoint"),
    ],
)
def test_metadata_of_an_issuer_that_cannot_be_trusted_end_the_login(
    server: LoginServer, change: dict[str, Any], said: str
) -> None:
    server.metadata |= change

    message = refused(server)

    assert said in message
    assert server.paths(*PAGES) in ([], ["/register"])


@pytest.mark.parametrize(
    ("methods", "expected"), [(None, "logged in"), (["plain"], "refused"), (["S256"], "logged in")]
)
def test_pkce_can_be_assumed_if_the_metadata_do_not_mention_it(
    server: LoginServer, methods: list[str] | None, expected: str
) -> None:
    server.metadata |= {"code_challenge_methods_supported": methods}
    login = Login(open_url=server.visit, timeout=60, assume_pkce=True)

    if expected == "refused":
        assert "PKCE with S256" in refused(server, login)
    else:
        assert greet(server, login).ok
        assert server.sent("/authorize")["code_challenge_method"] == "S256"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"resource": "https://evil.example.com/mcp"}, "describes 'https://evil"),
        ({"resource": None}, "describes None"),
        ({"authorization_servers": []}, "names no authorization server"),
        ({"authorization_servers": ["http://example.com"]}, "should be an https URL"),
    ],
)
def test_metadata_of_another_server_end_the_login(
    server: LoginServer, change: dict[str, Any], said: str
) -> None:
    assert server.resource is not None
    server.resource |= change

    message = refused(server)

    assert said in message
    assert server.paths(*PAGES) == []


def test_a_server_without_metadata_is_its_own_issuer(server: LoginServer) -> None:
    server.resource = None

    reply = greet(server)

    assert reply.ok
    assert server.sent("/token")["resource"] == server.url


def test_a_token_that_expired_is_refreshed_before_the_request(server: LoginServer) -> None:
    store = MemoryTokens()
    server.seconds = 1e-6
    greet(server, Login(open_url=server.visit, store=store))
    server.requests.clear()

    reply = greet(server, Login(open_url=server.visit, store=store))

    assert reply.ok
    assert server.paths("/authorize") == []
    assert server.sent("/token")["grant_type"] == "refresh_token"
    assert server.sent("/token")["resource"] == server.url


def test_a_revoked_token_is_refreshed_and_a_revoked_login_asks_the_user_again(
    server: LoginServer,
) -> None:
    with connect(server.url, auth=Login(open_url=server.visit)) as remote:
        server.revoked |= set(server.tokens)
        first = remote.call("greet")
        refreshed = server.paths("/authorize")
        server.revoked |= set(server.tokens)
        server.refused_refresh = True
        second = remote.call("greet")

    assert first.ok
    assert refreshed == ["/authorize"]
    assert second.ok
    assert server.paths("/authorize") == ["/authorize"] * 2


def test_a_call_that_is_cancelled_during_a_refresh_does_not_lose_the_login(
    server: LoginServer,
) -> None:
    async def run() -> Reply[Any]:
        async with connect(server.url, auth=Login(open_url=server.visit)) as remote:
            server.revoked |= set(server.tokens)
            server.waits.clear()
            server.goes_on.clear()
            call = asyncio.create_task(remote.call("greet"))
            await asyncio.to_thread(server.waits.wait, 60)
            call.cancel()
            server.goes_on.set()
            await asyncio.wait([call])
            server.refused_refresh = True
            return await remote.call("greet")

    reply = asyncio.run(run())

    assert reply.ok
    assert len(server.paths("/authorize")) == 1


def test_an_issuer_that_fails_does_not_open_the_browser(server: LoginServer) -> None:
    with connect(server.url, auth=Login(open_url=server.visit)) as remote:
        server.revoked |= set(server.tokens)
        server.status["/token"] = 503
        reply = remote.call("greet")

    assert reply.error is not None
    assert reply.error.code == "UNAUTHENTICATED"
    assert "/token failed" in reply.error.message
    assert server.paths("/authorize") == ["/authorize"]


def test_a_call_that_needs_more_scopes_asks_for_them_besides_the_old_ones(
    server: LoginServer,
) -> None:
    server.call_scope = "write"

    reply = greet(server, times=2)

    assert reply.ok
    assert server.paths("/authorize") == ["/authorize"] * 2
    assert server.sent("/authorize")["scope"].split() == ["read", "write"]


@pytest.mark.parametrize("registers_scopes", [True, False])
def test_scopes_are_registered_unless_the_issuer_refuses_that(
    server: LoginServer, registers_scopes: bool
) -> None:
    server.call_scope = "write"
    server.registers_scopes = registers_scopes

    reply = greet(server)

    assert reply.ok
    assert server.registered.get("scope") == ("read write" if registers_scopes else None)


def test_the_user_is_asked_once_for_a_scope_that_is_never_granted(server: LoginServer) -> None:
    server.call_scope = "never"
    authorize = server.authorize

    def without_scope(query: dict[str, str]) -> str:
        found = authorize(query)
        server._asked = "read"
        return found

    server.authorize = without_scope  # type: ignore[method-assign] # the issuer grants less

    reply = greet(server, times=3)

    assert reply.error is not None
    assert reply.error.code == "FORBIDDEN"
    assert "still asks for never" in reply.error.message
    assert len(server.paths("/authorize")) == 2


def test_a_token_does_not_follow_a_redirect_to_another_host(server: LoginServer) -> None:
    with connect(server.url, auth=Login(open_url=server.visit)) as remote:
        used = len(server.used)
        with login_servers() as make:
            other = make()
            server.moved = {"/mcp": other.url}
            reply = remote.call("greet")

    assert not reply.ok
    assert other.used == []
    assert len(server.used) == used


def test_a_token_that_the_server_never_accepts_does_not_ask_for_ever(server: LoginServer) -> None:
    server.refusal = lambda *_: (401, "Bearer")  # type: ignore[method-assign] # refuses all

    message = refused(server)

    assert "does not accept the token from the login" in message
    assert len(server.paths("/authorize")) == 1


@pytest.mark.parametrize("what", ["the address", "the code"])
def test_the_user_can_paste(server: LoginServer, what: str) -> None:
    if what == "the code":
        server.metadata["authorization_response_iss_parameter_supported"] = False
    pasted: list[str] = []

    def paste(page: str) -> str:
        query = dict(each.split("=", 1) for each in page.partition("?")[2].split("&"))
        from urllib.parse import unquote_plus

        address = server.authorize({name: unquote_plus(each) for name, each in query.items()})
        pasted.append(address)
        return f"  {address}\n" if what == "the address" else "the-code"

    reply = greet(server, Login(open_url=paste))

    assert reply.ok
    assert len(pasted) == 1


def test_a_pasted_code_alone_is_refused_if_the_issuer_always_names_itself(
    server: LoginServer,
) -> None:
    assert "paste the whole address" in refused(server, Login(open_url=lambda _: "the-code"))
    assert "nothing was pasted" in refused(server, Login(open_url=lambda _: " \n"))


def test_a_server_that_wants_a_token_names_the_way_to_log_in(server: LoginServer) -> None:
    advice = r"401: {}; connect\(…, auth=Login\(\)\) logs in"

    with pytest.raises(ConnectError, match=advice) as said:
        connect(server.url).open()

    assert f"Login is in {Login.__module__.rpartition('.')[0]})" in str(said.value)


def test_time_outs_stop_while_the_user_logs_in(server: LoginServer) -> None:
    async def run() -> Reply[Any]:
        async def visit(page: str) -> None:
            advance_clock(120)
            await asyncio.to_thread(server.visit, page)

        login = Login(open_url=visit)
        async with connect(server.url, auth=login, connect_timeout=60, timeout=60) as remote:
            return await remote.call("greet")

    reply = asyncio.run(run())

    assert reply.ok


def credentials(server: LoginServer) -> ClientCredentials:
    server._asked = "read"
    server.metadata["token_endpoint_auth_methods_supported"] = ["client_secret_post"]
    return ClientCredentials(RegisteredClient("me", "secret", server.issuer))


@contextmanager
def silent_metadata(server: LoginServer, seconds: float) -> Iterator[None]:
    """The issuer's metadata never arrive; whoever asks for them finds the clock set forward."""
    loop = asyncio.get_running_loop()
    server.asked_silent = lambda: loop.call_soon_threadsafe(advance_clock, seconds, loop)
    server.silent.add("/.well-known/oauth-authorization-server")
    try:
        yield
    finally:
        server.answers.set()


def test_the_time_out_of_a_call_bounds_a_login_that_asks_nobody(server: LoginServer) -> None:
    server.call_scope = "write"

    async def run() -> Reply[Any]:
        async with connect(server.url, auth=credentials(server), timeout=10) as remote:
            await remote.tools()
            with silent_metadata(server, 12):
                return await remote.call("greet")

    reply = asyncio.run(run())

    assert reply.error is not None
    assert reply.error.code == "TIMED_OUT"


def test_the_time_out_of_a_connection_bounds_a_login_until_the_user_is_asked(
    server: LoginServer,
) -> None:
    opened: list[str] = []
    login = Login(open_url=opened.append)

    async def run() -> None:
        with silent_metadata(server, 12):
            async with connect(server.url, auth=login, connect_timeout=10):
                pass

    with pytest.raises(ConnectError, match="10 seconds"):
        asyncio.run(run())
    assert opened == []


def test_all_metadata_of_one_login_have_30_seconds(server: LoginServer) -> None:
    async def run() -> None:
        with silent_metadata(server, 31):
            async with connect(server.url, auth=credentials(server), connect_timeout=3000):
                pass

    with pytest.raises(ConnectError, match="within 30 seconds"):
        asyncio.run(run())
    assert len(server.used) == 1


def test_a_slow_login_does_not_change_the_version(server: LoginServer) -> None:
    """The probe of the newest version has 5 seconds, for servers that never answer it."""

    async def run() -> tuple[str, list[str]]:
        with silent_metadata(server, 10):
            server.answers.set()
            async with connect(server.url, auth=credentials(server), connect_timeout=60) as remote:
                return str(remote.info.version), server.paths("/token")

    version, tokens = asyncio.run(run())

    assert "2026-07-28" in version
    assert tokens == ["/token"]


def test_a_server_names_at_most_three_issuers_that_are_asked(server: LoginServer) -> None:
    assert server.resource is not None
    server.resource["authorization_servers"] = [f"{server.issuer}/i{at}" for at in range(50)]

    refused(server)

    places = "/.well-known/oauth-authorization-server/"
    asked = {path for path, _ in server.requests if path.startswith(places)}
    assert asked == {f"{places}i{at}" for at in range(3)}


def test_a_call_that_waits_for_the_login_of_another_call_waits_for_the_user_too(
    server: LoginServer,
) -> None:
    server.call_scope = "write"
    pages: list[str] = []

    async def run() -> tuple[Reply[Any], Reply[Any]]:
        async def visit(page: str) -> None:
            pages.append(page)
            if len(pages) == 2:
                while len(server.used) < used + 2:
                    await asyncio.sleep(0)
                advance_clock(120)
            await asyncio.to_thread(server.visit, page)

        async with connect(server.url, auth=Login(open_url=visit), timeout=60) as remote:
            await remote.tools()
            used = len(server.used)
            return await asyncio.gather(remote.call("greet"), remote.call("greet"))

    replies = asyncio.run(run())

    assert [reply.ok for reply in replies] == [True, True]
    assert len(pages) == 2


def test_a_program_logs_in_as_itself(server: LoginServer) -> None:
    reply = greet(server, credentials(server))

    assert reply.ok
    assert server.paths(*PAGES) == ["/token"]
    assert server.sent("/token") == {
        "grant_type": "client_credentials",
        "scope": "read",
        "resource": server.url,
        "client_id": "me",
        "client_secret": "secret",
    }


def test_a_plain_token_is_sent_and_its_refusal_is_told(server: LoginServer) -> None:
    server.tokens["good"] = "read"

    reply = greet(server, "good")
    message = refused(server, "bad")

    assert reply.ok
    assert "does not accept the token" in message


def test_servers_together_get_their_own_tokens_and_an_entry_keeps_its_own_header(
    server: LoginServer,
) -> None:
    server.tokens["of-the-entry"] = "read"
    with login_servers() as make:
        other = make()
        entry = {"url": server.url, "headers": {"Authorization": "Bearer of-the-entry"}}
        config = {"mcpServers": {"one": entry, "two": {"url": other.url}}}
        with connect(config, auth=Login(open_url=other.visit)) as servers:
            replies = [servers.call("one_greet"), servers.call("two_greet")]

    assert [reply.ok for reply in replies] == [True, True]
    assert set(server.used) == {"Bearer of-the-entry"}
    assert set(other.used) == {"", "Bearer token-1"}
    assert other.sent("/token")["resource"] == other.url


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: connect("http://example.com/mcp", auth="t").__enter__(), "over https"),
        (lambda: connect("https://example.com/mcp", auth="a b").__enter__(), "contain spaces"),
        (lambda: connect({"mcpServers": {}}, auth="t"), "belongs to one server"),
        (lambda: Login(document="http://example.com/c"), "should be an https URL"),
        (lambda: Login(redirect_uri="https://example.com/c"), "address on this machine"),
        (lambda: ClientCredentials(RegisteredClient("me")), "a secret or a private key"),
    ],
)
def test_wrong_settings_are_refused(make: Callable[[], Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        make()


def test_a_plain_http_server_elsewhere_gets_no_token() -> None:
    from answerback.client.http_requests import AuthChallenge

    login = Login().for_server("http://mcp.example.com/mcp")
    challenge = AuthChallenge("http://mcp.example.com/mcp", 401, {}, b"")

    with pytest.raises(Exception, match="tokens are only sent over https"):
        asyncio.run(login.challenged(challenge))


def test_metadata_may_be_redirected_but_secrets_are_not(server: LoginServer) -> None:
    place = "/.well-known/oauth-protected-resource/mcp"
    server.moved = {place: "/.well-known/elsewhere", "/.well-known/elsewhere": f"{place}?again"}
    loop = refused(server)
    server.moved = {"/token": f"{server.issuer}/elsewhere"}
    moved = refused(server)

    assert "redirects too many times" in loop
    assert "issued no token: HTTP status 307" in moved
    assert server.paths("/elsewhere") == []


@pytest.mark.parametrize("place", ["http://example.com/m", "file:///etc/passwd", "//example.com"])
def test_metadata_are_not_redirected_to_plain_http(server: LoginServer, place: str) -> None:
    server.moved = {"/.well-known/oauth-protected-resource/mcp": place}

    assert "should be an https URL" in refused(server)


def test_a_document_that_is_too_large_is_not_read(server: LoginServer) -> None:
    server.metadata["padding"] = "x" * 300_000

    assert "is larger than 262144 bytes" in refused(server)


@pytest.mark.parametrize(
    ("url", "zone", "allowed"),
    [
        ("http://127.0.0.1:9/", 0, True),
        ("http://127.0.0.1:9/", 1, False),
        ("https://10.0.0.1/", 2, False),
        ("https://169.254.169.254/", 2, False),
        ("https://[::1]/", 2, False),
        ("https://[::ffff:10.0.0.1]/", 2, False),
    ],
)
def test_a_server_elsewhere_cannot_send_the_client_into_a_nearer_network(
    url: str, zone: int, allowed: bool
) -> None:
    with pytest.raises(LoginError) as caught:
        asyncio.run(send("GET", url, zone=zone))

    assert ("is on a private network" in str(caught.value)) is not allowed


@pytest.mark.parametrize("page", ["http://127.0.0.1:9/x", "https://192.168.7.7/x"])
def test_a_server_on_the_internet_cannot_open_a_page_of_a_nearer_network_in_the_browser(
    server: LoginServer, page: str
) -> None:
    opened: list[str] = []
    issuer = msgspec.convert(server.metadata | {"authorization_endpoint": page}, IssuerMetadata)
    resource = ResourceMetadata("https://mcp.example.com/mcp", (issuer.issuer,))
    chosen = ChosenIssuer(resource.resource, resource, issuer, zone=2)

    with pytest.raises(LoginError, match="is on a private network"):
        asyncio.run(
            log_in(Login("me", open_url=opened.append, timeout=20), chosen, (), WaitingClocks())
        )

    assert opened == []


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ('Bearer scope="a b", error=x', BearerChallenge(error="x", scopes=("a", "b"))),
        (
            'bearer  resource_metadata="https://a/b,c"',
            BearerChallenge(metadata_url="https://a/b,c"),
        ),
        ('Basic realm="x", Bearer scope="a"', BearerChallenge(scopes=("a",))),
        ('DPoP algs="ES256", Bearer error="e\\"x"', BearerChallenge(error='e"x')),
        ("Negotiate abc==, Bearer scope=a", BearerChallenge(scopes=("a",))),
        ('Bearer realm="Bearer scope=\\"no\\""', BearerChallenge()),
        ("Bearer", BearerChallenge()),
        ("", BearerChallenge()),
        ('Bearer scope="never ends', BearerChallenge()),
    ],
)
def test_challenges_are_read(header: str, expected: BearerChallenge) -> None:
    assert bearer_challenge(header) == expected


def run_command(
    server: LoginServer, folder: Path, *, terminal: bool
) -> subprocess.CompletedProcess[bytes]:
    """`answerback call URL greet`; with a terminal, its browser is a small program."""
    visit = "import sys, urllib.request; urllib.request.urlopen(sys.argv[1]).close()"
    browser = folder / "browser.py"
    browser.write_text(visit)
    command = [sys.executable, "-m", "answerback", "call", server.url, "greet"]
    environ = {
        **os.environ,
        "BROWSER": f"{shlex.quote(sys.executable)} {browser} %s",
        "XDG_CONFIG_HOME": str(folder),
        "HOME": str(folder),
    }
    if not terminal:
        return subprocess.run(command, env=environ, capture_output=True, stdin=-3, timeout=30)
    outer, inner = os.openpty()
    try:
        return subprocess.run(
            command, env=environ, stdin=inner, stderr=inner, stdout=-1, timeout=30
        )
    finally:
        os.close(inner)
        os.close(outer)


def test_the_command_line_logs_in_at_a_terminal_and_keeps_the_login(
    server: LoginServer, tmp_path: Path
) -> None:
    without = run_command(server, tmp_path, terminal=False)
    logged_in = run_command(server, tmp_path, terminal=True)
    again = run_command(server, tmp_path, terminal=False)

    assert without.returncode != 0
    assert b"run this once in a terminal: answerback list http://127.0.0.1" in without.stderr
    assert (logged_in.returncode, again.returncode) == (0, 0)
    assert b"hello" in again.stdout
    assert len(server.paths("/authorize")) == 1
    assert (tmp_path / "answerback" / "logins.json").stat().st_mode & 0o777 == 0o600
