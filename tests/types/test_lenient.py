"""Lenient arguments: numbers, arrays and objects in strings, as language models send them."""

import dataclasses
from typing import Any, Literal

import pydantic
import pytest

from answerback.types.arguments import Arguments, Parameter
from answerback.types.problems import InvalidArguments


@dataclasses.dataclass
class Item:
    name: str
    price: float


@dataclasses.dataclass
class Cat:
    name: str


@dataclasses.dataclass
class Dog:
    name: str
    tricks: list[str] = dataclasses.field(default_factory=list)


class User(pydantic.BaseModel):
    name: str
    age: int = pydantic.Field(ge=0)


def _one(annotation: Any, text: str, *, lenient: bool = False) -> Any:
    arguments = Arguments([Parameter(name="value", annotation=annotation)], lenient=lenient)
    return arguments.decode(b'{"value":%s}' % text.encode())["value"]


@pytest.mark.parametrize(
    ("annotation", "text", "value"),
    [
        (int, '"7"', 7),
        (int, '"7.0"', 7),
        (float, '"1.5"', 1.5),
        (bool, '"true"', True),
        (int | None, '"null"', None),
        (list[int], '"[1,2]"', [1, 2]),
        (list[int], '["1","2"]', [1, 2]),
        (dict[str, int], '"{\\"a\\":\\"1\\"}"', {"a": 1}),
        (Item, '"{\\"name\\":\\"a\\",\\"price\\":\\"2\\"}"', Item("a", 2.0)),
        (list[Cat | Dog], '["{\\"name\\":\\"a\\"}"]', [Cat("a")]),
        (Literal[1, 2], '"2"', 2),
        (User, '{"name":"a","age":"3"}', User(name="a", age=3)),
        (str, '"7"', "7"),
        (str | int, '"7"', "7"),
        (str | None, '"null"', "null"),
        (list[str], '["[1]"]', ["[1]"]),
        (Any, '"7"', "7"),
    ],
)
def test_lenient_arguments_accept_values_in_strings(annotation: Any, text: str, value: Any) -> None:
    assert _one(annotation, text, lenient=True) == value


@pytest.mark.parametrize(
    ("annotation", "text"),
    [(int, '"seven"'), (int, '"1.5"'), (bool, '"maybe"'), (list[int], '"1,2"'), (int, "true")],
)
def test_lenient_arguments_refuse_strings_that_do_not_fit(annotation: Any, text: str) -> None:
    with pytest.raises(InvalidArguments):
        _one(annotation, text, lenient=True)


def test_strict_arguments_refuse_a_string_for_a_number() -> None:
    with pytest.raises(InvalidArguments):
        _one(int, '"7"')


class StrictUser(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(strict=True)
    age: int


class Mixed(pydantic.BaseModel):
    strict: int = pydantic.Field(default=0, strict=True)
    loose: int = 0


@pytest.mark.parametrize(
    ("annotation", "text"),
    [
        (pydantic.StrictInt, '"7"'),
        (pydantic.StrictInt | None, '"7"'),
        (pydantic.StrictFloat, '"7.5"'),
        (pydantic.StrictBool, '"true"'),
        (list[pydantic.StrictInt], '["7"]'),
        (StrictUser, '{"age":"7"}'),
        (Mixed, '{"strict":"7","loose":"7"}'),
        (Mixed, '"{\\"strict\\":\\"7\\"}"'),
    ],
)
def test_what_pydantic_calls_strict_refuses_strings(annotation: Any, text: str) -> None:
    with pytest.raises(InvalidArguments):
        _one(annotation, text, lenient=True)


@pytest.mark.parametrize("lenient", [True, False])
@pytest.mark.parametrize("annotation", [pydantic.StrictInt, list[pydantic.StrictInt] | int])
def test_a_whole_float_is_an_int_to_pydantic_in_both_modes(annotation: Any, lenient: bool) -> None:
    assert _one(annotation, "7.0", lenient=lenient) == 7
    with pytest.raises(InvalidArguments):
        _one(annotation, "7.5", lenient=lenient)


@pytest.mark.parametrize("lenient", [True, False])
def test_a_float_that_no_int_of_json_can_be_is_refused(lenient: bool) -> None:
    with pytest.raises(InvalidArguments):
        _one(User, '{"name":"a","age":1e300}', lenient=lenient)


def test_a_strict_field_leaves_the_other_fields_lenient() -> None:
    assert _one(Mixed, '{"strict":7,"loose":"7"}', lenient=True) == Mixed(strict=7, loose=7)
