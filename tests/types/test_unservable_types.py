"""Types that are refused at registration, and types whose values are JSON objects."""

import collections
import dataclasses
import enum
import io
import threading
import typing
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from typing import IO, Annotated, Any, NamedTuple, TypedDict, TypeVar

import annotated_types
import attrs
import msgspec
import pydantic
import pytest

from answerback.types.annotation_reader import check_type, is_object
from answerback.types.problems import UnservableType

T = TypeVar("T")


@dataclasses.dataclass
class Point:
    x: int


@dataclasses.dataclass
class Bad:
    callback: Callable[[], int]


@dataclasses.dataclass
class Later:
    other: "Undefined"  # type: ignore[name-defined]  # noqa: F821 - the test needs an undefined name


@dataclasses.dataclass
class Initial:
    size: dataclasses.InitVar[int]


class Movie(TypedDict):
    title: str


class Pair(NamedTuple):
    left: int


@attrs.define
class Account:
    number: int


class Struct(msgspec.Struct):
    x: int


class Row(msgspec.Struct, array_like=True):
    x: int


class User(pydantic.BaseModel):
    name: str


class Names(pydantic.RootModel[list[str]]):
    pass


class Users(pydantic.RootModel[dict[str, User]]):
    pass


class Bits(enum.Flag):
    ONE = 1


class Text(str):
    pass


def _is_servable(annotation: Any) -> bool:
    try:
        check_type(annotation, "x")
    except UnservableType:
        return False
    return True


@pytest.mark.parametrize(
    ("annotation", "instead"),
    [
        (Callable[[int], int], "str"),
        (type[int], "str"),
        (complex, "tuple[float, float]"),
        (Iterator[int], "list"),
        (Iterable[int], "list"),
        (AsyncIterator[int], "list"),
        (typing.Generator[int, None, None], "list"),
        (IO[bytes], "bytes"),
        (io.StringIO, "bytes or str"),
        (threading.Event, "register_type"),
        (dict[tuple[int, int], str], "dict[str, ...]"),
        (dict[float, str], "dict[str, ...]"),
        (collections.deque[int], "list"),
        (set[list[int]], "list"),
        (T, "the type itself"),
        (list[T], "the type itself"),  # type: ignore[valid-type]
        (Text, "str"),
        (list[object | complex], "tuple"),
        (Annotated[str, annotated_types.Ge(1)], "remove"),
        (Annotated[Point, annotated_types.MinLen(1)], "remove"),
        (Annotated[list[int], annotated_types.Predicate(bool)], "remove"),
        (Initial, "InitVar"),
        (Bits, "list"),
    ],
)
def test_a_type_that_cannot_be_served_is_refused_with_a_suggestion(
    annotation: Any, instead: str
) -> None:
    with pytest.raises(UnservableType, match=r"^add\(x\)") as caught:
        check_type(annotation, "add(x)")

    assert instead in str(caught.value)


def test_the_field_that_cannot_be_served_is_named() -> None:
    with pytest.raises(UnservableType, match=r"^x\[\]\.callback: "):
        check_type(list[Bad], "x")


def test_a_type_with_an_undefined_name_passes_at_registration() -> None:
    assert _is_servable(Later)


@pytest.mark.parametrize(
    "annotation",
    [int, None, Any, object, list, tuple, Point, Users, Point | None, dict[int, list[set[str]]]],
)
def test_a_type_that_can_be_served_passes(annotation: Any) -> None:
    assert _is_servable(annotation)


@pytest.mark.parametrize(
    "annotation",
    [
        Point,
        Movie,
        Account,
        Struct,
        User,
        Users,
        dict,
        dict[str, int],
        Mapping[str, int],
        Point | Movie,
        Point | User,
        Annotated[Point, "a place"],
    ],
)
def test_a_type_whose_values_are_all_json_objects_is_an_object_type(annotation: Any) -> None:
    assert is_object(annotation)


@pytest.mark.parametrize(
    "annotation",
    [int, list[Point], Pair, Row, Names, Point | None, Point | int, Any, None, tuple[Point, Point]],
)
def test_a_type_with_other_json_values_is_not_an_object_type(annotation: Any) -> None:
    assert not is_object(annotation)
