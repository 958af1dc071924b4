"""MCP hosts show a model either the texts or the data: with `message`, the data says both."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypedDict

import jsonschema  # type: ignore[import-untyped]  # it ships no types
import msgspec
import pydantic
import pytest

from answerback import App, Audio, Embedded, Image, Link, Reply, Text, success
from answerback.contract import PRESETS, STANDARD, Contract
from answerback.core.content import Annotations, Block
from answerback.core.reply import Cut
from answerback.core.shape import RESULT
from answerback.core.versions import LATEST_STATEFUL, V2024_11_05
from answerback.dialects import mcp
from answerback.options import Values
from answerback.protocol.listing import tool_entry
from answerback.reading.read_reply import read
from answerback.rules import validate
from answerback.rules.validation import findings_in

ADDED = "answerback/added"


@dataclass
class Point:
    x: int
    y: int


class Size(msgspec.Struct, forbid_unknown_fields=True):
    width: int


class User(TypedDict):
    name: str


class Model(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")
    name: str


class Tree(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")
    children: list[Tree] = []


@dataclass
class Node:
    name: str
    children: list[Node] = field(default_factory=list)


@dataclass
class Note:
    message: str


class Renamed(msgspec.Struct):
    text: str = msgspec.field(name="message")


class Aliased(pydantic.BaseModel):
    text: str = pydantic.Field(serialization_alias="message")


class Computed(pydantic.BaseModel):
    @pydantic.computed_field  # type: ignore[prop-decorator]  # as pydantic's documentation has it
    @property
    def message(self) -> str:
        return "own"


class Open(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow")
    name: str


class Capped(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(json_schema_extra={"maxProperties": 1})
    name: str


class Pair(NamedTuple):
    key: str
    value: int


def app_returning(annotation: Any, value: Any = None, **options: Any) -> App:
    contract = options.pop("contract", "standard")

    def tool() -> Any:
        return value

    tool.__annotations__["return"] = annotation
    app = App("test", contract=contract)
    app.add_tool(tool, **options)
    return app


def result_of(app: App) -> dict[str, Any]:
    """The result that MCP sends, which must be valid by the listed output schema."""
    result = app.write(asyncio.run(app.call("tool")), "mcp")
    if (schema := entry_of(app).get("outputSchema")) is not None:
        jsonschema.Draft202012Validator.check_schema(schema)
        jsonschema.Draft202012Validator(schema).validate(result["structuredContent"])
    return result


def entry_of(app: App) -> dict[str, Any]:
    return tool_entry(app.tools["tool"], LATEST_STATEFUL)


WITH_MESSAGE: list[tuple[Any, Any, dict[str, Any]]] = [
    (Reply[int], 5, {"result": 5}),
    (Reply[str], "five", {"result": "five"}),
    (Reply[list[Point]], [Point(1, 2)], {"result": [{"x": 1, "y": 2}]}),
    (Reply[Point | None], None, {"result": None}),
    (Reply[int | str], 5, {"result": 5}),
    (Reply[Pair], Pair("a", 1), {"result": ["a", 1]}),
    (Reply[Point], Point(1, 2), {"x": 1, "y": 2}),
    (Reply[Size], Size(3), {"width": 3}),
    (Reply[User], {"name": "Ada"}, {"name": "Ada"}),
    (Reply[Model], Model(name="Ada"), {"name": "Ada"}),
    (Reply[Tree], Tree(children=[Tree()]), {"children": [{"children": []}]}),
    (
        Reply[Node],
        Node("a", [Node("b")]),
        {"name": "a", "children": [{"name": "b", "children": []}]},
    ),
]


@pytest.mark.parametrize(("annotation", "data", "sent"), WITH_MESSAGE)
def test_the_data_of_a_declared_reply_has_the_authors_text_as_its_message(
    annotation: Any, data: Any, sent: dict[str, Any]
) -> None:
    app = app_returning(annotation, success("Found it.", data))

    result = result_of(app)

    assert result["structuredContent"] == {**sent, "message": "Found it."}
    assert result["_meta"] == {ADDED: "message"}
    schema = entry_of(app)["outputSchema"]
    assert schema["properties"]["message"]["type"] == "string"
    assert "message" not in schema.get("required", ())


@pytest.mark.parametrize(("annotation", "data", "sent"), WITH_MESSAGE)
def test_a_message_is_not_part_of_the_data_that_is_read(
    annotation: Any, data: Any, sent: dict[str, Any]
) -> None:
    app = app_returning(annotation, success("Found it.", data))
    result, schema = result_of(app), entry_of(app)["outputSchema"]

    found = read(result, output_schema=schema)

    assert found.data == sent.get("result", sent)
    assert found.content[0] == Text("Found it.")
    assert found.meta == {}
    typed = read(result, annotation.__args__[0], output_schema=schema)
    assert typed.data == data


WITHOUT_MESSAGE: list[tuple[Any, Any]] = [
    (Reply[Note], Note("own")),
    (Reply[Renamed], Renamed("own")),
    (Reply[Aliased], Aliased(text="own")),
    (Reply[Computed], Computed()),
    (Reply[Open], Open(name="Ada")),
    (Reply[Capped], Capped(name="Ada")),
    (Reply[dict[str, int]], {"a": 1}),
    (Reply[Point | User], Point(1, 2)),
    (Reply[None], None),
    (Reply, {"a": 1}),
    (Point, Point(1, 2)),
    (int, 5),
]


@pytest.mark.parametrize(("annotation", "data"), WITHOUT_MESSAGE)
def test_other_return_types_have_no_message_added(annotation: Any, data: Any) -> None:
    app = app_returning(annotation, success("Found it.", data))
    plain = app_returning(annotation, success(data=data))

    result = result_of(app)

    assert result["structuredContent"] == result_of(plain)["structuredContent"]
    assert "_meta" not in result
    own = app.tools["tool"].output_schema or {}
    assert entry_of(app).get("outputSchema", {}).get("properties") == own.get("properties")


@pytest.mark.parametrize("contract", sorted(PRESETS.keys() - {"standard"}))
def test_other_contracts_send_only_the_data(contract: str) -> None:
    app = app_returning(Reply[int], success("Found it.", 5), contract=contract)

    assert result_of(app)["structuredContent"] == {"result": 5}
    assert "message" not in entry_of(app)["outputSchema"]["properties"]


@pytest.mark.parametrize(
    ("contract", "has_message"),
    [(STANDARD.derive(name="mine", masked="no"), True), (Contract(name="mine"), False)],
)
def test_a_contract_derived_from_standard_keeps_the_message(
    contract: Contract, has_message: bool
) -> None:
    app = app_returning(Reply[int], success("Found it.", 5), contract=contract)

    assert ("message" in result_of(app)["structuredContent"]) is has_message


def test_values_turn_the_message_off_for_a_tool_and_for_an_app() -> None:
    off = Values(message=False)
    one = app_returning(Reply[int], success("Found it.", 5), values=off)
    every = App("test", values=off)

    @every.tool
    def tool() -> Reply[int]:
        return success("Found it.", 5)

    for app in (one, every):
        assert result_of(app)["structuredContent"] == {"result": 5}
        assert list(entry_of(app)["outputSchema"]["properties"]) == ["result"]


def test_a_tool_that_sends_only_text_has_no_message() -> None:
    values = Values(structured=False)
    app = app_returning(Reply[int], success("Found it.", 5), values=values)

    result = result_of(app)

    assert "structuredContent" not in result
    assert "_meta" not in result


def test_a_reply_with_only_data_has_no_message() -> None:
    result = result_of(app_returning(Reply[int], success(data=5)))

    assert result["structuredContent"] == {"result": 5}
    assert "_meta" not in result


def test_a_tool_with_a_budget_has_a_message_whatever_it_is_declared_to_return() -> None:
    app = app_returning(Point, success("Found it.", Point(1, 2)), budget=1000)

    assert result_of(app)["structuredContent"]["message"] == "Found it."


def test_the_message_has_every_text_for_the_model_and_a_line_for_each_other_block() -> None:
    for_user = Annotations(audience=("user",))
    content: list[Block] = [
        Text("Only you see this.", annotations=for_user),
        Text("Two pictures:"),
        Image(b"\x89PNG\r\n\x1a\n", "image/png", alt="a cat"),
        Image(url="https://example.com/dog.png", mime="image/png", alt="a dog"),
        Audio(b"RIFF0000WAVE", "audio/wav"),
        Link("file:///notes.txt", "notes"),
        Embedded("file:///log.txt", "all is well"),
        Embedded("file:///dump", blob=b"123"),
        Text(" \n"),
    ]
    app = app_returning(Reply[int], success(None, 5, content=content))

    result = result_of(app)

    assert result["structuredContent"]["message"].splitlines() == [
        "Two pictures:",
        "[image: image/png, 8 bytes, a cat]",
        "[image: image/png, https://example.com/dog.png, a dog]",
        "[audio: audio/wav, 12 bytes]",
        "notes: file:///notes.txt",
        "file:///log.txt:",
        "all is well",
        "[resource: file:///dump, 3 bytes]",
    ]


@pytest.mark.parametrize("text", ['{"x":1,"y":2}', '{ "y": 2, "x": 1 }'])
def test_a_text_that_is_the_data_is_not_the_message(text: str) -> None:
    app = app_returning(Reply[Point], success(text, Point(1, 2)))

    assert "message" not in result_of(app)["structuredContent"]


def test_an_image_inside_the_data_is_named_in_the_message() -> None:
    @dataclass
    class Chart:
        rows: int
        picture: Image

    app = app_returning(Reply[Chart], Chart(3, Image(b"GIF89a", "image/gif", alt="sales")))

    message = result_of(app)["structuredContent"]["message"]

    assert message == "[image: image/gif, 6 bytes, sales]"


def test_rest_and_openapi_have_no_message() -> None:
    app = app_returning(Reply[Point], success("Found it.", Point(1, 2)))

    reply = asyncio.run(app.call("tool"))

    assert app.write(reply, "rest") == {"x": 1, "y": 2}
    assert app.write(reply, "envelope")["data"] == {"x": 1, "y": 2}
    assert "message" not in app.tools["tool"].output_schema["properties"]  # type: ignore[index]


def test_an_older_client_gets_neither_data_nor_message() -> None:
    app = app_returning(Reply[int], success("Found it.", 5))
    reply = asyncio.run(app.call("tool"))

    result = msgspec.json.decode(mcp.write(reply, app.tools["tool"].shape, STANDARD, V2024_11_05))

    assert result.keys() == {"content", "isError"}


def test_a_message_without_the_mark_is_data() -> None:
    sent = {"content": [], "structuredContent": {"name": "Ada", "message": "hi"}}

    assert read(sent).data == {"name": "Ada", "message": "hi"}


def test_the_rules_find_nothing_wrong_with_a_message() -> None:
    app = app_returning(Reply[Size], success("Found it.", Size(3)))
    result, schema = result_of(app), entry_of(app)["outputSchema"]

    assert validate(result, schema=schema) == ()
    assert [each.rule for each in validate(result, schema=app.tools["tool"].output_schema)] == [
        "AB320"
    ]


def test_a_secret_in_the_text_is_found_once() -> None:
    text = "The token is ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8."
    app = app_returning(Reply[Point], success(text, Point(1, 2)))

    found = findings_in(asyncio.run(app.call("tool")))

    assert [each.pointer for each in found] == ["/content/0/text"]


def test_the_cuts_of_a_reply_are_sent_and_read() -> None:
    cuts = (Cut("items", 50, 7253), Cut("log", 10, 900, "lines"))
    reply = Reply(content=(Text("cut"),), data=[1], cuts=cuts)

    result = mcp.write(reply, RESULT, STANDARD)

    assert msgspec.json.decode(result)["_meta"]["answerback/cut"] == [
        {"path": "items", "returned": 50, "total": 7253, "unit": "items"},
        {"path": "log", "returned": 10, "total": 900, "unit": "lines"},
    ]
    assert mcp.read(result).cuts == cuts
    assert read(result).cuts == cuts


@pytest.mark.parametrize("wrong", [5, "items", [5], [{"path": "a"}], {"path": "a"}])
def test_malformed_cuts_of_another_server_are_ignored(wrong: Any) -> None:
    result = {"content": [], "_meta": {"answerback/cut": wrong}}

    assert read(result).cuts == ()


@pytest.mark.parametrize(("budget", "listed"), [(20_000, 20_000), (900_000, 500_000)])
def test_a_tool_with_a_budget_lists_its_size_for_claude_code(budget: int, listed: int) -> None:
    entry = entry_of(app_returning(Point, budget=budget))

    assert entry["_meta"] == {"anthropic/maxResultSizeChars": listed}
    assert "_meta" not in entry_of(app_returning(Point))


def test_the_authors_own_size_is_listed() -> None:
    meta = {"anthropic/maxResultSizeChars": 100_000}

    entry = entry_of(app_returning(Point, budget=20_000, meta=meta))

    assert entry["_meta"] == meta
