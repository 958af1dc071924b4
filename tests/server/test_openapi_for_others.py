"""The OpenAPI document is what code generators and linters expect, and lists every status."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Annotated, Any

import httpx
import pytest
from tests.server.openapi_samples import post, response, rich, schema_errors

from answerback import App, Ask, Audio, Context, Declined, Image, RateLimited
from answerback.contract import PRESETS
from answerback.core.limits import Limits

CONTRACTS = list(PRESETS)
ALWAYS = {"200", "400", "413", "415", "500", "503", "default"}
REST = [name for name, preset in PRESETS.items() if preset.http == "rest"]


def boolean_properties(node: Any, path: str = "") -> Iterator[str]:
    """The paths of properties whose schema is `true` or `false`."""
    if isinstance(node, list):
        for number, item in enumerate(node):
            yield from boolean_properties(item, f"{path}/{number}")
    if isinstance(node, dict):
        properties = node.get("properties")
        for name, schema in properties.items() if isinstance(properties, dict) else ():
            if isinstance(schema, bool):
                yield f"{path}/properties/{name}"
        for name, value in node.items():
            yield from boolean_properties(value, f"{path}/{name}")


@pytest.mark.parametrize("contract", CONTRACTS)
@pytest.mark.parametrize("dialects", [False, True])
def test_no_property_has_a_boolean_schema(contract: str, dialects: bool) -> None:
    """Openapi-python-client refuses a document that has one."""
    found = rich(contract).openapi(dialects=dialects)

    assert list(boolean_properties(found)) == []


@pytest.mark.parametrize("contract", CONTRACTS)
def test_a_response_with_data_has_one_media_type_by_default(contract: str) -> None:
    found = rich(contract).openapi()

    for status in (200, 400, 404):
        assert list(response(found, "find", status)["content"]) == ["application/json"]
    for name in ("Problem", "McpResult", "Envelope"):
        is_own = name.lower().startswith(PRESETS[contract].http[:3])
        assert is_own or f"Answerback{name}" not in found["components"]["schemas"]


def test_the_media_types_of_the_other_dialects_are_listed_on_request() -> None:
    found = rich().openapi(dialects=True)

    assert list(response(found, "find", 200)["content"]) == [
        "application/json",
        "application/vnd.answerback.mcp+json",
        "application/vnd.answerback.envelope+json",
    ]
    assert "application/problem+json" in response(found, "find", 404)["content"]


def test_a_document_with_dialects_does_not_replace_the_served_one() -> None:
    app = rich()
    app.openapi(dialects=True)

    served = asyncio.run(_send(app, "GET", "/openapi.json"))

    assert served.json() == app.openapi()
    assert "vnd.answerback" not in served.text


@pytest.mark.parametrize("contract", REST)
def test_bytes_come_first_in_the_document_of_an_image_or_audio_tool(contract: str) -> None:
    found = rich(contract).openapi()

    assert list(response(found, "picture", 200)["content"]) == ["image/*", "application/json"]
    assert list(response(found, "sound", 200)["content"]) == ["audio/*", "application/json"]
    assert next(iter(response(found, "pictures", 200)["content"])) == "application/json"
    assert next(iter(response(found, "anything", 200)["content"])) == "application/json"


async def _send(app: App, method: str, path: str, **headers: str) -> httpx.Response:
    transport = httpx.ASGITransport(app.asgi())
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        return await client.request(method, path, headers=headers)


@pytest.mark.parametrize(
    ("accept", "media_type"),
    [
        ("application/json", "application/json"),
        ("application/json, image/*;q=0.5", "application/json"),
        ("application/json, image/*;q=0", "application/json"),
        ("Application/JSON; charset=utf-8", "application/json"),
        ("application/problem+json, application/json", "application/json"),
        ("application/*", "application/json"),
        ("", "image/gif"),
        ("*/*", "image/gif"),
        ("image/*", "image/gif"),
        ("image/gif, application/json;q=0.9", "image/gif"),
        ("application/json, text/plain, */*", "image/gif"),
        ("text/html", "image/gif"),
    ],
)
def test_an_image_is_sent_as_json_if_the_client_prefers_json(accept: str, media_type: str) -> None:
    app = rich()

    sent = asyncio.run(_send(app, "POST", "/functions/picture", Accept=accept))

    assert (sent.status_code, sent.headers["content-type"]) == (200, media_type)
    if media_type == "application/json":
        schema = response(app.openapi(), "picture", 200)["content"][media_type]["schema"]
        assert schema_errors(schema, app.openapi(), sent.json()) == []
        assert sent.json()["content"][0]["mimeType"] == "image/gif"
        assert sent.headers["x-answerback-form"] == "content"
    else:
        assert sent.content == b"GIF89a"


def test_audio_is_sent_as_json_if_the_client_accepts_only_json() -> None:
    sent = asyncio.run(_send(rich(), "POST", "/functions/sound", Accept="application/json"))

    assert sent.json()["content"][0]["mimeType"] == "audio/wav"


def ask_before(sure: Annotated[bool, Ask("Really?")]) -> bool:
    return sure


async def sample(ctx: Context) -> str:
    return (await ctx.sample("Say something")).text


async def roots(context: Context) -> int:
    return await _count_roots(context)


async def _count_roots(context: Context) -> int:
    return len(await context.roots())


async def elicit(ctx: Context) -> str:
    try:
        return await ctx.elicit("Who?", str)
    except Declined:
        return "nobody"


def roots_of_a_tree(tree: list[int]) -> str:
    return json.dumps(tree)


def limited() -> str:
    raise RateLimited("too often")


@pytest.mark.parametrize(
    ("tool", "listed"), [(ask_before, {"409"}), (sample, set()), (roots, set()), (elicit, set())]
)
def test_a_tool_with_an_ask_parameter_has_409_in_the_document(tool: Any, listed: set[str]) -> None:
    app = App("asking")
    app.add_tool(tool)

    sent = asyncio.run(_send(app, "POST", f"/functions/{tool.__name__}"))

    assert sent.status_code == 409
    assert set(post(app.openapi(), tool.__name__)["responses"]) == ALWAYS | listed


def test_a_tool_that_cannot_ask_has_no_409() -> None:
    app = App("not asking")
    app.add_tool(roots_of_a_tree)

    assert set(post(app.openapi(), "roots_of_a_tree")["responses"]) == ALWAYS


def test_a_tool_with_a_time_out_has_504_in_the_document() -> None:
    app = App("timed")
    app.add_tool(limited, name="own", timeout=3)
    app.add_tool(limited, name="none", timeout=None)
    of_app = App("timed", limits=Limits(seconds=3))
    of_app.add_tool(limited)

    assert set(post(app.openapi(), "own")["responses"]) == ALWAYS | {"504"}
    assert set(post(app.openapi(), "none")["responses"]) == ALWAYS
    assert set(post(of_app.openapi(), "limited")["responses"]) == ALWAYS | {"504"}


@pytest.mark.parametrize("contract", CONTRACTS)
def test_the_document_defines_its_tags_servers_and_security(contract: str) -> None:
    found = rich(contract).openapi()

    used = {
        tag
        for path in found["paths"].values()
        for operation in path.values()
        for tag in operation["tags"]
    }
    assert {tag["name"] for tag in found["tags"]} == used
    assert all(tag["description"] for tag in found["tags"])
    assert found["servers"] == [{"url": "/"}]
    assert found["security"] == []


def test_a_fixed_tuple_has_items_beside_its_prefix_items() -> None:
    """The rule `array-items` of Spectral requires it."""
    app = App("tuples")

    @app.tool
    def swap(pair: tuple[int, str], same: tuple[int, int]) -> tuple[str, int]:
        return pair[1], pair[0]

    found = app.openapi()
    body = post(found, "swap")["requestBody"]["content"]["application/json"]["schema"]
    pair, same = body["properties"]["pair"], body["properties"]["same"]

    assert same["items"] == {"type": "integer"}
    assert pair["items"] == {"anyOf": [{"type": "integer"}, {"type": "string"}]}
    assert pair["prefixItems"] == [{"type": "integer"}, {"type": "string"}]
    assert schema_errors(body, found, {"pair": [1, "a"], "same": [1, 2]}) == []
    assert schema_errors(body, found, {"pair": ["a", 1], "same": [1, 2]}) != []
    assert schema_errors(body, found, {"pair": [1, "a", 2], "same": [1, 2]}) != []


def test_an_image_of_a_url_is_json_whatever_is_accepted() -> None:
    app = App("linked")

    @app.tool
    def linked() -> Image:
        return Image(url="https://example.com/a.png")

    @app.tool
    def either(sound: bool = False) -> Image | Audio:
        return Audio(b"RIFF", "audio/wav") if sound else Image(b"GIF89a", "image/gif")

    sent = asyncio.run(_send(app, "POST", "/functions/linked", Accept="image/*"))

    assert sent.headers["content-type"] == "application/json"
    assert list(response(app.openapi(), "either", 200)["content"])[:2] == ["image/*", "audio/*"]


@pytest.mark.parametrize("dialects", [False, True])
def test_no_component_has_a_title_beside_its_name(dialects: bool) -> None:
    """Openapi-python-client names a class by the title, and then two classes share a name."""
    components = rich().openapi(dialects=dialects)["components"]["schemas"]

    assert {"Tree", "Person", "Address", "AnswerbackContent"} <= set(components)
    assert {name: each["title"] for name, each in components.items() if "title" in each} == {}
