"""Return annotations: how each wraps the data, and the output schema it gives."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, NamedTuple, Optional, TypedDict

import jsonschema  # type: ignore[import-untyped]  # it ships no types
import msgspec
import pytest

from answerback import App, Embedded, Image, Link, Reply, Text, success
from answerback.core.versions import LATEST_STATEFUL
from answerback.dialects import write
from answerback.options import Values
from answerback.protocol.listing import tool_entry

PIXEL = Image(b"\x89PNG", "image/png")


@dataclass
class Point:
    x: int
    y: int


@dataclass
class Circle:
    radius: float


class Pair(NamedTuple):
    key: str
    value: int


class User(TypedDict):
    name: str


@dataclass
class Node:
    name: str
    children: list["Node"] = field(default_factory=list)


def call_tool_returning(
    annotation: Any, value: Any, contract: str = "standard"
) -> tuple[App, Reply[Any]]:
    def tool() -> Any:
        return value

    tool.__annotations__["return"] = annotation
    app = App("test", contract=contract)
    app.add_tool(tool)
    return app, asyncio.run(app.call("tool"))


def sent(app: App, reply: Reply[Any]) -> Any:
    """Return the structured content of the MCP result, and its texts."""
    result = app.write(reply, "mcp")
    return result.get("structuredContent"), [block.get("text") for block in result["content"]]


DECLARED: list[tuple[Any, Any, Any]] = [
    (int, 5, {"result": 5}),
    (float, 1.5, {"result": 1.5}),
    (bool, True, {"result": True}),
    (list[int], [], {"result": []}),
    (list[int], [1, 2], {"result": [1, 2]}),
    (tuple[int, str], (1, "a"), {"result": [1, "a"]}),
    (set[int], {7}, {"result": [7]}),
    (Pair, Pair("a", 1), {"result": ["a", 1]}),
    (int | None, None, {"result": None}),
    (Optional[Point], None, {"result": None}),  # noqa: UP045 -- as some write it
    (Optional[Point], Point(1, 2), {"result": {"x": 1, "y": 2}}),  # noqa: UP045 -- likewise
    (int | str, "a", {"result": "a"}),
    (Point | int, Point(1, 2), {"result": {"x": 1, "y": 2}}),
    (None, None, {}),
    (type(None), None, {}),
    (Annotated[None, "nothing"], None, {}),
    (Point, Point(1, 2), {"x": 1, "y": 2}),
    (Annotated[Point, "where it is"], Point(1, 2), {"x": 1, "y": 2}),
    (Annotated[int, "how many"], 5, {"result": 5}),
    (Annotated[Point | Circle, "either"], Point(1, 2), {"x": 1, "y": 2}),
    (Point | Circle, Circle(2.5), {"radius": 2.5}),
    (User, {"name": "Ann"}, {"name": "Ann"}),
    (dict[str, int], {}, {}),
    (dict[str, int], {"a": 1}, {"a": 1}),
    (Node, Node("a", [Node("b")]), {"name": "a", "children": [{"name": "b", "children": []}]}),
    (Reply[int], 5, {"result": 5}),
    (Reply[int], success("five", 5), {"result": 5, "message": "five"}),
    (Reply[Point], success("here", Point(1, 2)), {"x": 1, "y": 2, "message": "here"}),
    (Annotated[Reply[int], "five"], success("five", 5), {"result": 5, "message": "five"}),
    (int | Reply[int], success("five", 5), {"result": 5, "message": "five"}),
    (int | Reply[int], 5, {"result": 5}),
    (Reply[Point] | None, None, {"result": None}),
    (Reply[None], success("done"), {}),
    (Reply[None], success("done", None), {}),
    (None, success("done"), {}),
]


@pytest.mark.parametrize(("annotation", "value", "expected"), DECLARED)
def test_data_is_wrapped_by_the_annotation_and_fits_the_schema(
    annotation: Any, value: Any, expected: Any
) -> None:
    app, reply = call_tool_returning(annotation, value)
    schema = tool_entry(app.tools["tool"], LATEST_STATEFUL)["outputSchema"]

    structured, _ = sent(app, reply)

    assert structured == expected
    assert schema["type"] == "object"
    jsonschema.Draft202012Validator(schema).validate(structured)


@pytest.mark.parametrize(("annotation", "value", "expected"), DECLARED)
def test_text_and_structured_content_are_equal(annotation: Any, value: Any, expected: Any) -> None:
    app, reply = call_tool_returning(annotation, value)

    structured, texts = sent(app, reply)

    assert structured.pop("message", texts[0]) == texts[0]
    is_string = isinstance(structured.get("result"), str)
    assert is_string or msgspec.json.decode(texts[-1]) == structured
    # `app.call` shows the text that the contract adds.
    assert texts == [block.text for block in reply.content if isinstance(block, Text)]
    own = value.content if isinstance(value, Reply) else ()
    assert len(texts) == len(own) + 1


UNDECLARED: list[tuple[Any, Any, Any]] = [
    (Any, {"a": 1}, {"a": 1}),
    (Any, None, {}),
    (Any, [1], {"result": [1]}),
    (Any, Point(1, 2), {"x": 1, "y": 2}),
    (dict, {"a": 1}, {"a": 1}),
    (dict[str, Any], {"a": 1}, {"a": 1}),
    (Reply, success("here", {"x": 1}), {"x": 1}),
    (object, 5, {"result": 5}),
    (Annotated[Any, "whatever"], 5, {"result": 5}),
    (int | Any, "a", {"result": "a"}),
    (Reply, success("five", 5), {"result": 5}),
    (Annotated[Reply, "x"], success("five", 5), {"result": 5}),
    (Reply[Any], success("five", 5), {"result": 5}),
    (Reply | int, 5, {"result": 5}),
    (Point | Image, Point(1, 2), {"x": 1, "y": 2}),
    (str | Image, "words", {"result": "words"}),
]


@pytest.mark.parametrize(("annotation", "value", "expected"), UNDECLARED)
def test_an_annotation_without_a_data_type_gives_no_schema(
    annotation: Any, value: Any, expected: Any
) -> None:
    app, reply = call_tool_returning(annotation, value)

    assert reply.error is None
    assert app.tools["tool"].output_schema is None
    assert sent(app, reply)[0] == expected


def test_without_an_annotation_there_is_no_schema_and_data_is_wrapped() -> None:
    def tool():  # type: ignore[no-untyped-def]  # the subject
        return [1, 2]

    app = App("test")
    app.add_tool(tool)

    reply = asyncio.run(app.call("tool"))

    assert app.tools["tool"].output_schema is None
    assert sent(app, reply) == ({"result": [1, 2]}, ['{"result":[1,2]}'])


BLOCKS: list[tuple[Any, Any, tuple[Any, ...]]] = [
    (Text, Text("a"), (Text("a"),)),
    (Image, PIXEL, (PIXEL,)),
    (Annotated[Image, "a dot"], PIXEL, (PIXEL,)),
    (Image | Text, Text("a"), (Text("a"),)),
    (list[Image], [], (Text("Operation completed successfully"),)),
    (list[Image], [PIXEL, PIXEL], (PIXEL, PIXEL)),
    (Sequence[Image], [PIXEL], (PIXEL,)),
    (tuple[Text, ...], (), (Text("Operation completed successfully"),)),
    (tuple[Text, Image], (Text("a"), PIXEL), (Text("a"), PIXEL)),
    (list[Text | Image], [Text("a"), PIXEL], (Text("a"), PIXEL)),
    (list[str | Image], ["a", PIXEL], (Text("a"), PIXEL)),
    (list[str | Image], ["a"], (Text("a"),)),
    (Image | None, PIXEL, (PIXEL,)),
    (Point | Image, PIXEL, (PIXEL,)),
    (Any, PIXEL, (PIXEL,)),
    (Any, [Text("a"), "b"], (Text("a"), Text("b"))),
    (Reply, success("a", content=[PIXEL]), (Text("a"), PIXEL)),
    (Link, Link("file:///a", "a"), (Link("file:///a", "a"),)),
    (Embedded, Embedded("a:b", blob=b"x"), (Embedded("a:b", blob=b"x"),)),
]


@pytest.mark.parametrize(("annotation", "value", "expected"), BLOCKS)
def test_blocks_are_content_and_not_data(
    annotation: Any, value: Any, expected: tuple[Any, ...]
) -> None:
    app, reply = call_tool_returning(annotation, value)

    assert reply.error is None
    assert reply.content == expected
    assert reply.data is msgspec.UNSET
    assert app.tools["tool"].output_schema is None


def test_a_list_of_strings_is_data_unless_the_annotation_has_a_block() -> None:
    _, reply = call_tool_returning(Any, ["a", "b"])

    assert (reply.data, reply.content) == (["a", "b"], (Text('{"result":["a","b"]}'),))


def test_a_returned_string_is_its_own_text() -> None:
    app, reply = call_tool_returning(str, "žluťoučký ☀")

    assert sent(app, reply) == ({"result": "žluťoučký ☀"}, ["žluťoučký ☀"])


def test_a_list_is_one_text_block_and_not_one_for_each_item() -> None:
    app, reply = call_tool_returning(list[int], [1, 2, 3])

    assert sent(app, reply)[1] == ['{"result":[1,2,3]}']


ALIGNED: list[tuple[Any, Any, Any]] = [
    (int, 10, {"result": 10}),
    (str, "a", {"result": "a"}),
    (Point, Point(1, 2), {"result": {"x": 1, "y": 2}}),
    (tuple[int, str], (1, "a"), {"result0": 1, "result1": "a"}),
    (Annotated[tuple[int, str], "two"], (1, "a"), {"result0": 1, "result1": "a"}),
    (tuple[Point, list[int]], (Point(1, 2), []), {"result0": {"x": 1, "y": 2}, "result1": []}),
    (Reply[tuple[int, int]], success("both", (1, 2)), {"result0": 1, "result1": 2}),
    (tuple[int, ...], (1, 2), {"result": [1, 2]}),
    (Pair, Pair("a", 1), {"key": "a", "value": 1}),
    (Pair | None, Pair("a", 1), {"key": "a", "value": 1}),
    (Pair | None, None, {}),
    (Reply[Pair], success("both", Pair("a", 1)), {"key": "a", "value": 1}),
    (tuple[int], (1,), {"result": 1}),
    (tuple[int] | None, None, {}),
    (tuple[()], (), {}),
    (tuple[int, str] | None, (1, "a"), {"result0": 1, "result1": "a"}),
    (tuple[int, str] | None, None, {}),
    (None, None, {}),
    (int | None, None, {"result": None}),
]


@pytest.mark.parametrize(("annotation", "value", "expected"), ALIGNED)
def test_the_aligned_contract_wraps_objects_and_spreads_fixed_tuples(
    annotation: Any, value: Any, expected: Any
) -> None:
    app, reply = call_tool_returning(annotation, value, contract="aligned")
    schema = app.tools["tool"].output_schema

    structured, texts = sent(app, reply)

    assert structured == expected
    assert msgspec.json.decode(texts[0]) == expected
    assert schema is not None
    jsonschema.Draft202012Validator(schema).validate(structured)


@pytest.mark.parametrize("contract", ["standard", "aligned", "envelope", "apps", "direct"])
@pytest.mark.parametrize(("annotation", "value"), [(int, 5), (Point, Point(1, 2)), (None, None)])
def test_the_body_of_rest_fits_the_output_schema_in_every_contract(
    annotation: Any, value: Any, contract: str
) -> None:
    app, reply = call_tool_returning(annotation, value, contract)
    tool = app.tools["tool"]
    assert tool.output_schema is not None

    body = write(reply, "rest", tool.shape, app.contract).body

    jsonschema.Draft202012Validator(tool.output_schema).validate(msgspec.json.decode(body))


def test_a_recursive_type_s_schema_has_its_definitions_at_its_root() -> None:
    app, _ = call_tool_returning(list[Node], [])

    schema = app.tools["tool"].output_schema

    assert schema is not None
    assert set(schema) >= {"$defs", "properties"}
    assert "$defs" not in schema["properties"]["result"]


def returning(annotation: Any) -> Callable[[], Any]:
    def tool() -> Any: ...

    tool.__annotations__["return"] = annotation
    return tool


@pytest.mark.parametrize("annotation", [type, Callable[[], int], Reply[Callable[[], int]]])
def test_a_return_type_without_a_json_form_is_refused_at_registration(
    annotation: Any,
) -> None:
    with pytest.raises(TypeError, match="the return value of tool 'tool'"):
        App("test").add_tool(returning(annotation))


ALIGNED_WITHOUT_A_TYPE: list[tuple[Any, Any]] = [
    ((20, 10), {"result0": 20, "result1": 10}),
    ((1,), {"result": 1}),
    ((), {}),
    (None, {}),
    (Pair("a", 1), {"key": "a", "value": 1}),
    ({"a": 1}, {"result": {"a": 1}}),
    ([1, 2], {"result": [1, 2]}),
]


@pytest.mark.parametrize(("value", "expected"), ALIGNED_WITHOUT_A_TYPE)
def test_the_aligned_contract_wraps_a_value_without_a_type_as_its_own_type(
    value: Any, expected: Any
) -> None:
    app, reply = call_tool_returning(Any, value, contract="aligned")

    assert sent(app, reply)[0] == expected
    assert app.write(reply) == expected


def test_a_tool_without_structured_output_sends_its_text_alone() -> None:
    def point() -> Point:
        return Point(1, 2)

    app = App("test")
    app.add_tool(point, values=Values(structured=False))

    reply = asyncio.run(app.call("point"))

    assert app.write(reply, "mcp") == {
        "content": [{"type": "text", "text": '{"x":1,"y":2}'}],
        "isError": False,
    }
    assert "outputSchema" not in tool_entry(app.tools["point"], LATEST_STATEFUL)
    assert app.write(reply, "rest") == {"x": 1, "y": 2}
