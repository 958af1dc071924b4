"""`_meta` of tools, resources, contents and embedded resources, as clients receive it."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from answerback import App, Context, Embedded, Image, success
from answerback.testing import TestContext

BORDER = {"openai/widgetPrefersBorder": True, "ui": {"prefersBorder": True}}
SCHEMES: list[Any] = [{"type": "noauth"}, {"type": "oauth2", "scopes": ["accounts:read"]}]


def ask(app: App, method: str, version: str = "2025-11-25", **params: Any) -> Any:
    """The result of one request over HTTP."""

    async def post() -> Any:
        transport = httpx.ASGITransport(app.asgi())
        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        headers = {"MCP-Protocol-Version": version, "Accept": "application/json"}
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            response = await client.post("/mcp", json=request, headers=headers)
        return response.json()["result"]

    return asyncio.run(asyncio.wait_for(post(), 60))


def app_with_widget(returned: Any, **options: Any) -> App:
    app = App("widgets")
    app.resource("ui://widget/a.html", mime="text/html;profile=mcp-app", **options)(page(returned))
    return app


def page(returned: Any) -> Any:
    def a_page() -> Any:
        return returned

    return a_page


@pytest.mark.parametrize("returned", ["<p>", b"<p>", {"a": 1}, Embedded("ui://b", text="<p>")])
def test_the_content_of_a_resource_has_its_own_meta(returned: Any) -> None:
    app = app_with_widget(returned, meta={"listed": 1}, content_meta=BORDER)

    (entry,) = ask(app, "resources/list")["resources"]
    (content,) = ask(app, "resources/read", uri="ui://widget/a.html")["contents"]

    assert entry["_meta"] == {"listed": 1}
    assert content["_meta"] == BORDER


def test_a_resource_function_overrides_keys_of_the_content_meta() -> None:
    block = Embedded(
        "ui://widget/a.html",
        blob="PHA+",
        content_meta={"openai/widgetPrefersBorder": False, "own": 1},
    )
    app = app_with_widget(block, content_meta=BORDER)

    (content,) = ask(app, "resources/read", uri="ui://widget/a.html")["contents"]

    assert content == {
        "uri": "ui://widget/a.html",
        "blob": "PHA+",
        "_meta": {"openai/widgetPrefersBorder": False, "ui": {"prefersBorder": True}, "own": 1},
    }


def test_the_meta_of_a_block_is_that_of_the_content_too() -> None:
    app = app_with_widget(Embedded("ui://widget/a.html", text="<p>", meta={"own": 1}))

    (content,) = ask(app, "resources/read", uri="ui://widget/a.html")["contents"]

    assert content["_meta"] == {"own": 1}


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26"])
def test_versions_without_meta_in_contents_get_none(version: str) -> None:
    """Only `ui` is sent all the same: hosts of widgets read it in every version."""
    app = app_with_widget("<p>", content_meta={"own": 1})

    (content,) = ask(app, "resources/read", version, uri="ui://widget/a.html")["contents"]

    assert "_meta" not in content


def test_an_embedded_resource_has_a_meta_inside_and_one_around_it() -> None:
    app = App("blocks")

    @app.tool
    def show() -> Embedded:
        return Embedded("ui://a", text="<p>", meta={"around": 1}, content_meta={"inside": 2})

    (block,) = ask(app, "tools/call", name="show")["content"]

    assert block == {
        "type": "resource",
        "resource": {"uri": "ui://a", "text": "<p>", "_meta": {"inside": 2}},
        "_meta": {"around": 1},
    }


def test_base64_text_is_sent_as_it_was_given() -> None:
    app = App("pictures")

    @app.tool
    def picture() -> list[Image | Embedded]:
        return [Image("R0lGODlh", "image/gif"), Embedded("file:///a.gif", blob="R0lGODlh")]

    image, embedded, *_ = ask(app, "tools/call", name="picture")["content"]

    assert image["data"] == embedded["resource"]["blob"] == "R0lGODlh"


def test_security_schemes_are_listed_on_the_tool_and_in_its_meta() -> None:
    app = App("schemes")
    app.resource("ui://widget/a.html", name="a")(lambda: "<p>")
    meta = {"openai/outputTemplate": "ui://widget/a.html", "securitySchemes": SCHEMES}

    @app.tool(meta=meta)
    def balances() -> int:
        return 1

    (tool,) = ask(app, "tools/list")["tools"]

    assert tool["securitySchemes"] == SCHEMES
    assert tool["_meta"] == meta


def test_a_tool_without_security_schemes_lists_none() -> None:
    app = App("schemes")
    app.add_tool(lambda: 1, name="open")

    (tool,) = ask(app, "tools/list")["tools"]

    assert not {"securitySchemes", "_meta"} & tool.keys()


@pytest.mark.parametrize(
    "schemes",
    [
        "oauth2",
        [{"type": "apiKey"}],
        [{"type": "oauth2", "scopes": "accounts:read"}],
        [{"type": "oauth2", "scope": ["accounts:read"]}],
        [{"type": "noauth", "scopes": []}],
        ["noauth"],
    ],
)
def test_wrong_security_schemes_are_refused(schemes: Any) -> None:
    app = App("schemes")

    with pytest.raises(TypeError, match=r"'securitySchemes'.* should be a list of {'type'"):
        app.add_tool(lambda: 1, name="balances", meta={"securitySchemes": schemes})


def hints_of(meta: Any) -> Any:
    """The hints that a tool reads from the `_meta` of its request."""
    app = App("hints")

    @app.tool
    def show(ctx: Context) -> Any:
        return success(data=ctx.request.hints)

    params = {} if meta is None else {"_meta": meta}
    return ask(app, "tools/call", name="show", **params)["structuredContent"]


NO_HINTS = dict.fromkeys(
    ["locale", "user_agent", "location", "subject", "session", "organization", "widget_session"]
)


def test_hints_have_what_the_client_sends() -> None:
    place = {"city": "Oslo", "region": "Oslo", "country": "NO", "timezone": "Europe/Oslo"}
    found = hints_of(
        {
            "openai/locale": "nb-NO",
            "openai/userAgent": "ChatGPT/1.0",
            "openai/userLocation": {**place, "latitude": 59.9, "longitude": "10.75"},
            "openai/subject": "v1/abc",
            "openai/session": "s1",
            "openai/organization": "o1",
            "openai/widgetSessionId": "w1",
        }
    )

    assert found == {
        "locale": "nb-NO",
        "user_agent": "ChatGPT/1.0",
        "location": {**place, "latitude": 59.9, "longitude": 10.75},
        "subject": "v1/abc",
        "session": "s1",
        "organization": "o1",
        "widget_session": "w1",
    }


@pytest.mark.parametrize(
    ("meta", "found"),
    [
        (None, {}),
        ({"other": 1}, {}),
        ({"webplus/i18n": "de"}, {"locale": "de"}),
        ({"openai/locale": 5, "webplus/i18n": "de"}, {"locale": "de"}),
        ({"openai/locale": None, "openai/userAgent": ["a"], "openai/subject": {}}, {}),
        ({"openai/userLocation": "Oslo"}, {}),
        ({"openai/userLocation": {"city": 5, "latitude": "north", "longitude": True}}, {}),
        ({"openai/userLocation": {"latitude": 10**400, "longitude": -181}}, {}),
    ],
)
def test_hints_that_are_absent_or_of_a_wrong_type_are_none(
    meta: Any, found: dict[str, str]
) -> None:
    assert hints_of(meta) == NO_HINTS | found


def test_a_context_for_tests_has_the_hints_that_it_was_given() -> None:
    ctx = TestContext(meta={"openai/locale": "de"})

    assert ctx.request.hints.locale == "de"
    assert TestContext().request.hints.locale is None
