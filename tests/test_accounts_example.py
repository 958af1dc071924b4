"""The example of three tiers: log in, subscribe, link a bank, over REST, MCP and in a browser."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import httpx2
import mcp_types as types
import pytest
from mcp import Client, MCPError
from mcp.client.context import ClientRequestContext
from mcp.client.streamable_http import streamable_http_client
from tests.conftest import ROOT, serving
from tests.protocol.official_tools import node_command, node_environment

ERAS = pytest.mark.parametrize("mode", ["auto", "legacy"])
LOGIN = "You are not logged in. Log in to use this"
SCOPE = "This needs more than you have allowed: accounts:read"
SUBSCRIPTION = "You have no active 'pro' subscription. Subscribe to use your accounts"
LINK = "You have not linked an account at 'plaid'. Link one to use your accounts"
FOUND = "Found 5 accounts with total balance of $12,345.67"
REFUSAL = "answerback/refusal"


class Bank:
    """The served example, and a browser without cookies."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.http = httpx.Client(base_url=url)

    def token(self, user: str, *scopes: str) -> str:
        asked = {"user": user, "scopes": scopes or ["accounts:read"]}
        return str(self.http.post("/dev/token", json=asked).json()["access_token"])

    def call(self, tool: str, token: str = "", **arguments: Any) -> httpx.Response:
        headers = {"authorization": f"Bearer {token}"} if token else {}
        return self.http.post(f"/functions/{tool}", json=arguments, headers=headers)

    def open(self, link: str, token: str) -> httpx.Response:
        """Follow a link as a logged-in user, and confirm."""
        return self.http.post(link, headers={"authorization": f"Bearer {token}"})

    @asynccontextmanager
    async def mcp(self, mode: str, token: str = "", **options: Any) -> AsyncIterator[Client]:
        headers = {"authorization": f"Bearer {token}"} if token else {}
        async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
            transport = streamable_http_client(f"{self.url}/mcp", http_client=http)
            async with Client(transport, mode=mode, read_timeout_seconds=20, **options) as client:
                yield client


@pytest.fixture(scope="module")
def bank() -> Iterator[Bank]:
    with serving(ROOT / "examples" / "accounts.py") as server:
        bank = Bank(server.url)
        yield bank
        bank.http.close()


def refusal(response: httpx.Response) -> tuple[int, str, str]:
    """The status, the code and the text of a refusal, without its link."""
    return response.status_code, response.headers["x-error-code"], text_of(response).split(": h")[0]


def text_of(response: httpx.Response) -> str:
    return str(response.json()["content"][0]["text"])


def link_in(text: str) -> str:
    found = re.search(r"http://\S+", text)
    assert found is not None, text
    return found.group()


def texts(result: types.CallToolResult) -> list[str]:
    return [block.text for block in result.content if isinstance(block, types.TextContent)]


def test_each_tier_of_a_user_is_refused_until_the_link_is_followed_over_rest(bank: Bank) -> None:
    token = bank.token("ada")

    anonymous = bank.call("balances")
    without_scope = bank.call("balances", bank.token("ada", "profile"))
    without_plan = bank.call("balances", token)
    subscribed = bank.open(link_in(text_of(without_plan)), token)
    without_link = bank.call("balances", token)
    linked = bank.open(link_in(text_of(without_link)), token)
    found = bank.call("balances", token)

    assert refusal(anonymous) == (401, "LOGIN_REQUIRED", LOGIN)
    assert refusal(without_scope) == (403, "SCOPE_REQUIRED", SCOPE)
    assert refusal(without_plan) == (402, "SUBSCRIPTION_REQUIRED", SUBSCRIPTION)
    assert subscribed.text == "Done: ada has 'pro' now. Ask again.\n"
    assert refusal(without_link) == (403, "LINK_REQUIRED", LINK)
    assert linked.text == "Done: ada has 'plaid' now. Ask again.\n"
    assert found.status_code == 200
    assert text_of(found) == FOUND
    assert found.json()["structuredContent"]["totalBalance"] == 12345.67
    assert len(found.json()["structuredContent"]["accounts"]) == 5


def test_a_link_is_redeemed_once_by_its_own_user_and_not_by_a_preview(bank: Bank) -> None:
    token = bank.token("bela")
    link = link_in(text_of(bank.call("balances", token)))

    preview = bank.http.get(link)
    strange = bank.open(link, bank.token("mallory"))
    anonymous = bank.http.post(link)
    first = bank.open(link, token)
    second = bank.open(link, token)

    assert (preview.status_code, strange.status_code) == (200, 403)
    assert (anonymous.status_code, anonymous.text) == (401, "Log in first\n")
    assert (first.status_code, second.status_code) == (200, 403)
    assert second.text == "This link cannot be used; go back and ask for a new one\n"


def test_a_browser_logs_in_at_the_page_and_confirms(bank: Bank) -> None:
    link = link_in(text_of(bank.call("balances", bank.token("bob"))))
    with httpx.Client(base_url=bank.url, follow_redirects=True) as browser:
        before = browser.get(link)
        after = browser.get(f"{link}&user=bob")
        done = browser.post(link)

    assert "Log in" in before.text
    assert "You are logged in as bob." in after.text
    assert done.text == "Done: bob has 'plaid' now. Ask again.\n"
    assert bank.call("balances", bank.token("bob")).status_code == 200


def test_transactions_are_limited_by_number_and_by_day(bank: Bank) -> None:
    token = bank.token("cy")

    newest = bank.call("transactions", token, account="Checking", limit=1)
    since = bank.call("transactions", token, account="Checking", since="2026-11-05")
    unknown = bank.call("transactions", token, account="Chequing")

    salary = {"day": "2026-11-13", "text": "Salary", "amount": 3100.0}
    assert newest.json()["structuredContent"]["transactions"] == [salary]
    shown = since.json()["structuredContent"]["transactions"]
    assert [each["text"] for each in shown] == ["Salary", "Groceries"]
    assert (unknown.status_code, text_of(unknown)) == (404, "There is no account 'Chequing'")
    hint = unknown.json()["_meta"]["answerback/error"]["hint"]
    assert hint == "there are Checking, Savings, Credit card, Brokerage, Travel fund"


@ERAS
def test_the_python_client_reads_each_refusal_and_then_the_data(bank: Bank, mode: str) -> None:
    user = f"carl-{mode}"
    token = bank.token(user)

    async def call() -> types.CallToolResult:
        async with bank.mcp(mode, token) as client:
            return await client.call_tool("balances")

    without_plan = asyncio.run(call())
    [text] = texts(without_plan)
    bank.open(link_in(text), token)
    without_link = asyncio.run(call())
    [other] = texts(without_link)
    bank.open(link_in(other), token)
    found = asyncio.run(call())

    assert (without_plan.is_error, without_link.is_error) == (True, True)
    assert text.startswith(f"{SUBSCRIPTION}: {bank.url}/subscribe?token=")
    assert other.startswith(f"{LINK}: {bank.url}/link?token=")
    assert (without_plan.meta or {})[REFUSAL]["code"] == "SUBSCRIPTION_REQUIRED"
    assert (without_plan.meta or {})["openai/outputTemplate"] == "ui://widget/accounts.html"
    assert (found.is_error, texts(found)) == (False, [FOUND])
    assert found.structured_content is not None
    assert found.structured_content["totalBalance"] == 12345.67


@ERAS
def test_a_client_without_a_token_is_refused_by_status(bank: Bank, mode: str) -> None:
    async def call() -> MCPError:
        async with bank.mcp(mode) as client:
            with pytest.raises(MCPError) as refused:
                await client.call_tool("balances")
            return refused.value

    refused = asyncio.run(call())

    assert (refused.error.message, refused.error.data) == (LOGIN, {"code": "LOGIN_REQUIRED"})


def test_a_client_that_opens_pages_goes_through_both_tiers_in_one_call(bank: Bank) -> None:
    token = bank.token("dora")
    opened: list[str] = []

    async def follow(
        context: ClientRequestContext, params: types.ElicitRequestParams
    ) -> types.ElicitResult:
        assert isinstance(params, types.ElicitRequestURLParams)
        opened.append(params.message)
        bank.open(params.url, token)
        return types.ElicitResult(action="accept")

    async def call() -> types.CallToolResult:
        async with bank.mcp("auto", token, elicitation_callback=follow) as client:
            return await client.call_tool("balances")

    found = asyncio.run(call())

    assert opened == [SUBSCRIPTION, LINK]
    assert texts(found) == [FOUND]


def test_a_client_of_2025_that_opens_pages_gets_the_link_as_an_error(bank: Bank) -> None:
    token = bank.token("emil")

    async def never(context: Any, params: Any) -> types.ElicitResult:
        return types.ElicitResult(action="decline")

    async def call() -> int:
        async with bank.mcp("legacy", token, elicitation_callback=never) as client:
            with pytest.raises(MCPError) as refused:
                await client.call_tool("balances")
            [asked] = refused.value.error.data["elicitations"]
            bank.open(asked["url"], token)
            with pytest.raises(MCPError) as then:
                await client.call_tool("balances")
            [asked] = then.value.error.data["elicitations"]
            bank.open(asked["url"], token)
            assert texts(await client.call_tool("balances")) == [FOUND]
            return refused.value.error.code

    assert asyncio.run(call()) == -32042


@pytest.mark.parametrize(("mode", "era"), [("auto", "modern"), ("legacy", "legacy")])
def test_the_typescript_client_is_led_from_tier_to_tier(
    bank: Bank, mode: str, era: str, tmp_path: Path
) -> None:
    script = ROOT / "tests" / "protocol" / "accounts_client.mjs"
    token = bank.token(f"fay-{mode}")

    done = subprocess.run(
        node_command(script, mode, f"{bank.url}/mcp", token),
        env=node_environment(tmp_path),
        capture_output=True,
        timeout=60,
    )

    assert done.stderr.decode() == ""
    assert json.loads(done.stdout) == {"era": era, "texts": [SUBSCRIPTION, LINK, FOUND]}


@ERAS
def test_everyone_may_read_the_widget_which_both_tools_name(bank: Bank, mode: str) -> None:
    async def read() -> tuple[list[types.Tool], Any]:
        async with bank.mcp(mode) as client:
            listed = await client.list_tools()
            read = await client.read_resource("ui://widget/accounts.html")
            return listed.tools, read.contents[0]

    tools, page = asyncio.run(read())

    assert [tool.name for tool in tools] == ["balances", "transactions"]
    for tool in tools:
        meta = tool.meta or {}
        assert meta["ui"]["resourceUri"] == "ui://widget/accounts.html"
        assert meta["openai/outputTemplate"] == "ui://widget/accounts.html"
    assert page.mime_type == "text/html;profile=mcp-app"
    assert 'app.call("transactions"' in page.text
    assert page.meta["openai/widgetDescription"] == "Balances, and payments of an account"


def test_the_server_prints_how_to_get_a_token_and_its_pages() -> None:
    with serving(ROOT / "examples" / "accounts.py") as server:
        printed = server.announced

    assert f"answerback token {server.url} --user NAME" in printed
    assert f"page       GET  {server.url}/subscribe" in printed
