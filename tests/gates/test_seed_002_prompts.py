"""Seed 002: its three prompts, and its usage pattern with three tiers, written both ways.

The numbers in the names are rows of the seed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, TypedDict

import pytest
from tests.gates.named_users import NamedUsers, gated_app, rpc

from answerback import App, Context, Reply, success
from answerback.core.authentication import User
from answerback.gates import (
    link_prompt,
    linked,
    login,
    login_prompt,
    scope,
    subscription,
    subscription_prompt,
)
from answerback.options import Access
from answerback.registry.declarations import registry_of

ANNA = User(subject="anna", issuer="https://id.example.com")
PLANS = "https://app.example.com/plans"
CONNECT = "https://app.example.com/connect"
WIDGET = "ui://widget/your-widget.html"


def without_token(reply: Reply[Any]) -> dict[str, Any]:
    """The MCP result, with the token of its link replaced."""
    import json
    import re

    text = json.dumps(reply.to("mcp"))
    found: dict[str, Any] = json.loads(re.sub(r"token=[\w-]+", "token=T", text))
    return found


def test_seed_002_30_the_login_prompt() -> None:
    assert without_token(login_prompt("your feature")) == {
        "content": [{"type": "text", "text": "You are not logged in. Log in to use your feature"}],
        "isError": True,
        "_meta": {
            "answerback/error": {"code": "LOGIN_REQUIRED", "retryable": False},
            "answerback/refusal": {
                "code": "LOGIN_REQUIRED",
                "message": "You are not logged in. Log in to use your feature",
                "feature": "your feature",
            },
        },
    }
    assert login_prompt().error.message == "You are not logged in. Log in to use this"  # type: ignore[union-attr]  # it is an error


def test_seed_002_31_the_subscription_prompt() -> None:
    text = "You have no active subscription. Subscribe to use your feature"
    link = f"{PLANS}?token=T"

    assert without_token(subscription_prompt("your feature", ANNA, url=PLANS)) == {
        "content": [
            {"type": "text", "text": f"{text}: {link}\nHint: open the link, then try again"}
        ],
        "isError": True,
        "_meta": {
            "answerback/error": {
                "code": "SUBSCRIPTION_REQUIRED",
                "retryable": False,
                "message": f"{text}: {link}",
                "hint": "open the link, then try again",
            },
            "answerback/refusal": {
                "code": "SUBSCRIPTION_REQUIRED",
                "message": f"{text}: {link}",
                "hint": "open the link, then try again",
                "url": link,
                "feature": "your feature",
            },
        },
    }
    assert subscription_prompt("your feature").meta["answerback/refusal"]["message"] == text


def test_seed_002_32_the_prompt_to_link_an_account_is_async_and_gets_headers() -> None:
    async def make_link(user: User, headers: Mapping[str, str]) -> str:
        await asyncio.sleep(0)
        return f"https://link.example.com/{user.subject}?agent={headers['user-agent']}"

    headers = {"user-agent": "ChatGPT"}
    made = asyncio.run(link_prompt(ANNA, headers, service="plaid", url=make_link))
    plain = asyncio.run(
        link_prompt(ANNA, headers, service="plaid", feature="your feature", url=CONNECT)
    )

    assert made.meta["answerback/refusal"]["url"] == ("https://link.example.com/anna?agent=ChatGPT")
    assert without_token(plain)["_meta"]["answerback/refusal"] == {
        "code": "LINK_REQUIRED",
        "message": "You have not linked an account at 'plaid'. Link one to use your feature: "
        f"{CONNECT}?token=T",
        "hint": "open the link, then try again",
        "url": f"{CONNECT}?token=T",
        "feature": "your feature",
    }


def test_seed_002_32_the_prompt_to_link_an_account_needs_no_name_of_the_service() -> None:
    """createPlaidRequiredResponse(userId, headers)"""
    prompt = asyncio.run(link_prompt(ANNA, {"user-agent": "ChatGPT"}))

    assert prompt.error is not None
    assert prompt.error.code == "LINK_REQUIRED"
    assert prompt.error.message == "You have not linked an account. Link one to use this"


def test_a_link_of_a_service_that_is_no_url_is_refused() -> None:
    with pytest.raises(ValueError, match="should be an absolute URL"):
        asyncio.run(link_prompt(ANNA, {}, service="plaid", url=lambda *_: "/connect"))


class YourFeatureContent(TypedDict):
    data: list[str]
    count: int
    timestamp: str


SUBSCRIBERS = {"bob", "carla"}
ACCESS_TOKENS = {"carla": ["access-1"]}


async def has_active_subscription(user: str) -> bool:
    return user in SUBSCRIBERS


async def get_access_tokens(user: str) -> list[str]:
    return ACCESS_TOKENS.get(user, [])


def by_hand() -> App:
    """The usage pattern as the seed writes it: the tool checks the three tiers itself."""
    app = gated_app("seed 002", contract="apps")
    app.resource(WIDGET, name="page")(lambda: "<p>")

    @app.tool(
        name="your_tool_name",
        title="Your Tool Title",
        description="What this tool does",
        meta={
            "openai/outputTemplate": WIDGET,
            "openai/toolInvocation/invoking": "Loading...",
            "openai/toolInvocation/invoked": "Complete!",
            "securitySchemes": [{"type": "oauth2", "scopes": ["feature:read"]}],
        },
    )
    async def your_tool(
        param1: Annotated[str, "Parameter description"], ctx: Context
    ) -> Reply[YourFeatureContent]:
        user = ctx.user
        if user is None:
            return login_prompt("your feature")
        if not await has_active_subscription(user.subject):
            return subscription_prompt("your feature", user, url=PLANS)
        tokens = await get_access_tokens(user.subject)
        if not tokens:
            return await link_prompt(user, ctx.request.headers, service="plaid", url=CONNECT)
        data = [f"{param1} {token}" for token in tokens]
        return success(
            f"Processed {len(data)} items successfully",
            YourFeatureContent(data=data, count=len(data), timestamp=datetime.now(UTC).isoformat()),
        )

    return app


def by_gates() -> App:
    """The same with gates: the tool has its business logic alone."""
    app = gated_app("seed 002", contract="apps", access=Access(challenge="result"))
    app.resource(WIDGET, name="page")(lambda: "<p>")

    async def subscribed(ctx: Context) -> bool:
        return await has_active_subscription(ctx.user.subject)

    async def has_linked(ctx: Context) -> bool:
        return bool(await get_access_tokens(ctx.user.subject))

    @app.tool(
        name="your_tool_name",
        title="Your Tool Title",
        description="What this tool does",
        meta={"openai/outputTemplate": WIDGET},
        requires=[
            login(),
            subscription("pro", check=subscribed, url=PLANS, feature="your feature"),
            linked("plaid", check=has_linked, url=CONNECT, feature="your feature"),
        ],
    )
    async def your_tool(
        param1: Annotated[str, "Parameter description"], ctx: Context
    ) -> Reply[YourFeatureContent]:
        data = [f"{param1} {token}" for token in await get_access_tokens(ctx.user.subject)]
        return success(
            f"Processed {len(data)} items successfully",
            YourFeatureContent(data=data, count=len(data), timestamp=datetime.now(UTC).isoformat()),
        )

    return app


TIERS = [
    ("", "LOGIN_REQUIRED"),
    ("anna", "SUBSCRIPTION_REQUIRED"),
    ("bob", "LINK_REQUIRED"),
    ("carla", None),
]


@pytest.mark.parametrize("make", [by_hand, by_gates])
@pytest.mark.parametrize("era", ["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize(("user", "code"), TIERS)
def test_seed_002_39_40_41_52_the_three_tiers_one_after_the_other(
    make: Any, era: str, user: str, code: str | None
) -> None:
    response = rpc(
        make(), "tools/call", user, era=era, name="your_tool_name", arguments={"param1": "x"}
    )

    result = response.json()["result"]
    assert response.status_code == 200
    assert result["isError"] is (code is not None)
    if code is None:
        assert result["content"][0]["text"] == "Processed 1 items successfully"
        assert result["structuredContent"]["data"] == ["x access-1"]
    else:
        assert "structuredContent" not in result
        assert result["_meta"]["answerback/refusal"]["code"] == code
        assert result["_meta"]["openai/outputTemplate"] == WIDGET
        assert ("mcp/www_authenticate" in result["_meta"]) is (code == "LOGIN_REQUIRED")


def test_seed_002_38_the_security_schemes_come_from_the_gates() -> None:
    app = gated_app()
    users = NamedUsers()
    users.pages = {}  # As OAuth has it.
    registry_of(app).auth = users

    @app.tool(requires=[login(), scope("a:read"), scope("b:read", "a:read")])
    def gated() -> int:
        return 1

    @app.tool
    def open_to_all() -> int:
        return 1

    @app.tool(requires=[login()], meta={"securitySchemes": [{"type": "noauth"}]})
    def own() -> int:
        return 1

    listed = rpc(app, "tools/list").json()["result"]["tools"]
    schemes = {each["name"]: each["securitySchemes"] for each in listed}

    assert schemes == {
        "gated": [{"type": "oauth2", "scopes": ["a:read", "b:read"]}],
        "open_to_all": [{"type": "noauth"}],
        "own": [{"type": "noauth"}],
    }


def test_the_openapi_document_says_which_tools_need_a_login_and_how_they_refuse() -> None:
    app = gated_app()

    async def check(ctx: Context) -> bool:
        return True

    @app.tool(requires=[scope("a:read"), subscription("pro", check=check)])
    def gated() -> int:
        return 1

    @app.tool
    def open_to_all() -> int:
        return 1

    document = app.openapi()
    paths = {name.rpartition("/")[2]: path.get("post") for name, path in document["paths"].items()}

    assert paths["gated"]["security"] == [{"bearer": ["a:read"]}]
    assert {"401", "402", "403"} <= paths["gated"]["responses"].keys()
    assert "security" not in paths["open_to_all"]
    assert not {"401", "402", "403"} & paths["open_to_all"]["responses"].keys()
    assert document["components"]["securitySchemes"] == {
        "bearer": {"type": "http", "scheme": "bearer"}
    }
