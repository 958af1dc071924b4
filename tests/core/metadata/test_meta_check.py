"""The check of `_meta`: misspelt keys cause a warning, misplaced keys and wrong values an error."""

from __future__ import annotations

import asyncio
import json
from typing import Any, get_type_hints

import jsonschema  # type: ignore[import-untyped]  # it ships no types
import pytest
from tests.protocol.official_tools import MODULES

from answerback import (
    App,
    Audio,
    Embedded,
    Image,
    Link,
    ResourceMeta,
    ResultMeta,
    Text,
    ToolMeta,
    failure,
    success,
)
from answerback.core.metadata import KEYS, Place, ValueKind
from answerback.dialects import mcp

CSP = {"connect_domains": ["https://api.example.com"], "resource_domains": []}


def give(place: str, meta: dict[str, Any]) -> object:
    """Give *meta* as an author does, at one of the places."""
    app = App("given")
    match place:
        case "success":
            return success("text", {"a": 1}, meta)
        case "failure":
            return failure("no", meta=meta)
        case "tool":
            return app.tool(meta=meta)(lambda_with_name)
        case "resource":
            return app.resource("ui://a", meta=meta)(lambda_with_name)
        case "content":
            return app.resource("ui://a", content_meta=meta)(lambda_with_name)
        case "embedded":
            return Embedded("ui://a", text="a", content_meta=meta)
    blocks: dict[str, Any] = {
        "text": lambda: Text("a", meta=meta),
        "image": lambda: Image(b"a", "image/png", meta=meta),
        "audio": lambda: Audio(b"a", "audio/wav", meta=meta),
        "link": lambda: Link("https://example.com", "a", meta=meta),
        "block": lambda: Embedded("ui://a", text="a", meta=meta),
    }
    return blocks[place]()


def lambda_with_name() -> str:
    return "a"


BLOCKS = ["text", "image", "audio", "link", "block"]
EVERYWHERE = ["success", "failure", "tool", "resource", "content", "embedded", *BLOCKS]


@pytest.mark.parametrize("place", EVERYWHERE)
@pytest.mark.parametrize(
    ("misspelt", "near"),
    [
        ("openai/outputTemplat", "openai/outputTemplate"),
        ("openai/output_template", "openai/outputTemplate"),
        ("OpenAI/outputTemplate", "openai/outputTemplate"),
        ("openai/widgetAccesible", "openai/widgetAccessible"),
        ("openai/widgetCsp", "openai/widgetCSP"),
        ("openai/toolInvocation/invokin", "openai/toolInvocation/invoking"),
        ("mcp/www_authenticat", "mcp/www_authenticate"),
        ("mcp/www-authenticate", "mcp/www_authenticate"),
        ("ui/resourceURI", "ui/resourceUri"),
        ("openai/invoking", "openai/toolInvocation/invoking"),
        ("openai/fileParameters", "openai/fileParams"),
    ],
)
def test_a_misspelt_key_passes_with_a_warning_that_has_the_near_name(
    place: str, misspelt: str, near: str
) -> None:
    with pytest.warns(UserWarning, match=f"no known metadata key is named '{misspelt}'") as warned:
        given = give(place, {misspelt: "a"})

    assert given is not None
    assert f"did you mean {near!r}?" in str(warned[0].message)
    assert warned[0].filename == __file__


@pytest.mark.parametrize("place", EVERYWHERE)
def test_keys_of_others_and_keys_that_a_host_may_have_added_pass(place: str) -> None:
    meta = {
        "accounts": [1],
        "com.example/outputTemplat": 1,
        "io.modelcontextprotocol/x": None,
        "openai/widgetState": {"a": 1},
        "openai/widgetTitle": "a",
        "openai/toolInvocation/failed": "It failed.",
        "openai/outputSchema": {},
        "openai/ui": {"entrypoints": [{"type": "thread"}]},
        "mcp/other": {},
        "mcp/widgetCSP": {},
    }

    given = give(place, meta)

    assert given is not None


@pytest.mark.parametrize(
    ("place", "meta", "message"),
    [
        ("tool", {"openai/widgetAccessible": "yes please"}, "True or False, not 'yes please'"),
        ("success", {"openai/widgetAccessible": 1}, "True or False, not 1"),
        ("tool", {"openai/toolInvocation/invoking": "a" * 65}, "a str of at most 64 characters"),
        ("tool", {"openai/toolInvocation/invoked": 5}, "a str of at most 64 characters, not 5"),
        ("tool", {"openai/visibility": "hidden"}, "'public' or 'private', not 'hidden'"),
        ("tool", {"openai/fileParams": "file"}, "a list of str, not 'file'"),
        ("tool", {"openai/outputTemplate": "a.html"}, "a URI such as 'ui://widget/accounts.html'"),
        ("success", {"openai/outputTemplate": None}, "a URI such as"),
        ("tool", {"ui": "ui://a"}, "a dict with resourceUri, visibility"),
        ("tool", {"ui": {"resourceUri": "https://a"}}, r"meta\['ui'\]\['resourceUri'\] should be"),
        ("tool", {"ui": {"visibility": ["user"]}}, "a list of 'model' and 'app'"),
        ("tool", {"securitySchemes": [{"type": "apiKey"}]}, "a list of {'type': 'noauth'}"),
        ("failure", {"mcp/www_authenticate": {"Bearer": 1}}, "challenge or a list of them"),
        ("resource", {"openai/widgetDescription": ["a"]}, r"should be a str, not \['a'\]"),
        ("content", {"openai/widgetPrefersBorder": "no"}, "True or False"),
        ("content", {"openai/widgetCSP": ["a"]}, "a dict with connect_domains"),
        (
            "content",
            {"openai/widgetCSP": {"connect_domains": "https://a"}},
            r"content_meta\['openai/widgetCSP'\]\['connect_domains'\] should be a list of str",
        ),
        ("embedded", {"ui": {"prefersBorder": "yes"}}, r"content_meta\['ui'\]\['prefersBorder'\]"),
        ("embedded", {"ui": {"permissions": {"camera": True}}}, "an empty dict"),
        ("text", {"openai/closeWidget": "now"}, "True or False"),
    ],
)
def test_a_wrong_value_is_refused_with_the_expected_one(
    place: str, meta: dict[str, Any], message: str
) -> None:
    with pytest.raises(TypeError, match=message):
        give(place, meta)


@pytest.mark.parametrize("member", ["csp", "permissions", "domain", "prefersBorder"])
def test_settings_of_the_widget_are_refused_on_a_tool(member: str) -> None:
    with pytest.raises(ValueError, match=f"'{member}', which belongs on the widget"):
        give("tool", {"ui": {"resourceUri": "ui://a", member: {}}})


@pytest.mark.parametrize(
    ("place", "key", "value", "right_place"),
    [
        ("tool", "openai/widgetCSP", CSP, r"app.resource\(uri, content_meta=…\)"),
        ("tool", "openai/widgetDescription", "a", r"app.widget\(…\) or app.resource"),
        ("tool", "mcp/www_authenticate", "Bearer", r"failure\(meta=…\)"),
        ("resource", "openai/outputTemplate", "ui://a", r"@app.tool\(meta=…\)"),
        ("content", "openai/fileParams", ["a"], r"@app.tool\(meta=…\)"),
        ("success", "openai/fileParams", ["a"], r"@app.tool\(meta=…\)"),
        ("success", "openai/locale", "en", "ctx.request.hints"),
        ("success", "securitySchemes", [{"type": "noauth"}], r"@app.tool\(meta=…\)"),
    ],
)
def test_a_key_in_the_wrong_place_is_refused_with_the_right_one(
    place: str, key: str, value: Any, right_place: str
) -> None:
    with pytest.raises(ValueError, match=right_place):
        give(place, {key: value})


@pytest.mark.parametrize(
    ("meta", "message"),
    [
        ({"openai/widgetCSP": {"connectDomains": []}}, "did you mean 'connect_domains'"),
        ({"ui": {"csp": {"connect_domains": []}}}, "did you mean 'connectDomains'"),
        ({"ui": {"csp": {"redirectDomains": []}}}, "belongs on 'redirect_domains' of 'openai/"),
        ({"ui": {"prefersborder": True}}, "did you mean 'prefersBorder'"),
        ({"ui": {"resourceUri": "ui://a"}}, "belongs on the tool"),
    ],
)
def test_members_of_an_object_are_checked_like_keys(meta: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        give("content", meta)


def test_the_reply_of_another_server_is_read_and_written_whatever_its_keys_are() -> None:
    meta = {"openai/outputTemplat": 1, "openai/widgetAccessible": "yes"}
    resource = {"uri": "ui://a", "text": "a", "_meta": meta}
    content = [
        {"type": "text", "text": "a", "_meta": meta},
        {"type": "resource", "resource": resource, "_meta": meta},
        {"type": "image", "data": "YQ==", "mimeType": "image/png", "_meta": meta},
    ]

    reply = mcp.read({"content": content, "isError": False, "_meta": meta})

    assert reply.to("mcp") == {"content": content, "isError": False, "_meta": meta}


def test_a_finished_reply_of_a_tool_is_sent_whatever_its_keys_are() -> None:
    """Such a reply may come from another server, which answers for its keys."""
    app = App("proxy")
    meta = {"openai/outputTemplat": 1}
    result = {"content": [{"type": "text", "text": "a", "_meta": meta}], "_meta": meta}
    app.add_tool(lambda: result, name="forward")

    sent = app.write(asyncio.run(app.call("forward")), "mcp")

    assert sent == result | {"isError": False}


@pytest.mark.parametrize(
    "result",
    [
        {"content": [{"type": "text", "text": "a"}], "_meta": {"openai/outputTemplat": 1}},
        {"content": [{"type": "text", "text": "a", "_meta": {"openai/outputTemplat": 1}}]},
        {"success": True, "content": [], "data": {}, "meta": {"openai/outputTemplat": 1}},
    ],
    ids=["result", "block", "envelope"],
)
def test_a_misspelt_key_in_a_finished_reply_is_logged_once_for_a_tool(
    result: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    app = App("test")
    app.add_tool(lambda: result, name="forward")

    for _ in range(2):
        asyncio.run(app.call("forward"))

    (record,) = [each for each in caplog.records if each.levelname == "WARNING"]
    assert "'forward'" in record.getMessage()
    assert "did you mean 'openai/outputTemplate'?" in record.getMessage()


PLACE_OF_TYPE: dict[Any, tuple[Place, ...]] = {
    ToolMeta: ("tool",),
    ResultMeta: ("result",),
    ResourceMeta: ("resource", "content"),
}


@pytest.mark.parametrize("kind", PLACE_OF_TYPE)
def test_the_types_have_the_keys_of_the_table(kind: Any) -> None:
    for place in PLACE_OF_TYPE[kind]:
        keys = {key.name: key.kind for key in KEYS if place in key.places}
        hints = get_type_hints(kind)

        assert keys.keys() == hints.keys()
        for name, value_kind in keys.items():
            if value_kind.members:
                assert _members(value_kind) == _typed_members(hints[name])


def _members(kind: ValueKind) -> dict[str, Any]:
    return {name: _members(member) for name, member in kind.members.items()}


def _typed_members(kind: Any) -> dict[str, Any]:
    is_typed_dict = isinstance(kind, type) and hasattr(kind, "__total__")
    if not is_typed_dict:
        return {}
    return {name: _typed_members(hint) for name, hint in get_type_hints(kind).items()}


def test_each_key_of_the_table_has_a_dated_source() -> None:
    assert {key.source for key in KEYS if "202" not in key.source} == set()


SCHEMA = MODULES / "@modelcontextprotocol" / "ext-apps" / "dist" / "src" / "generated"
SAMPLES: list[dict[str, Any]] = [
    {},
    {"resourceUri": "ui://a", "visibility": ["app"]},
    {"visibility": ["user"]},
    {"visibility": "app"},
    {"resourceUri": 5},
    {"csp": {}},
    {"permissions": {}},
    {"csp": {"connectDomains": ["https://a.example"], "frameDomains": []}},
    {"csp": {"connectDomains": "https://a.example"}},
    {"csp": {"resourceDomains": [5]}},
    {"csp": {"baseUriDomains": []}, "prefersBorder": False, "domain": "a.example"},
    {"permissions": {"camera": {}, "clipboardWrite": {}}},
    {"permissions": {"camera": True}},
    {"permissions": {"camera": {"a": 1}}},
    {"prefersBorder": 1},
    {"domain": None},
]


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
@pytest.mark.parametrize(
    ("place", "definition"), [("tool", "McpUiToolMeta"), ("content", "McpUiResourceMeta")]
)
def test_ui_is_accepted_and_refused_as_the_schema_of_mcp_apps_says(
    place: str, definition: str, sample: dict[str, Any]
) -> None:
    schema = json.loads((SCHEMA / "schema.json").read_bytes())["$defs"][definition]
    is_valid = jsonschema.Draft202012Validator(schema).is_valid(sample)

    try:
        give(place, {"ui": sample})
    except (TypeError, ValueError):
        is_accepted = False
    else:
        is_accepted = True

    assert is_accepted == is_valid


@pytest.mark.parametrize(
    ("place", "definition"), [("tool", "McpUiToolMeta"), ("content", "McpUiResourceMeta")]
)
def test_ui_has_the_members_of_the_schema_of_mcp_apps(place: Place, definition: str) -> None:
    schema = json.loads((SCHEMA / "schema.json").read_bytes())["$defs"][definition]
    allowed = {name for name, member in schema["properties"].items() if member != {"not": {}}}
    (key,) = [key for key in KEYS if key.name == "ui" and place in key.places]

    assert set(key.kind.members) == allowed
    for name, member in key.kind.members.items():
        properties = schema["properties"][name].get("properties", {})
        assert set(member.members) == set(properties)
