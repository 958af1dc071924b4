"""The time to refuse hostile arguments of four megabytes, the default limit of a body."""

import asyncio
import dataclasses
import time
from datetime import date
from typing import Any, Literal

import msgspec
import pydantic
import pytest

from answerback import App, Limits
from answerback.protocol.jsonrpc import INVALID_REQUEST, PARSE_ERROR, RpcError, parse
from answerback.types.arguments import Arguments, Parameter
from answerback.types.problems import InvalidArguments, InvalidJson

SIZE = 4_000_000
MAX_CPU_SECONDS = 1.0


@dataclasses.dataclass
class Point:
    x: int
    y: int


class Model(pydantic.BaseModel):
    a: int


class Collections(pydantic.BaseModel):
    numbers: list[int] = []
    named: dict[str, int] = {}


class Closed(msgspec.Struct, forbid_unknown_fields=True):
    a: int = 0


def _arguments(annotation: Any) -> Arguments:
    arguments = Arguments([Parameter(name="x", annotation=annotation)])
    # The decoder is built at the first call, outside of the measured time.
    with pytest.raises(InvalidArguments):
        arguments.decode(b"{}")
    return arguments


def _items(item: bytes) -> bytes:
    return b"[" + (item + b",") * (SIZE // (len(item) + 1)) + item + b"]"


def _members(value: bytes, count: int = SIZE // 12) -> bytes:
    return b"{" + b",".join(b'"n%06d":%s' % (n, value) for n in range(count)) + b"}"


def count_models(x: list[Model], text: str = "") -> int:
    return len(x)


def count_numbers(x: list[int]) -> int:
    return len(x)


@pytest.mark.parametrize(
    ("annotation", "raw"),
    [
        (list[int], b'{"x":%s}' % _items(b'""')),
        (tuple[int, ...], b'{"x":%s}' % _items(b'""')),
        (list[Point], b'{"x":%s}' % _items(b"{}")),
        (list[Model], b'{"x":%s}' % _items(b"{}")),
        (list[Point | Model | date | Literal["a"]], b'{"x":%s}' % _items(b"{}")),
        (list[Point] | list[Model], b'{"x":%s}' % _items(b"{}")),
        (dict[str, int], b'{"x":%s}' % _members(b'""')),
        (Closed, b'{"x":%s}' % _members(b"1")),
        (int, _members(b"1")),
        (int, _members(b"1e999")),
    ],
    ids=lambda value: None if isinstance(value, bytes) else str(value)[:40],
)
def test_a_large_body_with_problems_everywhere_is_refused_quickly(
    annotation: Any, raw: bytes
) -> None:
    arguments = _arguments(annotation)
    began = time.process_time()

    with pytest.raises(InvalidArguments) as caught:
        arguments.decode(raw)

    assert time.process_time() - began < MAX_CPU_SECONDS
    assert len(caught.value.problems) == 50
    assert str(caught.value).endswith("\nthere are more problems than these")


@pytest.mark.parametrize(
    "raw",
    [
        b'{"x":{"numbers":[%s""]}}' % (b'"",' * 150_000),
        b'{"x":{"named":%s}}' % _members(b'""', 150_000),
    ],
    ids=["list", "dict"],
)
def test_a_pydantic_model_with_many_problems_is_refused_with_their_number(raw: bytes) -> None:
    with pytest.raises(InvalidArguments, match=r"x: 15000\d values in it do not fit") as caught:
        _arguments(Collections).decode(raw)

    assert len(caught.value.problems) == 1


def test_more_values_than_the_limit_are_refused_for_pydantics_types() -> None:
    limited = App("limited", limits=Limits(values=100))
    limited.add_tool(count_models)
    limited.add_tool(count_numbers)

    few = asyncio.run(limited.call("count_models", x=[{"a": 1}] * 49))
    many = asyncio.run(limited.call("count_models", x=[{"a": 1}] * 50))
    numbers = asyncio.run(limited.call("count_numbers", x=[1] * 1_000))

    assert (few.data, numbers.data) == (49, 1_000)
    assert many.error is not None
    assert (many.error.code, many.error.row.status) == ("TOO_LARGE", 413)


@pytest.mark.parametrize("text", ["," * 1_000, "[{" * 500, '",[{\\' * 300])
def test_marks_inside_a_string_are_no_values(text: str) -> None:
    limited = App("limited", limits=Limits(values=10))
    limited.add_tool(count_models)

    reply = asyncio.run(limited.call("count_models", x=[], text=text))

    assert reply.data == 0


def test_whole_floats_in_a_large_pydantic_model_are_accepted_for_ints() -> None:
    raw = b'{"x":{"numbers":[%s2]}}' % (b"1.0," * 10_000)

    numbers = _arguments(Collections).decode(raw)["x"].numbers

    assert numbers == [1] * 10_000 + [2]
    assert {type(number) for number in numbers} == {int}


def test_exactly_fifty_problems_are_reported_as_all() -> None:
    with pytest.raises(InvalidArguments) as caught:
        _arguments(list[int]).decode(b'{"x":[%s1]}' % (b'"",' * 50))

    assert len(caught.value.problems) == 50
    assert "more problems" not in str(caught.value)


@pytest.mark.parametrize("raw", [b'{"x":1e999,"y":01}', b'{"x":1e999,"y":Infinity}', b'{"x":1e999'])
def test_malformed_json_after_a_number_out_of_range_is_invalid_json(raw: bytes) -> None:
    with pytest.raises(InvalidJson):
        _arguments(int).decode(raw)


NESTED = b"[" * 195 + b"]" * 195


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (b'{"jsonrpc":"2.0","id":7,"method":"ping","params":[[[[[%b1]]]]]}', PARSE_ERROR),
        (b'{"jsonrpc":1,"id":7,"method":"ping","params":[%b1]}', INVALID_REQUEST),
    ],
)
def test_a_large_message_with_much_nesting_is_refused_quickly(text: bytes, code: int) -> None:
    message = text % ((NESTED + b",") * (SIZE // len(NESTED)))

    start = time.process_time()
    with pytest.raises(RpcError) as refused:
        parse(message)
    seconds = time.process_time() - start

    assert seconds < MAX_CPU_SECONDS
    assert refused.value.code == code
    assert refused.value.id == (7 if code == INVALID_REQUEST else None)
