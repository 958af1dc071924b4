"""`hide=True`: what a caller cannot use is in no list, and unknown when it is called."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import pytest
from tests.gates.named_users import gated_app, post, rpc

from answerback import App, Header, Limits
from answerback.gates import login, scope

ERAS = pytest.mark.parametrize("era", ["2025-11-25", "2026-07-28"])


def shop(*, hidden: bool = True) -> App:
    """An app with entries that are hidden; without them it has public ones in their place."""
    app = gated_app("shop")

    @app.tool
    def order(x: int) -> int:
        return x

    @app.tool(requires=[login()])
    def orders_list() -> int:
        return 1

    if not hidden:

        @app.prompt
        def public_prompt(name: str) -> str:
            return name

        @app.resource("public://note")
        def public_note() -> str:
            return "n"

        return app

    @app.tool(requires=[scope("admin", hide=True)])
    def orders_delete(x: Annotated[int, Header("Region")]) -> int:
        return x

    @app.prompt(requires=[login(hide=True)])
    def secret_prompt(name: str) -> str:
        return name

    @app.resource("secret://note", requires=[login(hide=True)])
    def note() -> str:
        return "n"

    @app.resource("secret://{name}", requires=[login(hide=True)])
    def notes(name: str) -> str:
        return name

    return app


def names(response: Any, key: str, member: str = "name") -> list[str]:
    return [each[member] for each in response.json()["result"][key]]


@ERAS
def test_lists_leave_out_what_the_token_alone_does_not_allow(era: str) -> None:
    app = shop()

    assert names(rpc(app, "tools/list", era=era), "tools") == ["order", "orders_list"]
    assert names(rpc(app, "tools/list", "bob", era=era), "tools") == ["order", "orders_list"]
    assert len(names(rpc(app, "tools/list", "bob,admin", era=era), "tools")) == 3
    assert names(rpc(app, "prompts/list", era=era), "prompts") == []
    assert names(rpc(app, "prompts/list", "bob", era=era), "prompts") == ["secret_prompt"]
    assert names(rpc(app, "resources/list", era=era), "resources", "uri") == []
    templates = rpc(app, "resources/templates/list", era=era)
    assert names(templates, "resourceTemplates", "uriTemplate") == []


def test_a_list_that_depends_on_the_caller_is_private() -> None:
    result = rpc(shop(), "tools/list", era="2026-07-28").json()["result"]

    assert (result["cacheScope"], result["ttlMs"]) == ("private", 0)


@ERAS
@pytest.mark.parametrize(
    ("method", "asked"),
    [
        ("tools/call", {"name": "orders_delete", "arguments": {"x": 1}}),
        ("prompts/get", {"name": "secret_prompt", "arguments": {}}),
        ("resources/read", {"uri": "secret://note"}),
        ("resources/read", {"uri": "secret://other"}),
    ],
)
def test_the_answer_is_the_same_as_if_the_hidden_one_did_not_exist(
    era: str, method: str, asked: dict[str, Any]
) -> None:
    with_it = rpc(shop(), method, era=era, **asked)
    without = rpc(shop(hidden=False), method, era=era, **asked)

    assert with_it.content == without.content
    assert with_it.status_code == without.status_code
    assert with_it.headers == without.headers


@ERAS
def test_the_arguments_of_a_hidden_tool_do_not_matter(era: str) -> None:
    app = shop()

    first = rpc(app, "tools/call", era=era, name="orders_delete", arguments={"x": 1})
    second = rpc(app, "tools/call", era=era, name="orders_delete", arguments={"y": "z"})

    assert first.text == second.text
    assert "Unknown tool: orders_delete" in first.text


@ERAS
def test_no_suggestion_names_a_hidden_tool(era: str) -> None:
    app = shop()
    asked: dict[str, Any] = {"name": "orders_delet", "arguments": {}, "era": era}

    assert "orders_delete" not in rpc(app, "tools/call", **asked).text
    assert "orders_delete" in rpc(app, "tools/call", "bob,admin", **asked).text


def test_rest_neither_suggests_nor_lists_nor_documents_a_hidden_tool() -> None:
    app = shop()
    called = post(app, "/functions/orders_delete", {"x": 1})
    unknown = post(app, "/functions/zzzzzz_zzzzzz", {"x": 1})
    near = post(app, "/functions/orders_delet", {"x": 1})

    assert called.status_code == unknown.status_code == 404
    assert called.json()["error"] == "Function not found: orders_delete"
    assert called.headers["x-error-code"] == unknown.headers["x-error-code"]
    assert "orders_delete'" not in str(near.headers) + near.text
    assert "/functions/orders_delete" not in app.openapi()["paths"]
    assert "/functions/orders_list" in app.openapi()["paths"]


def test_a_hidden_tool_is_unknown_also_when_too_many_calls_run() -> None:
    app = App("shop", limits=Limits(calls=1))
    running, release = asyncio.Event(), asyncio.Event()

    @app.tool
    async def wait() -> None:
        running.set()
        await release.wait()

    @app.tool(requires=[login(hide=True)])
    def hidden() -> None: ...

    async def both() -> list[str]:
        waiting = asyncio.ensure_future(app.call("wait"))
        await asyncio.wait_for(running.wait(), 60)
        found = await app.call("hidden"), await app.call("nothing")
        release.set()
        await waiting
        return [each.error.code for each in found if each.error]

    assert asyncio.run(both()) == ["TOOL_NOT_FOUND", "TOOL_NOT_FOUND"]


def test_a_hidden_resource_does_not_stand_before_a_template_that_matches_its_uri() -> None:
    app = gated_app()

    @app.resource("note://a", requires=[login(hide=True)])
    def hidden() -> str:
        return "hidden"

    @app.resource("note://{name}")
    def notes(name: str) -> str:
        return f"note {name}"

    contents = rpc(app, "resources/read", uri="note://a").json()["result"]["contents"]
    subscribed = rpc(app, "resources/subscribe", uri="note://a").json()

    assert contents[0]["text"] == "note a"
    assert "error" not in subscribed


def test_a_completion_of_a_hidden_prompt_is_unknown() -> None:
    asked: dict[str, Any] = {
        "ref": {"type": "ref/prompt", "name": "secret_prompt"},
        "argument": {"name": "name", "value": ""},
    }

    response = rpc(shop(), "completion/complete", **asked)

    assert "Unknown reference: secret_prompt" in response.text


def test_a_user_who_may_calls_a_hidden_tool() -> None:
    response = rpc(shop(), "tools/call", "bob,admin", name="orders_delete", arguments={"x": 3})

    assert response.json()["result"]["structuredContent"] == {"result": 3}
