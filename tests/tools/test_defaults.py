"""The default of a parameter has to be a value of its type."""

# ruff: noqa: B006, B008, RUF013 - calls and wrong values as defaults are the subject

from __future__ import annotations

import asyncio
import dataclasses
import enum
from collections.abc import Callable, Sequence
from datetime import date
from decimal import Decimal
from typing import Annotated, Any, Literal, TypedDict

import msgspec
import pydantic
import pytest

from answerback import App, connect


class Unit(enum.Enum):
    KM = "km"


class Size(enum.StrEnum):
    S = "s"


@dataclasses.dataclass
class Place:
    name: str = ""


class Options(TypedDict, total=False):
    deep: bool


class Model(pydantic.BaseModel):
    name: str = ""


# mypy is right about all of these defaults.
# mypy: disable-error-code="assignment, list-item"
def text_for_int(x: int = "a") -> None: ...
def bool_for_int(x: int = True) -> None: ...
def int_for_bool(x: bool = 1) -> None: ...
def float_for_int(x: int = 1.5) -> None: ...
def text_for_enum(x: Unit = "km") -> None: ...
def other_for_literal(x: Literal["a", "b"] = "c") -> None: ...
def item_of_a_list(x: list[int] = ["a"]) -> None: ...
def text_for_list(x: list[str] = "a") -> None: ...
def text_for_date(x: date = "2026-01-31") -> None: ...
def dict_for_record(x: Place = {}) -> None: ...
def field_of_dataclasses(x: list[int] = dataclasses.field(default_factory=list)) -> None: ...
def ellipsis(x: int = ...) -> None: ...


@pytest.mark.parametrize(
    ("fn", "problem"),
    [
        (text_for_int, "its default 'a' is not int; write x: int | str, or another default"),
        (bool_for_int, "its default True is not int; write x: int | bool, or another default"),
        (int_for_bool, "its default 1 is not bool; write x: bool | int, or another default"),
        (float_for_int, "its default 1.5 is not int; write x: int | float, or another default"),
        (text_for_enum, "its default 'km' is not Unit; write Unit.KM"),
        (
            other_for_literal,
            "its default 'c' is not Literal['a', 'b']; "
            "write x: Literal['a', 'b'] | str, or another default",
        ),
        (item_of_a_list, "its default ['a'] is not list[int]; write a default of that type"),
        (
            text_for_list,
            "its default 'a' is not list[str]; write x: list[str] | str, or another default",
        ),
        (
            text_for_date,
            "its default '2026-01-31' is not date; write x: date | str, or another default",
        ),
        (dict_for_record, "its default {} is not Place; write a default of that type"),
        (ellipsis, "its default Ellipsis is not int; write a default of that type"),
    ],
)
def test_a_default_of_another_type_is_refused_with_its_value(
    fn: Callable[..., Any], problem: str
) -> None:
    with pytest.raises(TypeError) as caught:
        App("defaults").add_tool(fn)

    assert str(caught.value) == f"parameter 'x' of tool {fn.__name__!r}: {problem}"


def test_a_field_of_dataclasses_as_a_default_is_refused() -> None:
    with pytest.raises(TypeError, match=r"its default Field\("):
        App("defaults").add_tool(field_of_dataclasses)


def plain(a: int = 1, b: float = 1, c: str = "", d: bool = False, e: None = None) -> None: ...
def wide(a: int | None = None, b: Any = None, c: object = 1, d: float = 1.5) -> None: ...
def enums(a: Unit = Unit.KM, b: Size = Size.S, c: Size = "s", d: Literal["a"] = "a") -> None: ...
def lists(a: list[int] = (), b: Sequence[str] = ("a",), c: set[int] = frozenset()) -> None: ...
def records(a: Place = Place(), b: Options = {}, c: Model = Model()) -> None: ...
def others(a: Decimal = 1, b: bytes = b"", c: int | msgspec.UnsetType = msgspec.UNSET) -> None: ...
def limited(a: int = pydantic.Field(default=0, ge=1)) -> None: ...
def urls(a: pydantic.AnyUrl = "https://a.example") -> None: ...


@pytest.mark.parametrize("fn", [plain, wide, enums, lists, records, others, limited, urls])
def test_a_default_of_the_parameter_s_type_is_accepted(fn: Callable[..., Any]) -> None:
    app = App("defaults")

    app.add_tool(fn)

    assert list(app.tools) == [fn.__name__]


Name = Annotated[str, pydantic.Field(description="A name", max_length=3)]
Trimmed = Annotated[str, pydantic.BeforeValidator(str.strip)]


def absent(
    a: str = None,
    b: list[str] = None,
    c: Model = None,
    d: int = pydantic.Field(default=None),
    e: Name = None,
    f: Trimmed = None,
    g: Literal["x"] = None,
) -> list[Any]:
    return [a, b, getattr(c, "name", None), d, e, f, g]


def test_a_parameter_with_the_default_none_may_be_null_or_left_out() -> None:
    app = App("defaults")
    app.add_tool(absent)
    sent = {"a": "a", "b": ["b"], "c": {"name": "c"}, "d": 1, "e": "e", "f": " f ", "g": "x"}

    without = asyncio.run(app.call("absent"))
    nulls = asyncio.run(app.call("absent", **dict.fromkeys("abcdefg")))
    given = asyncio.run(app.call("absent", **sent))
    too_long = asyncio.run(app.call("absent", e="long"))

    assert without.data == nulls.data == [None] * 7
    assert given.data == ["a", ["b"], "c", 1, "e", "f", "x"]
    assert too_long.error is not None
    assert too_long.error.code == "INVALID_ARGUMENTS"


def test_the_schema_of_a_parameter_with_the_default_none_allows_null() -> None:
    app = App("defaults")
    app.add_tool(absent)

    properties = app.tools["absent"].input_schema["properties"]

    assert properties["a"] == {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None}
    assert properties["e"]["description"] == "A name"


def test_parameters_of_resources_and_prompts_may_have_the_default_none() -> None:
    app = App("defaults")

    @app.resource("notes://{topic}{?author}")
    def notes(topic: str, author: str = None) -> str:
        return f"{topic} {author}"

    @app.prompt
    def review(code: str, style: str = None) -> str:
        return f"{code} {style}"

    async def run() -> list[Any]:
        async with connect(app) as server:
            note = (await server.read("notes://tea")).content[0]
            message = (await server.prompt("review", code="x")).messages[0].content
            return [note, message]

    assert [each.text for each in asyncio.run(run())] == ["tea None", "x None"]
