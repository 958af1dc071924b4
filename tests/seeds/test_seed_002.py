"""Seed 002, typed responses for the Apps SDK: its types, keys, helpers, examples and pitfalls.

The numbers in the names are rows of the seed, in its order. Its rows on login, subscriptions and
linked accounts are tested with the gates.
"""

from __future__ import annotations

import asyncio
import logging
import re
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, TypeAlias, TypedDict, get_type_hints

import httpx
import pytest
from mcp.types import CallToolResult, ReadResourceResult
from mcp.types import Tool as SdkTool

from answerback import (
    Annotations,
    App,
    Audio,
    Embedded,
    Image,
    Reply,
    ResultMeta,
    Text,
    ToolMeta,
    failure,
    success,
)
from answerback.core.content import Block

META = {"com.example/a": 1}


class Account(TypedDict):
    id: str
    balance: float


class AccountBalancesContent(TypedDict):
    accounts: list[Account]
    totalBalance: float
    lastUpdated: str


AccountBalancesResponse: TypeAlias = Reply[AccountBalancesContent, ResultMeta]


class YourFeatureContent(TypedDict):
    data: list[str]
    count: int
    timestamp: str


YourFeatureResponse: TypeAlias = Reply[YourFeatureContent, ResultMeta]

BALANCES: AccountBalancesContent = {
    "accounts": [{"id": f"a{n}", "balance": 2469.134} for n in range(5)],
    "totalBalance": 12345.67,
    "lastUpdated": "2026-01-01T00:00:00.000Z",
}
WIDGET = "ui://widget/your-widget.html"


def make_app() -> App:
    """The seed's tools and their widget."""
    app = App("accounts", contract="apps")
    tool_meta: ToolMeta = {
        "openai/outputTemplate": WIDGET,
        "openai/toolInvocation/invoking": "Loading...",
        "openai/toolInvocation/invoked": "Complete!",
        "securitySchemes": [{"type": "oauth2", "scopes": ["feature:read"]}],
    }

    @app.tool(
        name="your_tool_name",
        title="Your Tool Title",
        description="What this tool does",
        meta=tool_meta,
    )
    def your_tool(param1: Annotated[str, "Parameter description"]) -> YourFeatureResponse:
        if param1 == "crash":
            raise ConnectionError("db-7.internal refused hunter2")
        now = datetime.now(UTC).isoformat()
        data: YourFeatureContent = {"data": [param1], "count": 1, "timestamp": now}
        return success(f"Processed {data['count']} items successfully", data)

    @app.tool
    def get_account_balances() -> AccountBalancesResponse:
        return success("Found 5 accounts with total balance of $12,345.67", BALANCES)

    @app.tool
    def network() -> AccountBalancesResponse:
        return failure("Failed to fetch account data: Network timeout")

    @app.tool
    def with_meta() -> AccountBalancesResponse:
        return success("Found them", BALANCES, {"openai/outputTemplate": WIDGET})

    @app.resource(WIDGET, mime="text/html+skybridge", content_meta=dict(ON_RESOURCE))
    def your_widget() -> str:
        return "<div></div>"

    return app


ON_RESOURCE = {
    "openai/widgetDescription": "Shows the feature.",
    "openai/widgetPrefersBorder": True,
    "openai/widgetCSP": {"connect_domains": ["https://api.example.com"], "resource_domains": []},
}


def ask(method: str, **params: Any) -> Any:
    """The result of one MCP request over HTTP."""

    async def post() -> Any:
        transport = httpx.ASGITransport(make_app().asgi())
        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        headers = {"MCP-Protocol-Version": "2025-06-18"}
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return (await client.post("/mcp", json=request, headers=headers)).json()["result"]

    return asyncio.run(asyncio.wait_for(post(), 60))


def call(name: str, **arguments: Any) -> Any:
    return ask("tools/call", name=name, arguments=arguments)


def sent(block: Any) -> Any:
    return success(content=[block]).to("mcp")["content"][0]


def test_seed_002_01_and_27_text_content() -> None:
    assert sent(Text("Hello", meta=META)) == {"type": "text", "text": "Hello", "_meta": META}
    assert sent(Text("Hello", META)) == sent(Text("Hello", meta=META))
    assert sent(Text("Hello")) == {"type": "text", "text": "Hello"}


@pytest.mark.parametrize(("kind", "name"), [(Image, "image"), (Audio, "audio")])
def test_seed_002_02_03_and_28_media_content_takes_base64_text(kind: Any, name: str) -> None:
    block = kind("aGVsbG8=", f"{name}/x", META)

    assert block.data == b"hello"
    assert sent(block) == {
        "type": name,
        "data": "aGVsbG8=",
        "mimeType": f"{name}/x",
        "_meta": META,
    }


def test_seed_002_28_text_that_is_not_base64_is_refused_with_what_to_give() -> None:
    with pytest.raises(ValueError, match=r"not base64; pass bytes, Image.open\(path\) or url="):
        Image("chart.png", "image/png")


def test_seed_002_27_annotations_in_the_place_of_metadata_are_refused_with_what_to_write() -> None:
    notes: Any = Annotations(priority=0.5)

    with pytest.raises(TypeError, match="write annotations="):
        Text("Hello", notes)


@pytest.mark.parametrize(
    ("arguments", "instead"),
    [
        ({"data": b"x", "format": "png"}, "Image(data, mime='image/png')"),
        ({"path": "chart.png"}, "Image.open(path)"),
        ({"data": b"x", "mimeType": "image/png"}, "mime="),
        ({"url": "https://a/b.png", "altText": "A chart"}, "alt="),
    ],
)
def test_seed_002_28_arguments_of_other_libraries_are_refused_with_what_to_write(
    arguments: dict[str, Any], instead: str
) -> None:
    with pytest.raises(TypeError, match=re.escape(f"write {instead}")):
        Image(**arguments)


@pytest.mark.parametrize("body", [{"text": "<p>"}, {"blob": "PHA+"}])
def test_seed_002_29_the_content_as_one_argument_is_refused_with_what_to_write(
    body: dict[str, Any],
) -> None:
    content: Any = {**body, "mimeType": "text/html"}

    with pytest.raises(TypeError, match=r"write Embedded\('ui://x', text=…, mime=…, meta=…\)"):
        Embedded("ui://x", content)
    with pytest.raises(TypeError, match=r"write Embedded\('ui://x', text=…, mime=…, meta=…\)"):
        Embedded("ui://x", "<p>", content)


@pytest.mark.parametrize("body", [{"text": "<p>"}, {"blob": "PHA+"}])
def test_seed_002_04_05_06_and_29_resource_content_has_a_meta_inside_too(
    body: dict[str, Any],
) -> None:
    inside = {"openai/widgetDescription": "A page."}
    block = Embedded(WIDGET, **body, mime="text/html", meta=META, content_meta=inside)

    assert sent(block) == {
        "type": "resource",
        "resource": {"uri": WIDGET, "mimeType": "text/html", **body, "_meta": inside},
        "_meta": META,
    }


def test_seed_002_07_blocks_have_literal_types() -> None:
    media: list[Block] = [Image(b"", "image/png"), Audio(b"", "audio/wav")]
    blocks = [Text("a"), *media, Embedded("a:b", "a")]

    assert [block.type for block in blocks] == ["text", "image", "audio", "resource"]
    assert get_type_hints(Text)["type"].__args__ == (Literal["text"],)


RESPONSE_METADATA: list[tuple[str, Any, Any]] = [
    ("openai/outputTemplate", WIDGET, 5),
    ("openai/widgetAccessible", True, "yes please"),
    ("openai/toolInvocation/invoking", "Loading...", "a" * 65),
    ("openai/toolInvocation/invoked", "Complete!", "a" * 65),
    ("openai/widgetDescription", "Balances.", True),
    ("openai/widgetPrefersBorder", False, "no"),
    ("openai/widgetCSP", {"connect_domains": [], "resource_domains": []}, []),
    ("mcp/www_authenticate", 'Bearer realm="a"', 401),
    ("mcp/www_authenticate", ['Bearer realm="a"'], [401]),
    ("openai/widgetDomain", "https://accounts.example.com", None),
    ("openai/widgetSessionId", "w-1", 1),
    ("openai/closeWidget", True, 1),
    ("openai/resultCanProduceWidget", True, "true"),
]


@pytest.mark.parametrize(("key", "value", "wrong"), RESPONSE_METADATA)
@pytest.mark.parametrize("make", [success, failure])
def test_seed_002_08_to_16_the_keys_of_a_response_are_typed_and_checked(
    key: str, value: Any, wrong: Any, make: Any
) -> None:
    assert make("text", meta={key: value}).to("mcp")["_meta"][key] == value
    assert key in get_type_hints(ResultMeta)
    with pytest.raises(TypeError, match=re.escape(f"meta[{key!r}] should be")):
        make("text", meta={key: wrong})


TOOL_METADATA: list[tuple[str, Any, Any]] = [
    ("openai/visibility", "private", "hidden"),
    ("openai/fileParams", ["statement"], "statement"),
    ("ui", {"resourceUri": WIDGET, "visibility": ["app"]}, WIDGET),
    ("ui/resourceUri", WIDGET, "widget.html"),
    ("securitySchemes", [{"type": "noauth"}], [{"type": "basic"}]),
    *RESPONSE_METADATA[:4],
]


@pytest.mark.parametrize(("key", "value", "wrong"), TOOL_METADATA)
def test_seed_002_16_the_keys_of_a_tool_are_typed_and_checked(
    key: str, value: Any, wrong: Any
) -> None:
    app = App("a")

    app.add_tool(lambda: 1, name="right", meta={key: value})

    assert key in get_type_hints(ToolMeta)
    with pytest.raises(TypeError, match=re.escape(f"meta[{key!r}] should be")):
        app.add_tool(lambda: 1, name="wrong", meta={key: wrong})


def test_seed_002_17_a_misspelt_key_causes_a_warning() -> None:
    with pytest.warns(UserWarning, match="did you mean 'openai/outputTemplate'"):
        success("Hello", {"data": []}, {"openai/outputTemplat": WIDGET})


def test_seed_002_18_the_response_type_has_data_and_metadata() -> None:
    app = make_app()

    with_both = app.tools["get_account_balances"].output_schema
    app.add_tool(lambda: None, name="plain")

    @app.tool
    def with_data_alone() -> Reply[AccountBalancesContent]:
        return success("none", BALANCES)

    assert with_both == app.tools["with_data_alone"].output_schema
    assert with_both is not None
    assert sorted(with_both["properties"]) == ["accounts", "lastUpdated", "totalBalance"]
    assert str(Reply[int, ResultMeta]) == str(Reply[int])


def test_seed_002_19_to_22_the_members_of_a_result() -> None:
    result = call("with_meta")

    assert result == {
        "content": [{"type": "text", "text": "Found them"}],
        "structuredContent": BALANCES,
        "isError": False,
        "_meta": {"openai/outputTemplate": WIDGET},
    }


def test_seed_002_23_and_24_the_example_of_a_success() -> None:
    assert call("get_account_balances") == {
        "content": [{"type": "text", "text": "Found 5 accounts with total balance of $12,345.67"}],
        "structuredContent": BALANCES,
        "isError": False,
    }


def test_seed_002_23_metadata_is_the_third_argument() -> None:
    meta: ResultMeta = {"openai/widgetAccessible": True}

    assert success("Hello", {"a": 1}, meta).meta == success("Hello", {"a": 1}, meta=meta).meta


def test_seed_002_25_and_26_the_example_of_an_error() -> None:
    result = call("network")

    text = "Failed to fetch account data: Network timeout"
    assert result["content"] == [{"type": "text", "text": text}]
    assert result["isError"] is True
    assert "structuredContent" not in result


def test_seed_002_25_metadata_in_the_place_of_the_code_is_refused_with_what_to_write() -> None:
    meta: Any = {"openai/outputTemplate": WIDGET}

    assert failure("no", meta=meta).meta == meta
    with pytest.raises(TypeError, match="should be a str; pass metadata as meta=…"):
        failure("no", meta)


def test_seed_002_33_to_38_a_registered_tool() -> None:
    tool = ask("tools/list")["tools"][0]

    schemes = [{"type": "oauth2", "scopes": ["feature:read"]}]
    output_schema = tool.pop("outputSchema")
    assert tool == {
        "name": "your_tool_name",
        "title": "Your Tool Title",
        "description": "What this tool does",
        "inputSchema": {
            "type": "object",
            "properties": {"param1": {"type": "string", "description": "Parameter description"}},
            "required": ["param1"],
            "additionalProperties": False,
        },
        "securitySchemes": schemes,
        "_meta": {
            "openai/outputTemplate": WIDGET,
            "openai/toolInvocation/invoking": "Loading...",
            "openai/toolInvocation/invoked": "Complete!",
            "securitySchemes": schemes,
        },
    }
    assert sorted(output_schema["required"]) == ["count", "data", "timestamp"]


def test_seed_002_42_the_usage_pattern_succeeds() -> None:
    result = call("your_tool_name", param1="x")

    assert result["content"] == [{"type": "text", "text": "Processed 1 items successfully"}]
    assert result["structuredContent"] | {"timestamp": ""} == {
        "data": ["x"],
        "count": 1,
        "timestamp": "",
    }


def test_seed_002_43_the_message_of_an_exception_is_masked(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The seed sends `error.message`; that may hold a secret."""
    with caplog.at_level(logging.CRITICAL):
        result = call("your_tool_name", param1="crash")

    assert result["isError"] is True
    assert "hunter2" not in str(result)


def test_seed_002_45_the_official_sdk_reads_every_result() -> None:
    tools = [SdkTool.model_validate(each) for each in ask("tools/list")["tools"]]
    results = [CallToolResult.model_validate(call(name)) for name in ("with_meta", "network")]
    contents = ReadResourceResult.model_validate(ask("resources/read", uri=WIDGET)).contents

    assert {tool.name for tool in tools} >= {"your_tool_name", "with_meta", "network"}
    assert [result.model_dump(by_alias=True)["isError"] for result in results] == [False, True]
    assert [each.model_dump(by_alias=True)["_meta"] for each in contents] == [ON_RESOURCE]


def test_seed_002_49_a_response_built_by_hand_is_sent_as_it_is() -> None:
    app = App("by hand", contract="apps")

    @app.tool
    def by_hand() -> Any:
        return {"content": [{"type": "text", "text": "Hello"}], "structuredContent": {"data": []}}

    found = app.write(asyncio.run(app.call("by_hand")), "mcp")

    assert found == success("Hello", {"data": []}).to("mcp") | {
        "content": [{"type": "text", "text": "Hello"}]
    }


def test_seed_002_50_and_51_an_undeclared_field_is_found_by_its_type() -> None:
    app = App("types", contract="apps")

    @app.tool
    def untyped() -> Any:
        return success("Hello", {"randomField": "value"})

    @app.tool
    def typed() -> Reply[Account]:
        return success("Hello", {"randomField": "value"})  # type: ignore[typeddict-item, typeddict-unknown-key]  # the test is about it

    assert app.write(asyncio.run(app.call("untyped")), "mcp")["structuredContent"] == {
        "randomField": "value"
    }
    error = asyncio.run(app.call("typed")).error
    assert error is not None
    assert error.code == "INVALID_OUTPUT"


def test_seed_002_12_to_14_and_54_hosts_read_the_keys_of_a_widget_from_its_content() -> None:
    (content,) = ask("resources/read", uri=WIDGET)["contents"]

    assert content == {
        "uri": WIDGET,
        "mimeType": "text/html+skybridge",
        "text": "<div></div>",
        "_meta": ON_RESOURCE,
    }
