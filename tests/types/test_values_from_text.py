"""Turning `name=value` pairs of the command line into the JSON of arguments."""

import dataclasses
import enum
import uuid
from datetime import date
from decimal import Decimal
from typing import Any, Literal, NamedTuple

import msgspec
import pytest

from answerback.types.arguments import Arguments, Parameter
from answerback.types.problems import InvalidArguments
from answerback.types.values_from_text import from_strings


class Level(enum.IntEnum):
    LOW = 1


@dataclasses.dataclass
class Point:
    x: int


class Pair(NamedTuple):
    left: int
    right: str = ""


def _read(annotation: Any, *values: str | bytes) -> Any:
    parameters = [Parameter(name="value", annotation=annotation)]
    return from_strings(parameters, [("value", value) for value in values])["value"]


@pytest.mark.parametrize(
    ("annotation", "text", "value"),
    [
        (int, "7", 7),
        (int, "-7", -7),
        (int, "7.0", 7),
        (int, "seven", "seven"),
        (float, "1.5", 1.5),
        (bool, "yes", True),
        (bool, "OFF", False),
        (bool, "0", False),
        (bool, "maybe", "maybe"),
        (str, "7", "7"),
        (str, "null", "null"),
        (str, '{"a":1}', '{"a":1}'),
        (str, " a ", " a "),
        (int | None, "null", None),
        (int | None, "", None),
        (int | None, "none", None),
        (int | None, "3", 3),
        (str | None, "", ""),
        (int | str, "3", 3),
        (str | int, "3", "3"),
        (str | int, "three", "three"),
        (str | uuid.UUID, "abc", "abc"),
        (list[int], "1,2", [1, 2]),
        (list[int], "[1, 2]", [1, 2]),
        (list[int], "", []),
        (list[str], "a, b", ["a", "b"]),
        (list[int] | None, "1", [1]),
        (tuple[int, str], "1,a", [1, "a"]),
        (Pair, "1,a", [1, "a"]),
        (Pair, "1", [1]),
        (Pair, "[1]", [1]),
        (Pair, "1,a,b", "1,a,b"),
        (set[float], "1.5", [1.5]),
        (dict[str, int], '{"a": 1}', {"a": 1}),
        (dict[str, int], "a=1", "a=1"),
        (Point, '{"x": 1}', {"x": 1}),
        (Point | None, "null", None),
        (date, "2020-01-01", "2020-01-01"),
        (Decimal, "1.50", "1.50"),
        (Literal["a", "b"], "a", "a"),
        (Literal[1, 2], "2", 2),
        (Literal["1", 1], "1", "1"),
        (Level, "1", 1),
        (bytes, "abc", "YWJj"),
        (Any, "3", 3),
        (Any, "three", "three"),
    ],
)
def test_a_string_is_read_by_the_type_of_its_argument(
    annotation: Any, text: str, value: Any
) -> None:
    read = _read(annotation, text)

    assert read == value
    assert type(read) is type(value)


def test_a_repeated_name_makes_a_list() -> None:
    assert _read(list[int], "1", "2") == [1, 2]
    assert _read(list[str] | None, "a,b", "c") == ["a,b", "c"]
    assert _read(tuple[int, str], "1", "2") == [1, "2"]


def test_a_repeated_name_is_refused_if_the_type_is_not_a_list() -> None:
    with pytest.raises(InvalidArguments, match="given 2 times"):
        _read(int, "1", "2")


def test_a_file_that_is_not_utf8_is_refused_where_text_is_expected() -> None:
    with pytest.raises(InvalidArguments, match="not UTF-8"):
        _read(str, b"\xff\xfe")


@pytest.mark.parametrize(
    ("annotation", "content", "value"),
    [
        (bytes, b"\xff\x00", "/wA="),
        (str, "é\n".encode(), "é\n"),
        (Point, b'{"x": 1}', {"x": 1}),
        (list[int], b"[1, 2]", [1, 2]),
        (int, b"7", 7),
        (date, b"2020-01-01\r\n", "2020-01-01"),
        (date | None, b"2020-01-01\n", "2020-01-01"),
        (Literal["a", "b"], b"a\n", "a"),
        (str, b"\xef\xbb\xbfa", "a"),
        (bytes, b"\xef\xbb\xbfa", "77u/YQ=="),
        (list[str], b"\xef\xbb\xbfa\r\nb", ["a", "b"]),
        (Point, b'\xef\xbb\xbf{"x": 1}', {"x": 1}),
        (bytes | None, b"a", "YQ=="),
        (list[str], b"a\r\nb, c\n\n", ["a", "b, c"]),
        (list[str], b"", []),
        (list[str] | None, b"a\nb\n", ["a", "b"]),
        (list[int], b"1\n2", [1, 2]),
        (list[int], b"\n[1,\n2]\n", [1, 2]),
        (set[int], b"1\n2", [1, 2]),
        (tuple[int, str], b"1\na\n", [1, "a"]),
        (tuple[int, str], b"1\n", "1\n"),
        (list[Point], b'{"x": 1}\n{"x": 2}\n', [{"x": 1}, {"x": 2}]),
        (list[bytes], b"\xff\n\x00", ["/woA"]),
    ],
)
def test_the_content_of_a_file_is_read_by_type(annotation: Any, content: bytes, value: Any) -> None:
    assert _read(annotation, content) == value


def test_a_string_that_does_not_fit_its_type_is_reported_by_decoding() -> None:
    parameters = [Parameter(name="count", annotation=int)]

    given = from_strings(parameters, [("count", "many"), ("cuont", "1")])

    with pytest.raises(InvalidArguments) as caught:
        Arguments(parameters).decode(msgspec.json.encode(given))
    assert [problem.path for problem in caught.value.problems] == ["count", "cuont"]
