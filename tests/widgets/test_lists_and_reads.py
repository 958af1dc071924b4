"""The keys of widgets in lists and reads: the same for every caller."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.widgets.mcp_requests import WITH_META, content, result, tool, widget

from answerback import CSP, App
from answerback.options import Access, Shown

URI = "ui://widget/accounts.html"
UI = {
    "csp": {
        "connectDomains": ["https://api.example.com", "wss://live.example.com:8443"],
        "resourceDomains": ["https://*.cdn.example.com"],
        "frameDomains": ["https://video.example.com"],
        "baseUriDomains": ["https://www.example.com"],
    },
    "permissions": {"camera": {}, "clipboardWrite": {}},
    "prefersBorder": True,
}
PAGE_META = {
    "ui": UI,
    "openai/widgetCSP": {
        "connect_domains": ["https://api.example.com", "wss://live.example.com:8443"],
        "resource_domains": ["https://*.cdn.example.com"],
        "frame_domains": ["https://video.example.com"],
        "redirect_domains": ["https://pay.example.com"],
    },
    "openai/widgetDescription": "Balances of all accounts",
    "openai/widgetPrefersBorder": True,
    "openai/widgetDomain": "https://accounts.example.com",
}
TOOL_META = {
    "ui": {"resourceUri": URI, "visibility": ["model", "app"]},
    "ui/resourceUri": URI,
    "openai/outputTemplate": URI,
    "openai/widgetAccessible": True,
    "openai/visibility": "public",
    "openai/toolInvocation/invoking": "Loading…",
    "openai/toolInvocation/invoked": "Done",
    "example.com/team": "billing",
}


def bank() -> App:
    app = App("bank", access=Access(url="https://example.com/mcp"))
    app.widget(
        "accounts",
        html="<!doctype html><html><head><title>Accounts</title></head><body></body></html>",
        csp=CSP(
            connect=["https://api.example.com", "wss://live.example.com:8443"],
            resources=["https://*.cdn.example.com"],
            frames=["https://video.example.com"],
            base_uris=["https://www.example.com"],
            redirects=["https://pay.example.com"],
        ),
        domain="https://accounts.example.com",
        border=True,
        description="Balances of all accounts",
        permissions={"clipboardWrite", "camera"},
        bridge=False,
    )

    @app.tool(
        widget=Shown("accounts", invoking="Loading…", invoked="Done", visible_to={"app", "model"}),
        meta={"example.com/team": "billing"},
    )
    def accounts() -> dict[str, int]:
        """List the accounts."""
        return {"savings": 7}

    return app


@pytest.mark.parametrize("version", WITH_META)
@pytest.mark.parametrize("agent", ["python", "Claude-User", "openai-mcp/1.0.0"])
def test_every_caller_gets_the_same_keys_in_both_lists(version: str, agent: str) -> None:
    listed = asyncio.run(tool(bank(), "accounts", version=version, agent=agent))
    page = asyncio.run(widget(bank(), "accounts", version=version, agent=agent))

    assert listed["_meta"] == TOOL_META
    assert listed["annotations"] == {
        "readOnlyHint": False,
        "destructiveHint": True,
        "openWorldHint": True,
    }
    assert page == {
        "uri": URI,
        "name": "accounts",
        "description": "Balances of all accounts",
        "mimeType": "text/html;profile=mcp-app",
        "_meta": PAGE_META,
    }


@pytest.mark.parametrize("version", WITH_META)
@pytest.mark.parametrize("agent", ["python", "openai-mcp/1.0.0"])
def test_the_content_has_the_same_keys_as_the_list(version: str, agent: str) -> None:
    read = asyncio.run(content(bank(), "accounts", version=version, agent=agent))

    assert read == {
        "uri": URI,
        "mimeType": "text/html;profile=mcp-app",
        "text": "<!doctype html><html><head><title>Accounts</title></head><body></body></html>",
        "_meta": PAGE_META,
    }


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26"])
def test_a_version_without_meta_gets_the_tool_and_the_page_alone(version: str) -> None:
    """No message has a member that its version does not have."""
    listed = asyncio.run(tool(bank(), "accounts", version=version))
    page = asyncio.run(widget(bank(), "accounts", version=version))
    read = asyncio.run(content(bank(), "accounts", version=version))

    assert listed.keys() <= {"name", "description", "inputSchema", "annotations"}
    assert page.keys() == {"uri", "name", "description", "mimeType"}
    assert read.keys() == {"uri", "mimeType", "text"}


def test_a_server_with_a_widget_declares_the_extension_where_the_version_has_extensions() -> None:
    app, plain = bank(), App("plain")
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t"}}

    found = asyncio.run(result(app, "server/discover"))
    without = asyncio.run(result(plain, "server/discover"))
    earlier = asyncio.run(result(app, "initialize", hello, version="2025-11-25"))

    assert found["capabilities"]["extensions"] == {"io.modelcontextprotocol/ui": {}}
    assert "extensions" not in without["capabilities"]
    assert "extensions" not in earlier["capabilities"]


def test_a_widget_without_options_allows_nothing_and_leaves_the_rest_to_the_host() -> None:
    app = App("bank")
    app.widget("accounts", html="<h1>Accounts</h1>")

    page = asyncio.run(widget(app, "accounts"))

    assert page["_meta"] == {
        "ui": {"csp": {"connectDomains": [], "resourceDomains": []}},
        "openai/widgetCSP": {"connect_domains": [], "resource_domains": []},
    }


@pytest.mark.parametrize(
    ("visible_to", "expected"),
    [
        ({"model"}, (["model"], False, "public")),
        (["app"], (["app"], True, "private")),
        (("app", "model"), (["model", "app"], True, "public")),
    ],
)
def test_the_visibility_of_a_tool_is_told_to_both_kinds_of_hosts(
    visible_to: Any, expected: tuple[list[str], bool, str]
) -> None:
    """A tool that only the page calls needs no widget of its own."""
    app = App("bank")

    @app.tool(widget=Shown(visible_to=visible_to))
    def refresh() -> int:
        return 1

    meta = asyncio.run(tool(app, "refresh"))["_meta"]

    visibility, accessible, name = expected
    assert meta == {
        "ui": {"visibility": visibility},
        "openai/widgetAccessible": accessible,
        "openai/visibility": name,
    }


def test_hints_that_the_author_gave_stay_and_reading_destroys_nothing() -> None:
    app = App("bank")
    app.widget("accounts", html="<h1>Accounts</h1>")

    @app.tool(widget="accounts", read_only=True, open_world=False, idempotent=True)
    def accounts() -> int:
        return 1

    assert asyncio.run(tool(app, "accounts"))["annotations"] == {
        "readOnlyHint": True,
        "destructiveHint": False,
        "idempotentHint": True,
        "openWorldHint": False,
    }


def test_a_tool_without_a_widget_is_listed_as_before() -> None:
    app = App("bank")

    @app.tool(widget=Shown(invoking="Adding…"))
    def add(x: int) -> int:
        return x

    @app.tool
    def double(x: int) -> int:
        return 2 * x

    assert asyncio.run(tool(app, "add"))["_meta"] == {"openai/toolInvocation/invoking": "Adding…"}
    assert asyncio.run(tool(app, "double")).keys() == {"name", "inputSchema", "outputSchema"}
