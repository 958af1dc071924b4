"""The default of a parameter has to be a value of its type."""

# ruff: noqa: B006, B008, RUF013 - calls and wrong values as defaults are the subject

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Sequence
from datetime import date
from decimal import Decimal
from typing import Any, Literal, TypedDict

import msgspec
import pydantic
import pytest

from answerback import App


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
def none_for_int(x: int = None) -> None: ...
def none_for_list(x: list[str] = None) -> None: ...
def none_for_model(x: Model = None) -> None: ...
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
def none_in_a_field(x: int = pydantic.Field(default=None)) -> None: ...


@pytest.mark.parametrize(
    ("fn", "problem"),
    [
        (none_for_int, "its default None is not int; write x: int | None = None"),
        (none_for_list, "its default None is not list[str]; write x: list[str] | None = None"),
        (none_for_model, "its default None is not Model; write x: Model | None = None"),
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
        (none_in_a_field, "its default None is not int; write x: int | None = None"),
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
