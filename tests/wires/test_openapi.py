"""The OpenAPI document: valid, true to what is sent, and no larger than it needs to be."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypedDict

import httpx
import msgspec
import pydantic
import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # it ships no types
from msgspec import Meta
from openapi_spec_validator import OpenAPIV31SpecValidator

from answerback import (
    App,
    Audio,
    Conflict,
    Embedded,
    Image,
    Link,
    NotFound,
    RateLimited,
    Reply,
    Text,
    ToolError,
    failure,
    success,
)
from answerback.contract import PRESETS, Contract
from answerback.dialects import write
from answerback.dialects.accept import MEDIA_TYPES
from answerback.wires.http.openapi import document, document_json
from answerback.wires.http.pages import function_list

CONTRACTS = list(PRESETS)
REST = [name for name, preset in PRESETS.items() if preset.http == "rest"]
SEED_001_ERROR = {
    "type": "object",
    "properties": {"error": {"type": "string"}},
    "required": ["error"],
}


class Colour(Enum):
    RED = "rot"
    GREEN = "grün"


@dataclasses.dataclass
class Point:
    """Where something is."""

    x: float
    y: float = 0.0


OtherPoint = dataclasses.make_dataclass("Point", [("north", float), ("east", float)])
OtherPoint.__module__ = "somewhere.else_"


class Tree(msgspec.Struct):
    name: str
    children: list[Tree] = []


class Größe(TypedDict):
    höhe: Annotated[int, Meta(ge=0, description="in Metern – ungefähr")]


class Problem(TypedDict):
    what: str


class AnswerbackProblem(TypedDict):
    """Somebody may well call a class of theirs so."""

    which: int


class Pair(NamedTuple):
    left: int
    right: str


class Address(pydantic.BaseModel):
    street: str
    city: str = "Oslo"


class Person(pydantic.BaseModel):
    name: str
    home: Address
    others: list[Address] = []


class Basket(pydantic.BaseModel):
    price: Decimal


class Order(pydantic.BaseModel):
    basket: Basket


class CityUnknown(NotFound):
    """An error of the author's own."""


class Uncountable(ToolError):
    kind = "CONFLICT"


def rich(contract: str | Contract = "standard") -> App:
    """An app with every kind of argument and return in it."""
    app = App("Größen & more", version="3.0", description="Everything — 全部", contract=contract)
    for function in (
        move, other_point, grow, measure, problem, our_problem, paint, pair, greet, nothing,
        two, picture, sound, pictures, blocks, anything, reply, untyped, either, dated,
    ):  # fmt: skip
        app.add_tool(function)
    app.add_tool(
        find,
        title="Find a city",
        examples=[{"city": "Tromsø"}, {"city": "東京", "on": date(2026, 1, 1)}],
    )
    return app


@cache
def described(contract: str) -> tuple[App, dict[str, Any]]:
    """The rich app and its document, for tests that change neither."""
    app = rich(contract)
    return app, document(app)


def move(point: Point, by: Point | None = None) -> Point:
    """Move a point."""
    return Point(point.x + (by or point).x, point.y)


def other_point(point: OtherPoint) -> list[OtherPoint]:  # type: ignore[valid-type]
    return [point]


def grow(tree: Tree, colours: tuple[Colour, ...] = (Colour.RED,)) -> Tree:
    """Grow a tree.

    Args:
        tree: What grows — ein Baum.
        colours: Its leaves'.
    """
    return Tree("root", [tree])


def measure(size: Größe) -> dict[str, Größe]:
    return {"größe": size}


def problem(problem: Problem) -> Problem:
    return problem


def our_problem(problem: AnswerbackProblem) -> AnswerbackProblem:
    return problem


def paint(colour: Colour, style: Literal["matt", 3] = "matt") -> Colour:
    return colour


def pair(pair: Pair) -> Pair:
    return pair


def greet(person: Person) -> Person:
    return person


def nothing() -> None:
    """Give nothing back."""


def two(x: int = 7) -> tuple[int, str]:
    return x, "zwei"


def picture() -> Image:
    return Image(b"GIF89a", "image/gif")


def sound() -> Audio:
    return Audio(b"RIFF", "audio/wav", alt="a bell")


def pictures(count: int = 2) -> list[Image]:
    there = Image(url="https://example.com/a.png", alt="an a", width=3, height=4, caption="a")
    return [Image(b"GIF89a", "image/gif"), there][:count]


def blocks() -> list[Text | Link | Embedded | Image]:
    return [
        Text("some"),
        Link("https://example.com/a", "a", kind="file", title="A", metadata={"n": 1}),
        Embedded("file:///a.txt", text="notes", mime="text/plain"),
        Embedded("file:///a.bin", blob=b"\0\1"),
        Image(b"GIF89a", "image/gif", caption="a", width=1),
    ]


def anything(what: Literal["data", "text", "image"] = "data") -> Any:
    values = {"data": {"a": [1]}, "text": Text("words"), "image": Image(b"GIF89a", "image/gif")}
    return values[what]


def reply(fail: bool = False) -> Reply[Point]:
    if fail:
        return failure("it is too late", code="CONFLICT", details={"now": 1}, hint="be early")
    return success("A point.", Point(1, 2), meta={"cost": 3})


def untyped():  # type: ignore[no-untyped-def]
    return 1


def either(value: int | str | Point | list[bool] | None) -> int | str | Point | list[bool] | None:
    return value


def dated(on: date = date(2026, 1, 1), at: datetime | None = None, raw: bytes = b"\xff") -> date:
    return on


def find(city: Annotated[str, Meta(min_length=1)], on: date | None = None) -> str:
    """Find a city.

    It may be anywhere.

    Raises:
        CityUnknown: If there is no such city.
    """
    if city != "Oslo":
        raise CityUnknown(f"no city {city!r}", code="CITY_UNKNOWN", details={"city": city})
    return city


CALLS: list[tuple[str, dict[str, Any]]] = [
    ("move", {"point": {"x": 1}}),
    ("move", {"point": {"x": "one"}, "by": 3}),
    ("other_point", {"point": {"north": 1, "east": 2}}),
    ("grow", {"tree": {"name": "oak", "children": [{"name": "leaf"}]}}),
    ("measure", {"size": {"höhe": 3}}),
    ("problem", {"problem": {"what": "this"}}),
    ("our_problem", {"problem": {"which": 1}}),
    ("paint", {"colour": "grün", "style": 3}),
    ("pair", {"pair": [1, "a"]}),
    ("greet", {"person": {"name": "Ada", "home": {"street": "a"}}}),
    ("greet", {"person": {}}),
    ("nothing", {}),
    ("nothing", {"extra": 1}),
    ("two", {}),
    ("picture", {}),
    ("sound", {}),
    ("pictures", {"count": 1}),
    ("pictures", {}),
    ("pictures", {"count": 0}),
    ("blocks", {}),
    ("anything", {}),
    ("anything", {"what": "text"}),
    ("anything", {"what": "image"}),
    ("reply", {}),
    ("reply", {"fail": True}),
    ("untyped", {}),
    ("either", {"value": [True]}),
    ("either", {"value": {"x": 1}}),
    ("either", {"value": None}),
    ("dated", {}),
    ("find", {"city": "Oslo"}),
    ("find", {"city": "Atlantis"}),
    ("find", {"city": ""}),
]


def resolved(found: dict[str, Any], whole: dict[str, Any]) -> dict[str, Any]:
    """What a reference to a component refers to, or the thing itself."""
    if "$ref" not in found:
        return found
    node: Any = whole
    for step in found["$ref"].removeprefix("#/").split("/"):
        node = node[step]
    assert isinstance(node, dict)
    return node


def post(whole: dict[str, Any], name: str) -> dict[str, Any]:
    """The operation of the tool of that name."""
    operations = (path["post"] for path in whole["paths"].values() if "post" in path)
    found = next(each for each in operations if each["operationId"] == f"functions.{name}")
    assert isinstance(found, dict)
    return found


def response(whole: dict[str, Any], name: str, status: int) -> dict[str, Any]:
    return resolved(post(whole, name)["responses"][str(status)], whole)


def schema_errors(schema: dict[str, Any], whole: dict[str, Any], value: Any) -> list[str]:
    validator = Draft202012Validator({**schema, "components": whole["components"]})
    return [error.message for error in validator.iter_errors(value)]


def refs(node: Any) -> Iterator[str]:
    if isinstance(node, list):
        for item in node:
            yield from refs(item)
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for value in node.values():
            yield from refs(value)


def media_of(media_type: str, content: dict[str, Any]) -> dict[str, Any]:
    """The entry for a media type, a range such as `image/*` included."""
    found = content.get(media_type) or content.get(media_type.partition("/")[0] + "/*", {})
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("contract", CONTRACTS)
def test_the_document_of_every_contract_is_valid_openapi(contract: str) -> None:
    found = document(rich(contract))

    assert found["openapi"].startswith("3.1.")
    assert [error.message for error in OpenAPIV31SpecValidator(found).iter_errors()] == []


def test_an_app_without_tools_has_a_valid_document() -> None:
    found = document(App("empty"))

    assert [error.message for error in OpenAPIV31SpecValidator(found).iter_errors()] == []
    assert list(found["paths"]) == ["/functions", "/openapi.json", "/healthz"]


@pytest.mark.parametrize("contract", CONTRACTS)
@pytest.mark.parametrize(("name", "arguments"), CALLS)
def test_what_is_sent_is_as_the_document_says(
    contract: str, name: str, arguments: dict[str, Any]
) -> None:
    """In every dialect, success and failure alike."""
    app, whole = described(contract)
    tool = app.tools[name]
    reply = asyncio.run(app.call(name, **arguments))
    own = {"application/json": app.contract.http}

    for media_type, dialect in {**own, **MEDIA_TYPES}.items():
        if (dialect == "problem" and reply.ok) or (
            dialect == app.contract.http and media_type in MEDIA_TYPES
        ):
            continue
        written = write(reply, dialect, tool.shape, app.contract)
        told = response(whole, name, written.status)
        if written.media_type.startswith(("image", "audio")):
            assert media_of(written.media_type, told["content"]) == {}
            assert f"{written.media_type.partition('/')[0]}/*" in told["content"]
        else:
            schema = told["content"][media_type]["schema"]
            assert schema_errors(schema, whole, json.loads(written.body)) == []
        assert {header for header, _ in written.headers} <= {
            *told.get("headers", {}),
            "X-Content-Type-Options",
        }


@pytest.mark.parametrize("contract", CONTRACTS)
@pytest.mark.parametrize("code", ["TOO_LARGE", "UNSUPPORTED_MEDIA_TYPE", "INVALID_JSON"])
def test_what_a_wire_refuses_is_as_the_document_says(contract: str, code: str) -> None:
    app, whole = described(contract)
    refused = failure("no", code=code, hint="try otherwise")

    written = write(refused, app.contract.http, app.tools["nothing"].shape, app.contract)

    told = response(whole, "nothing", written.status)
    schema = told["content"]["application/json"]["schema"]
    assert schema_errors(schema, whole, json.loads(written.body)) == []


def test_a_contract_that_speaks_problem_says_so_for_errors_only() -> None:
    whole = document(rich(PRESETS["standard"].derive(name="own", http="problem")))

    assert [error.message for error in OpenAPIV31SpecValidator(whole).iter_errors()] == []
    assert "application/json" in response(whole, "find", 200)["content"]
    assert "application/problem+json" not in response(whole, "find", 200)["content"]
    assert "application/json" not in response(whole, "find", 404)["content"]
    assert "application/problem+json" in response(whole, "find", 404)["content"]


@pytest.mark.parametrize("contract", CONTRACTS)
def test_a_wrong_body_is_not_as_the_document_says(contract: str) -> None:
    """So that the tests above say something: the schemas are not all-embracing."""
    _, whole = described(contract)

    for media_type, media in response(whole, "move", 200)["content"].items():
        assert schema_errors(media["schema"], whole, {"x": "one"}), media_type
        assert schema_errors(media["schema"], whole, {"error": "no"}), media_type
    for media_type, media in response(whole, "move", 400)["content"].items():
        assert schema_errors(media["schema"], whole, {"x": 1, "y": 2}), media_type


@pytest.mark.parametrize("contract", REST)
def test_seed_001_scenario_5_every_operation_has_400_and_500_with_the_error_schema(
    contract: str,
) -> None:
    """The seed reads the schema where the operation is, without following references."""
    paths = document(rich(contract))["paths"]
    operations = [path["post"] for path in paths.values() if "post" in path]

    assert operations
    for operation in operations:
        for status, description in (("400", "Invalid request"), ("500", "Internal server error")):
            told = operation["responses"][status]
            assert told["description"] == description
            assert told["content"]["application/json"]["schema"] == SEED_001_ERROR
        assert operation["responses"]["200"]["description"] == "Successful execution"


def test_seed_001_results_have_the_seeds_structure() -> None:
    whole = document(rich("aligned"))

    def properties(name: str) -> list[str]:
        schema = response(whole, name, 200)["content"]["application/json"]["schema"]
        return list(schema.get("properties", {}))

    assert properties("paint") == ["result"]
    assert properties("move") == ["result"]
    assert properties("two") == ["result0", "result1"]
    assert properties("nothing") == []


@pytest.mark.parametrize("contract", CONTRACTS)
def test_every_component_is_used_and_every_reference_leads_somewhere(contract: str) -> None:
    _, whole = described(contract)
    there = {
        f"#/components/{kind}/{name}"
        for kind, components in whole["components"].items()
        for name in components
    }

    assert set(refs(whole)) == there


def test_components_are_named_for_their_classes_and_with_the_module_where_two_share_a_name() -> (
    None
):
    names = document(rich())["components"]["schemas"].keys()

    assert {"Tree", "Problem", "somewhere.else_.Point"} <= names
    assert "Point" not in names
    assert len([name for name in names if name.endswith("Point")]) == 2


def test_a_class_named_like_a_component_of_ours_keeps_apart_from_it() -> None:
    _, whole = described("standard")

    theirs = response(whole, "our_problem", 200)["content"]["application/json"]["schema"]
    ours = response(whole, "our_problem", 400)["content"]["application/problem+json"]["schema"]

    assert "which" in resolved(theirs, whole)["properties"]
    assert "detail" in resolved(ours, whole)["properties"]


def test_a_class_used_by_several_tools_is_written_once() -> None:
    app = App("shared")

    @app.tool
    def swap(point: Point) -> Point:
        return point

    @app.tool
    def collect(points: list[Point]) -> dict[str, Point]:
        return {str(point.x): point for point in points}

    text = document_json(app).decode()

    assert text.count("Where something is.") == 1


def test_a_model_that_is_read_and_sent_in_two_forms_is_two_components() -> None:
    """Pydantic takes a decimal as a number or a string, and sends it as a string."""
    app = App("forms")

    @app.tool
    def echo(order: Order) -> Order:
        return order

    whole = document(app)
    taken = post(whole, "echo")["requestBody"]["content"]["application/json"]["schema"]
    given = response(whole, "echo", 200)["content"]["application/json"]["schema"]
    order = {"basket": {"price": 1.5}}

    assert schema_errors(taken, whole, {"order": order}) == []
    assert schema_errors(given, whole, order) != []
    assert {"Basket", "BasketOutput"} <= whole["components"]["schemas"].keys()


def test_the_order_of_tools_does_not_change_the_names() -> None:
    app = App("Größen & more")
    for tool in reversed(rich().tools.values()):
        app.add_tool(tool.fn)

    assert document(app)["components"]["schemas"] == document(rich())["components"]["schemas"]


def test_a_body_is_required_only_where_an_argument_is() -> None:
    _, whole = described("standard")

    required = {name: post(whole, name)["requestBody"]["required"] for name in rich().tools}

    assert required["move"]
    assert not required["nothing"]
    assert not required["two"]


def test_arguments_have_their_descriptions_and_defaults_and_no_others() -> None:
    _, whole = described("standard")

    body = post(whole, "grow")["requestBody"]["content"]["application/json"]["schema"]
    dates = post(whole, "dated")["requestBody"]["content"]["application/json"]["schema"]

    assert body["additionalProperties"] is False
    assert body["required"] == ["tree"]
    assert body["properties"]["tree"]["description"] == "What grows — ein Baum."
    assert body["properties"]["colours"]["default"] == ["rot"]
    assert dates["properties"]["on"]["default"] == "2026-01-01"
    assert dates["properties"]["raw"]["default"] == "/w=="


def test_arguments_agree_with_those_that_mcp_lists() -> None:
    app = rich()
    whole = document(app)

    for name, arguments in CALLS:
        body = post(whole, name)["requestBody"]["content"]["application/json"]["schema"]
        listed = list(Draft202012Validator(app.tools[name].input_schema).iter_errors(arguments))
        assert bool(schema_errors(body, whole, arguments)) == bool(listed), name


def test_examples_of_a_tool_are_in_its_request() -> None:
    _, whole = described("standard")

    media = post(whole, "find")["requestBody"]["content"]["application/json"]

    values = [example["value"] for example in media["examples"].values()]
    assert values == [{"city": "Tromsø"}, {"city": "東京", "on": "2026-01-01"}]
    assert [schema_errors(media["schema"], whole, value) for value in values] == [[], []]


def test_an_example_that_is_not_json_is_named() -> None:
    app = App("examples")
    app.add_tool(nothing, examples=[{"handle": object()}])

    with pytest.raises(ValueError, match="an example of tool 'nothing' is not JSON"):
        document(app)


def test_a_title_or_the_first_line_of_the_docstring_is_the_summary() -> None:
    _, whole = described("standard")

    assert post(whole, "find")["summary"] == "Find a city"
    assert post(whole, "find")["description"] == "Find a city.\n\nIt may be anywhere."
    assert post(whole, "move")["summary"] == "Move a point."
    assert "summary" not in post(whole, "measure")


def test_operation_ids_are_those_of_seed_001_and_differ() -> None:
    paths = document(rich())["paths"]

    ids = [operation["operationId"] for path in paths.values() for operation in path.values()]

    assert "functions.move" in ids
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("contract", CONTRACTS)
def test_tools_stand_where_the_contract_routes_them(contract: str) -> None:
    route = PRESETS[contract].route

    assert f"{route}move" in document(rich(contract))["paths"]


def _look_up(city: str) -> str:
    if city == "Atlantis":
        raise CityUnknown("it sank")
    return city


def raising(city: str) -> str:
    """Fail in ways of its own.

    Raises:
        answerback.RateLimited: If it is asked too often.
        RateLimited: Or too loudly.
        ValueError: Never seen by a caller.
    """
    if not city:
        raise Uncountable("no")
    return _look_up(city)


def returning() -> Reply[int]:
    return failure("later", code="UNAVAILABLE")


def harmless() -> str:
    return "CONFLICT"


def test_statuses_are_found_where_the_author_names_an_error() -> None:
    app = App("raising")
    app.add_tool(raising)
    app.add_tool(returning)
    app.add_tool(harmless, raises=[Conflict, CityUnknown, RateLimited, ToolError])
    app.add_tool(harmless, name="unharmed")
    whole = document(app)
    always = {"200", "400", "413", "415", "500"}

    def more(name: str) -> set[str]:
        return set(post(whole, name)["responses"]) - always

    assert more("raising") == {"404", "409", "429"}
    assert more("returning") == {"503"}
    assert more("harmless") == {"404", "409", "429"}
    assert more("unharmed") == set()
    assert all(always <= post(whole, name)["responses"].keys() for name in app.tools)


def test_what_the_docstring_says_of_an_error_describes_its_status() -> None:
    app = App("raising")
    app.add_tool(raising)
    whole = document(app)

    assert response(whole, "raising", 429)["description"] == (
        "If it is asked too often.; Or too loudly."
    )
    assert response(whole, "raising", 404)["description"] == "Not found"


def test_errors_say_their_code_in_a_header() -> None:
    _, whole = described("standard")

    for path in whole["paths"].values():
        for status, told in path.get("post", {"responses": {}})["responses"].items():
            headers = resolved(told, whole).get("headers", {})
            assert ("X-Error-Code" in headers) == (status != "200")


@pytest.mark.parametrize("contract", CONTRACTS)
def test_the_other_pages_are_as_the_document_says(contract: str) -> None:
    app, whole = described(contract)

    async def get(path: str) -> httpx.Response:
        transport = httpx.ASGITransport(app.asgi())
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.get(path)

    for path in ("/functions", "/openapi.json", "/healthz"):
        answer = asyncio.run(get(path))
        told = whole["paths"][path]["get"]["responses"][str(answer.status_code)]["content"]
        schema = told[answer.headers["content-type"]]["schema"]
        assert schema_errors(schema, whole, answer.json()) == []
    assert asyncio.run(get("/openapi.json")).content == document_json(app)
    assert asyncio.run(get("/functions")).json() == json.loads(function_list(app))


def test_the_document_is_made_once_until_a_tool_is_added() -> None:
    app = rich()
    first = document_json(app)

    assert document_json(app) is first
    app.add_tool(nothing, name="another")
    assert b"functions.another" in document_json(app)


def test_a_mounted_app_says_where_it_is() -> None:
    app = rich()

    assert document(app, "/tools")["servers"] == [{"url": "/tools"}]
    assert "servers" not in document(app)


def test_changing_a_document_changes_no_other() -> None:
    app = rich()
    document(app)["paths"].clear()

    assert document(app)["paths"]


def test_the_document_is_compact_json() -> None:
    app = rich()

    compact = json.dumps(document(app), ensure_ascii=False, separators=(",", ":"))

    assert document_json(app).decode() == compact


@pytest.mark.parametrize("heavy", ["starlette", "uvicorn", "asyncio", "pydantic", "http.client"])
def test_printing_the_document_loads_nothing_heavy(heavy: str) -> None:
    """CGI and the command line print it too, and start for every request."""
    example = Path(__file__).parents[2] / "examples" / "aligned.py"
    probe = f"""
import runpy, sys
from answerback.wires.http.openapi import document_json
document_json(runpy.run_path({str(example)!r})["app"])
sys.exit({heavy!r} in sys.modules)
"""

    assert subprocess.run([sys.executable, "-c", probe], check=False).returncode == 0
