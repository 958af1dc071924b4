"""An app with every kind of argument and return type, calls of it, and readers of its document."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from functools import cache
from typing import Annotated, Any, Literal, NamedTuple, TypedDict

import msgspec
import pydantic
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # it ships no types
from msgspec import Meta

from answerback import (
    App,
    Audio,
    Embedded,
    Image,
    Link,
    NotFound,
    Reply,
    Text,
    ToolError,
    failure,
    success,
)
from answerback.contract import Contract


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
    """An author's class with the name of a reserved component."""

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
    """The rich app and its document in all dialects, for tests that change neither."""
    app = rich(contract)
    return app, app.openapi(dialects=True)


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
    """The component that *found* refers to, or *found* itself if it is not a reference."""
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
    responses = post(whole, name)["responses"]
    return resolved(responses.get(str(status), responses["default"]), whole)


def schema_errors(schema: dict[str, Any], whole: dict[str, Any], value: Any) -> list[str]:
    validator = Draft202012Validator({**schema, "components": whole["components"]})
    return [error.message for error in validator.iter_errors(value)]


def references(node: Any) -> Iterator[str]:
    if isinstance(node, list):
        for item in node:
            yield from references(item)
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for value in node.values():
            yield from references(value)


def media_of(media_type: str, content: dict[str, Any]) -> dict[str, Any]:
    """The entry for a media type, or for its range, such as `image/*`."""
    found = content.get(media_type) or content.get(media_type.partition("/")[0] + "/*", {})
    assert isinstance(found, dict)
    return found
