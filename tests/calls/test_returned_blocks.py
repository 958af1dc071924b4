"""Content blocks of the SDK, of FastMCP and of ours are content, wherever a tool returns them."""

from __future__ import annotations

import asyncio
import base64
import json
from dataclasses import dataclass
from pathlib import Path
from types import GenericAlias
from typing import Any, NamedTuple, TypedDict

import attrs
import jsonschema  # type: ignore[import-untyped]  # it ships no types
import mcp_types as sdk
import msgspec
import pydantic
import pytest
from fastmcp.prompts import Message as FastMcpMessage
from fastmcp.tools import ToolResult
from fastmcp.utilities import types as fastmcp_types
from mcp.server.mcpserver import Image as SdkImage
from tests.calls.one_tool import answer, app_returning

from answerback import (
    App,
    Audio,
    Embedded,
    Image,
    InvalidInput,
    Link,
    Message,
    Text,
    connect,
    success,
    validate,
    wrap,
)
from answerback.options import Values

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(40))


def base64_of(data: bytes) -> str:
    return base64.b64encode(data).decode()


BASE64 = base64_of(PNG)
WAV = b"RIFF\x24\x00\x00\x00WAVEfmt "
PDF_FILE = b"%PDF-1.7\n"

OWN = Image(PNG, "image/png")
TEXT = sdk.TextContent(type="text", text="hi")
PICTURE = sdk.ImageContent(type="image", data=BASE64, mime_type="image/png")
FAST = fastmcp_types.Image(data=PNG, format="png")
LINK = sdk.ResourceLink(type="resource_link", uri="https://a.example/x", name="x", title="X")
PDF = sdk.BlobResourceContents(
    uri="file:///a.pdf", mime_type="application/pdf", blob=base64_of(PDF_FILE)
)
REPORT = sdk.EmbeddedResource(type="resource", resource=PDF)
OWN_REPORT = Embedded("file:///a.pdf", blob=PDF_FILE, mime="application/pdf")


def blocks_of(reply: Any) -> tuple[Any, ...]:
    """The content without the text that is the JSON of the data."""
    is_json = [isinstance(block, Text) and block.text.startswith("{") for block in reply.content]
    return tuple(block for block, skip in zip(reply.content, is_json, strict=True) if not skip)


BLOCKS: list[tuple[Any, object]] = [
    (TEXT, Text("hi")),
    (PICTURE, OWN),
    (
        sdk.AudioContent(type="audio", data=base64_of(WAV), mime_type="audio/wav"),
        Audio(WAV, "audio/wav"),
    ),
    (LINK, Link("https://a.example/x", "x", title="X")),
    (REPORT, OWN_REPORT),
    (PDF, OWN_REPORT),
    (sdk.TextResourceContents(uri="a://b", text="hi"), Embedded("a://b", text="hi")),
    (SdkImage(data=PNG, format="png"), OWN),
    (FAST, OWN),
    (fastmcp_types.Audio(data=WAV, format="wav"), Audio(WAV, "audio/wav")),
    (
        fastmcp_types.File(data=PDF_FILE, format="pdf", name="a"),
        Embedded("file:///a.pdf", blob=PDF_FILE, mime="application/pdf"),
    ),
]


@pytest.mark.parametrize(("block", "own"), BLOCKS)
def test_a_block_of_another_library_is_a_block(block: Any, own: object) -> None:
    kind = type(block)

    replies = [
        answer(block),
        answer(block, kind),
        answer(block, kind | None),
        answer(block, kind | str),
        answer([block], GenericAlias(list, (kind,))),
        answer((block,), GenericAlias(tuple, (kind,))),
        answer([block]),
        answer(success(content=[block])),
    ]

    assert [reply.content for reply in replies] == [(own,)] * len(replies)
    assert {reply.data for reply in replies} == {msgspec.UNSET}


@pytest.mark.parametrize(
    "annotation",
    [
        Any,
        list[sdk.TextContent | sdk.ImageContent],
        list[sdk.ContentBlock | str | Image],
        tuple[sdk.TextContent, sdk.ImageContent, str, Image],
    ],
)
def test_blocks_of_several_libraries_and_texts_make_one_content(annotation: Any) -> None:
    app = app_returning((TEXT, PICTURE, "there", OWN), annotation)

    reply = asyncio.run(app.call("tool"))

    assert reply.content == (Text("hi"), OWN, Text("there"), OWN)
    assert app.tools["tool"].output_schema is None


def test_a_picture_s_annotations_and_meta_are_kept() -> None:
    annotations = sdk.Annotations(audience=["user"], priority=0.5)
    block = sdk.TextContent(type="text", text="hi", annotations=annotations, _meta={"a": 1})

    sent = app_returning(block).write(answer(block), "mcp")

    assert sent["content"] == [
        {
            "type": "text",
            "text": "hi",
            "annotations": {"audience": ["user"], "priority": 0.5},
            "_meta": {"a": 1},
        }
    ]


RESULTS = [
    sdk.CallToolResult(content=[TEXT, PICTURE], structured_content={"rows": 3}, _meta={"a": 1}),
    ToolResult(content=[TEXT, PICTURE], structured_content={"rows": 3}, meta={"a": 1}),
    {"content": [TEXT, FAST], "structuredContent": {"rows": 3}, "_meta": {"a": 1}},
]


@pytest.mark.parametrize("result", RESULTS)
def test_a_result_of_another_library_is_the_reply(result: Any) -> None:
    kind = type(result)

    replies = [answer(result), answer(result, kind)]

    assert [blocks_of(reply) for reply in replies] == [(Text("hi"), OWN)] * 2
    assert [reply.data for reply in replies] == [{"rows": 3}] * 2
    assert [reply.meta for reply in replies] == [{"a": 1}] * 2


@pytest.mark.parametrize(
    "result",
    [sdk.CallToolResult(content=[TEXT], is_error=True), ToolResult(content="hi", is_error=True)],
)
def test_a_failed_result_of_another_library_is_a_failure(result: Any) -> None:
    reply, wrapped = answer(result, type(result) | None), asyncio.run(wrap(lambda: result)())

    assert reply.error.message == wrapped["error"]["message"] == "hi"


@dataclass
class Chart:
    rows: int
    picture: sdk.ImageContent
    others: list[Image | fastmcp_types.Image] | None = None


class ChartDict(TypedDict):
    rows: int
    picture: fastmcp_types.Image


class ChartTuple(NamedTuple):
    rows: int
    picture: Image


class ChartStruct(msgspec.Struct, rename="camel", tag="chart"):
    row_count: int
    own_picture: Image


@attrs.define
class ChartAttrs:
    rows: int
    picture: Image


class ChartModel(pydantic.BaseModel):
    rows: int = pydantic.Field(alias="Rows", ge=1)
    picture: sdk.ImageContent = pydantic.Field(description="The chart.")

    @pydantic.computed_field  # type: ignore[prop-decorator]  # mypy lacks the plugin
    @property
    def twice(self) -> int:
        return 2 * self.rows


class ArbitraryModel(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(arbitrary_types_allowed=True)
    picture: Image
    other: fastmcp_types.Image


class Charts(pydantic.BaseModel):
    charts: dict[str, ChartModel]


class AnyField(pydantic.BaseModel):
    value: Any


NESTED: list[tuple[Any, Any, object, int]] = [
    (dict, {"rows": [1], "picture": PICTURE}, {"rows": [1], "picture": "image 1"}, 1),
    (list, [1, {"a": (OWN, FAST)}], [1, {"a": ["image 1", "image 2"]}], 2),
    (dict[str, Image], {"a": OWN}, {"a": "image 1"}, 1),
    (list[int | Image], [1, OWN], [1, "image 1"], 1),
    (tuple[int, Image], (1, OWN), (1, "image 1"), 1),
    (list[list[Image]], [[OWN]], [["image 1"]], 1),
    (list[Any], [TEXT, PICTURE], ["hi", "image 1"], 1),
    (
        Chart,
        Chart(3, PICTURE, [OWN, FAST]),
        {"rows": 3, "picture": "image 1", "others": ["image 2", "image 3"]},
        3,
    ),
    (ChartDict, {"rows": 3, "picture": FAST}, {"rows": 3, "picture": "image 1"}, 1),
    (ChartTuple, ChartTuple(3, OWN), ChartTuple(3, "image 1"), 1),  # type: ignore[arg-type]
    (
        ChartStruct,
        ChartStruct(3, OWN),
        {"row_count": 3, "own_picture": "image 1"},
        1,
    ),
    (ChartAttrs, ChartAttrs(3, OWN), {"rows": 3, "picture": "image 1"}, 1),
    (
        ChartModel,
        ChartModel(Rows=3, picture=PICTURE),
        {"rows": 3, "twice": 6, "picture": "image 1"},
        1,
    ),
    (ChartModel, {"Rows": 3, "picture": PICTURE}, {"rows": 3, "picture": "image 1"}, 1),
    (
        ArbitraryModel,
        ArbitraryModel(picture=OWN, other=FAST),
        {"picture": "image 1", "other": "image 2"},
        2,
    ),
    (
        Charts,
        Charts(charts={"a": ChartModel(Rows=3, picture=PICTURE)}),
        {"charts": {"a": {"rows": 3, "twice": 6, "picture": "image 1"}}},
        1,
    ),
]


@pytest.mark.parametrize(("annotation", "value", "data", "pictures"), NESTED)
def test_a_block_inside_data_is_content_and_the_data_has_its_name(
    annotation: Any, value: object, data: object, pictures: int
) -> None:
    app = app_returning(value, annotation)

    reply = asyncio.run(app.call("tool"))
    sent = json.loads(msgspec.json.encode(app.write(reply, "mcp")))

    assert (reply.data, blocks_of(reply)) == (data, (OWN,) * pictures)
    assert BASE64 not in json.dumps([sent["structuredContent"], sent["content"][0]])
    if (schema := app.tools["tool"].output_schema) is not None:
        jsonschema.validate(sent["structuredContent"], schema)
        assert "mimeType" not in json.dumps(schema)


@pytest.mark.parametrize("contract", ["standard", "aligned", "envelope", "apps", "direct"])
@pytest.mark.parametrize(("annotation", "value", "data", "pictures"), NESTED)
def test_replies_with_blocks_inside_data_are_valid_under_every_contract(
    annotation: Any, value: object, data: object, pictures: int, contract: str
) -> None:
    app = app_returning(value, annotation, contract=contract)

    reply = asyncio.run(app.call("tool"))
    findings = validate(app.write(reply, "mcp")) + validate(app.write(reply, "envelope"))

    assert [each for each in findings if each.severity == "error"] == []


@pytest.mark.parametrize("value", [each[1] for each in NESTED])
def test_an_undeclared_type_s_blocks_are_content_too(value: Any) -> None:
    reply = answer(value)
    wrapped = asyncio.run(wrap(lambda: value)())

    assert OWN in reply.content
    assert BASE64 not in repr(reply.data)
    assert BASE64 not in json.dumps(wrapped.get("data"))
    assert BASE64 in json.dumps(wrapped["content"])


@pytest.mark.parametrize("value", [PICTURE, FAST, OWN])
def test_a_block_in_a_field_without_a_type_is_content(value: Any) -> None:
    reply = answer(AnyField(value=value), AnyField)

    assert (reply.data.value, blocks_of(reply)) == ("image 1", (OWN,))


@pytest.mark.parametrize(("block", "own"), [each for each in BLOCKS if each[0] is not TEXT])
def test_each_block_inside_data_without_a_type_is_content(block: Any, own: object) -> None:
    reply = answer({"found": [block]})

    assert isinstance(reply.data["found"][0], str)
    assert blocks_of(reply) == (own,)


def test_the_data_has_a_text_block_s_text_and_the_uri_of_a_link_or_resource() -> None:
    value = {"text": TEXT, "link": LINK, "report": REPORT, "url": Image(url="https://a.example/b")}

    reply = answer(value)

    assert reply.data == {
        "text": "hi",
        "link": "https://a.example/x",
        "report": "file:///a.pdf",
        "url": "https://a.example/b",
    }
    assert [block.type for block in blocks_of(reply)] == ["resource_link", "resource", "image"]


def test_a_data_url_in_data_is_replaced_by_the_image_s_name() -> None:
    reply = answer({"picture": Image(url=f"data:image/png;base64,{BASE64}")})

    assert reply.data == {"picture": "image 1"}


def test_a_block_used_twice_is_sent_once() -> None:
    reply = answer({"first": PICTURE, "again": PICTURE, "other": OWN})

    assert reply.data == {"first": "image 1", "again": "image 1", "other": "image 2"}
    assert len(blocks_of(reply)) == 2


@pytest.mark.parametrize(
    ("value", "content"),
    [
        (success("a chart", {"picture": FAST}, content=[OWN]), (Text("a chart"), OWN, OWN)),
        (
            {"content": [TEXT, OWN], "structuredContent": {"picture": PICTURE}},
            (Text("hi"), OWN, OWN),
        ),
        ({"success": True, "content": [OWN], "data": {"picture": FAST}}, (OWN, OWN)),
    ],
)
def test_the_number_in_a_name_counts_the_blocks_of_the_reply_s_content(
    value: object, content: tuple[object, ...]
) -> None:
    reply = answer(value)

    assert (reply.data, blocks_of(reply)) == ({"picture": "image 2"}, content)


def test_an_envelope_s_data_may_have_a_block() -> None:
    reply = answer({"success": True, "data": {"picture": OWN}})

    assert (reply.data, blocks_of(reply)) == ({"picture": "image 1"}, (OWN,))


def test_data_beside_a_block_is_still_checked() -> None:
    reply = answer({"Rows": 0, "picture": PICTURE}, ChartModel)

    assert reply.error.code == "INVALID_OUTPUT"
    assert "Rows: expected int >= 1" in reply.error.message


def test_nan_beside_a_block_becomes_null_on_request() -> None:
    values = Values(nan="null")
    value = {"mean": float("nan"), "picture": OWN}

    tool, wrapped = answer(value, values=values), asyncio.run(wrap(lambda: value, nan="null")())

    assert tool.data == wrapped["data"] == {"mean": None, "picture": "image 1"}


def test_a_value_that_contains_itself_beside_a_block_is_an_invalid_output() -> None:
    value: dict[str, Any] = {"picture": OWN}
    value["self"] = [value, value]

    reply = answer(value)

    assert reply.error.code == "INVALID_OUTPUT"


def test_an_image_whose_file_is_missing_is_a_masked_failure(tmp_path: Path) -> None:
    reply = answer(fastmcp_types.Image(path=tmp_path / "missing.png"))

    assert reply.error.code == "TOOL_EXECUTION_ERROR"
    assert "missing.png" not in reply.error.message


def test_an_image_with_wrong_base64_is_an_invalid_output() -> None:
    reply = answer(sdk.ImageContent(type="image", data="?", mime_type="image/png"))

    assert reply.error.code == "INVALID_OUTPUT"


@pytest.mark.parametrize("annotation", [str, Chart, list[dict[str, Any]]])
@pytest.mark.parametrize("block", [OWN, PICTURE, FAST])
def test_a_block_where_the_type_declares_data_is_refused_with_what_to_write(
    annotation: Any, block: object
) -> None:
    reply = answer(block, annotation)

    assert reply.error.code == "INVALID_OUTPUT"
    assert "declare the block's class, or return success(data, content=[…])" in reply.error.message


def test_prompts_take_blocks_of_other_libraries() -> None:
    app = App("test")

    @app.prompt
    def review() -> list[Any]:
        return [TEXT, FAST, Message(PICTURE, "assistant")]  # type: ignore[arg-type]

    async def run() -> Any:
        async with connect(app) as server:
            return (await server.prompt("review")).messages

    messages = asyncio.run(run())

    assert [each.content for each in messages] == [Text("hi"), OWN, OWN]
    assert [each.role for each in messages] == ["user", "user", "assistant"]


def test_prompts_take_messages_of_other_libraries() -> None:
    app = App("test")

    @app.prompt
    def review() -> list[sdk.PromptMessage | FastMcpMessage]:
        return [sdk.PromptMessage(role="assistant", content=PICTURE), FastMcpMessage("hi")]

    async def run() -> Any:
        async with connect(app) as server:
            return (await server.prompt("review")).messages

    messages = asyncio.run(run())

    assert [each.content for each in messages] == [OWN, Text("hi")]
    assert [each.role for each in messages] == ["assistant", "user"]


def test_resources_take_the_sdk_s_contents() -> None:
    app = App("test")

    @app.resource("file:///a.pdf")
    def report() -> sdk.EmbeddedResource:
        return REPORT

    async def run() -> Any:
        async with connect(app) as server:
            return (await server.read("file:///a.pdf")).content

    assert asyncio.run(run())[0].blob == PDF_FILE


@pytest.mark.parametrize("kind", [Image, sdk.ImageContent, fastmcp_types.Image])
def test_the_openapi_document_has_an_image_s_media_type(kind: Any) -> None:
    document = app_returning(OWN, kind).openapi()

    responses = document["paths"]["/functions/tool"]["post"]["responses"]
    assert "image/*" in responses["200"]["content"]


def test_the_arguments_of_a_tool_may_still_be_an_image_of_ours_or_of_the_sdk() -> None:
    app = App("test")

    @app.tool
    def size(own: Image, picture: sdk.ImageContent) -> int:
        if own.data != PNG:
            raise InvalidInput("another picture")
        return len(picture.data)

    sent = {"data": BASE64, "mime": "image/png"}
    reply = asyncio.run(app.call("size", own=sent, picture=PICTURE.model_dump(by_alias=True)))

    assert reply.data == len(BASE64)


def test_fastmcp_s_image_as_an_argument_is_refused_with_what_to_write() -> None:
    def size(picture: fastmcp_types.Image) -> int:
        return 0

    with pytest.raises(TypeError, match="Image is a content block, which only results have; write"):
        App("test").add_tool(size)


def test_a_root_model_with_blocks_is_refused_with_what_to_write() -> None:
    class Pictures(pydantic.RootModel[list[dict[str, sdk.ImageContent]]]): ...

    with pytest.raises(TypeError, match="write the type inside the RootModel"):
        app_returning([], Pictures)


@pytest.mark.parametrize(
    ("kind", "instead"),
    [(sdk.InputRequiredResult, r"Annotated\[bool, Ask"), (sdk.CreateTaskResult, "task='optional'")],
)
def test_a_result_that_tools_do_not_return_is_refused_with_what_to_write(
    kind: Any, instead: str
) -> None:
    with pytest.raises(TypeError, match=f"{kind.__name__} cannot be returned here; .*{instead}"):
        app_returning(None, kind | None)


def test_a_class_with_the_sdk_s_name_from_another_package_is_data() -> None:
    class ImageContent(pydantic.BaseModel):
        data: str

    reply = answer(ImageContent(data="x"), ImageContent)

    assert (reply.data, blocks_of(reply)) == (ImageContent(data="x"), ())


class OldImageContent(pydantic.BaseModel):
    """The class of version 1, which has MCP's own names and no aliases."""

    type: str = "image"
    data: str
    mimeType: str  # noqa: N815 -- its name there


OldImageContent.__name__, OldImageContent.__module__ = "ImageContent", "mcp.types"


def test_blocks_of_the_sdk_s_version_1_are_blocks() -> None:
    old = OldImageContent(data=BASE64, mimeType="image/png")

    assert answer(old, OldImageContent).content == (OWN,)
    assert answer([old, "x"]).content == (OWN, Text("x"))


PIXEL = base64.b64encode(PNG).decode()


@pytest.mark.parametrize("contract", ["standard", "direct"])
def test_a_block_written_by_hand_is_completed_as_mcp_defines_it(contract: Any) -> None:
    blocks = [{"type": "image", "data": PIXEL}, {"type": "resource", "uri": "file:///a.txt"}]
    app = App("by hand", contract=contract)
    app.add_tool(lambda: {"content": blocks, "isError": False}, name="tool")

    sent = app.write(asyncio.run(app.call("tool")), "mcp")["content"]

    assert sent[0] == {"type": "image", "data": PIXEL, "mimeType": "image/png"}
    assert sent[1] == {"type": "resource_link", "uri": "file:///a.txt", "name": "file:///a.txt"}


def test_an_image_that_is_not_base64_is_an_error_for_a_tool_and_for_wrap() -> None:
    value = {"content": [{"type": "image", "data": "!!!", "mimeType": "image/png"}]}

    reply, wrapped = answer(value), asyncio.run(wrap(lambda: value)())

    assert reply.error is not None
    assert (reply.error.code, wrapped["error"]["code"]) == ("INVALID_OUTPUT", "INVALID_OUTPUT")
