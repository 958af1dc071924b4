"""The page of a gate may be a path, which begins at the origin of the app's URL."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from answerback import App
from answerback.auth import OAuth
from answerback.core.authentication import User
from answerback.gates import subscription
from answerback.options import Access
from answerback.testing import TestContext


def link_of(app: App) -> Any:
    """The link that a refused call of a user names."""

    @app.tool(requires=[subscription("pro", check=lambda ctx: False, url="/plans?from=tool")])
    def report() -> int:
        return 1

    user = TestContext(user=User(subject="anna"))
    reply = asyncio.run(app.call("report", ctx=user))
    return reply.meta["answerback/refusal"].get("url")


@pytest.mark.parametrize(
    ("app", "origin"),
    [
        (
            App("shop", access=Access(url="https://shop.example.com/tools/mcp")),
            "https://shop.example.com",
        ),
        (
            App("shop", auth=OAuth.development("http://127.0.0.1:9000/mcp")),
            "http://127.0.0.1:9000",
        ),
    ],
)
def test_a_path_begins_at_the_origin_of_the_app(app: App, origin: str) -> None:
    assert link_of(app).startswith(f"{origin}/plans?from=tool&token=")


def test_a_refusal_has_no_link_if_the_url_of_the_app_is_not_known() -> None:
    assert link_of(App("shop")) is None


@pytest.mark.parametrize("url", ["plans", "//evil.example/plans", "http://shop.example.com/plans"])
def test_what_is_neither_a_path_nor_a_whole_https_url_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="should b"):
        subscription("pro", check=lambda ctx: False, url=url)
