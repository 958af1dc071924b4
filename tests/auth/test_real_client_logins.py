"""Real logins of our own client at a real identity provider (oidc-provider)."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from tests.auth.test_real_logins import EXPECTED, accounts_served
from tests.loop_clock import advance_clock

from answerback import connect
from answerback.client import ConnectError
from answerback.client.login import Login, MemoryTokens

BOUND = 60


@pytest.fixture(scope="module")
def accounts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of an app behind a real identity provider."""
    with accounts_served(tmp_path_factory.mktemp("home")) as url:
        yield url


class Visitor:
    """A user with a browser."""

    def __init__(
        self, change: Callable[[str], str] = str, headers: dict[str, str] | None = None
    ) -> None:
        self.asked: list[str] = []
        self._change = change
        self._headers = headers

    def __call__(self, page: str) -> None:
        redirect = parse_qs(urlsplit(page).query)["redirect_uri"][0]
        self.asked += parse_qs(urlsplit(page).query)["scope"]
        with httpx.Client(trust_env=False, timeout=BOUND, headers=self._headers) as browser:
            while not page.startswith(redirect):
                page = str(httpx.URL(page).join(browser.get(page).headers["location"]))
            browser.get(self._change(page))


class Store(MemoryTokens):
    """A store that a test looks into."""

    def grant(self) -> dict[str, Any]:
        key = next(key for key in self._texts if key.startswith("token "))
        found: dict[str, Any] = json.loads(self._texts[key])
        return found

    def spoil(self) -> None:
        """Replace the access token by one that the server refuses."""
        key = next(key for key in self._texts if key.startswith("token "))
        self.save(key, json.dumps({**self.grant(), "access_token": "spoilt"}))


@pytest.mark.parametrize(
    ("options", "era"), [({"version": "2025-11-25"}, "2025-11-25"), ({}, "2026-07-28")]
)
def test_our_client_logs_in_after_the_401_and_again_for_another_scope(
    accounts: str, options: Any, era: str
) -> None:
    visitor = Visitor()

    with connect(accounts, auth=Login(open_url=visitor), **options) as server:
        who, transfer = server.call("who"), server.call("transfer")
        version = server.info.version.name

    assert {"who": who.content[0].text, "transfer": transfer.content[0].text} == EXPECTED  # type: ignore[union-attr] # texts
    assert version == era
    assert visitor.asked == [
        "accounts:read offline_access",
        "accounts:read accounts:write offline_access",
    ]


def test_an_expired_token_is_refreshed_without_the_user(accounts: str) -> None:
    visitor, store = Visitor(), Store()

    with connect(accounts, auth=Login(open_url=visitor, store=store, name="short")) as server:
        first = store.grant()["access_token"]
        end = time.monotonic() + BOUND
        replies = []
        while store.grant()["access_token"] == first and time.monotonic() < end:
            replies.append(server.call("who"))

    assert all(reply.ok for reply in replies)
    assert store.grant()["access_token"] != first
    assert len(visitor.asked) == 1


def test_a_revoked_login_asks_the_user_again(accounts: str) -> None:
    visitor, store = Visitor(), Store()
    with connect(accounts, auth=Login(open_url=visitor, store=store)):
        grant = store.grant()
    form = {"token": grant["refresh_token"], "client_id": grant["client"]["id"]}
    done = httpx.post(f"{grant['issuer']}/token/revocation", data=form, trust_env=False)
    store.spoil()

    with connect(accounts, auth=Login(open_url=visitor, store=store)) as server:
        reply = server.call("who")

    assert done.status_code == 200
    assert reply.ok
    assert len(visitor.asked) == 2
    assert store.grant()["refresh_token"] != grant["refresh_token"]


def test_a_refused_token_is_refreshed_without_the_user(accounts: str) -> None:
    visitor, store = Visitor(), Store()
    with connect(accounts, auth=Login(open_url=visitor, store=store)):
        store.spoil()

    with connect(accounts, auth=Login(open_url=visitor, store=store)) as server:
        reply = server.call("who")

    assert reply.ok
    assert len(visitor.asked) == 1


@pytest.mark.parametrize(
    ("visitor", "said"),
    [
        (Visitor(lambda page: page.replace("iss=http", "iss=https")), "is from the issuer 'https:"),
        (Visitor(lambda page: page.split("&iss=")[0]), "does not name its issuer"),
        (Visitor(lambda page: page.replace("state=", "state=x")), "had the state of another login"),
        (Visitor(headers={"x-refuse": "1"}), "the user did not agree to the login"),
    ],
    ids=["wrong iss", "no iss", "wrong state", "user says no"],
)
def test_a_login_with_a_wrong_end_is_refused(accounts: str, visitor: Visitor, said: str) -> None:
    async def visit(page: str) -> None:
        await asyncio.to_thread(visitor, page)
        # The wait for the right answer goes on after one with a wrong state.
        if "state" in said:
            advance_clock(2 * BOUND)

    with (
        pytest.raises(ConnectError, match=said),
        connect(accounts, auth=Login(open_url=visit, timeout=BOUND)),
    ):
        pass

    assert len(visitor.asked) == 1


def test_calls_at_once_log_in_once(accounts: str) -> None:
    visitor = Visitor()

    async def run() -> list[str]:
        async with connect(accounts, auth=Login(open_url=visitor)) as server:
            replies = await asyncio.gather(*(server.call("transfer") for _ in range(5)))
            return [str(getattr(reply.content[0], "text", "")) for reply in replies]

    texts = asyncio.run(run())

    assert texts == [EXPECTED["transfer"]] * 5
    assert len(visitor.asked) == 2
