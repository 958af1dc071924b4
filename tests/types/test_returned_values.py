"""Values that a `before` or `wrap` validator of the author returned are accepted as JSON is."""

from __future__ import annotations

import enum
from collections import deque
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from types import GenericAlias
from typing import Annotated, Any
from uuid import UUID

import msgspec
import pydantic
import pytest
from pydantic import AnyUrl, BaseModel, BeforeValidator, TypeAdapter, WrapValidator, create_model

from answerback.types.arguments import Arguments, Parameter
from answerback.types.large_models import build_large, large_validator
from answerback.types.problems import InvalidArguments

LONG = 5_100


class Color(enum.Enum):
    RED = "red"


# Each type with JSON that it accepts, and JSON that it refuses.
CASES: list[tuple[Any, Any, Any]] = [
    (date, "2020-01-01", 1),
    (date, "2020-01-01", "x"),
    (datetime, "2020-01-01T00:00:00Z", 1),
    (time, "10:00:00", 1),
    (timedelta, "P1D", 1),
    (timedelta, "P1D", ["P1D"]),
    (Decimal, "1.5", "x"),
    (Decimal, 1.5, None),
    (Fraction, "1/2", "x"),
    (UUID, "12345678-1234-5678-1234-567812345678", "x"),
    (bytes, "abc", 1),
    (set[int], [1], ["1"]),
    (set[date], ["2020-01-01"], {"2020-01-01": 1}),
    (frozenset[int], [1], "1"),
    (deque[int], [1], "1"),
    (tuple[int, int], [1, 2], [1]),
    (tuple[date, ...], ["2020-01-01"], [1]),
    (Color, "red", "blue"),
    (Path, "/a", 1),
    (AnyUrl, "http://a.example/", "a"),
    (dict[int, int], {"1": 1}, {"x": 1}),
    (dict[float, date], {"1.5": "2020-01-01"}, {"1.5": 1}),
    (dict[bool, int], {"true": 1}, {"true": "1"}),
    (dict[date, int], {"2020-01-01": 1}, {"x": 1}),
    (date | None, "2020-01-01", 1),
    (date | int, "2020-01-01", "x"),
    (list[date | str], ["2020-01-01", "x"], [1]),
    # These have a form in JSON, so nothing else is accepted for them.
    (int, 1, True),
    (float, 1.5, True),
    (bool, True, 1),
    (str, "a", 1),
    (int, 1, "1"),
]


def same(value: Any) -> Any:
    return value


def of_model_before(annotation: Any) -> Any:
    class M(BaseModel):
        day: annotation

        @pydantic.model_validator(mode="before")
        @classmethod
        def _check(cls, value: Any) -> Any:
            return value

    return M


def of_model_wrap(annotation: Any) -> Any:
    class M(BaseModel):
        day: annotation

        @pydantic.model_validator(mode="wrap")
        @classmethod
        def _check(cls, value: Any, validate: Any) -> Any:
            return validate(value)

    return M


def deferred(annotation: Any) -> Any:
    class M(BaseModel):
        model_config = pydantic.ConfigDict(defer_build=True)

        day: annotation

        @pydantic.model_validator(mode="before")
        @classmethod
        def _check(cls, value: Any) -> Any:
            return value

    return M


def of_field(annotation: Any) -> Any:
    class M(BaseModel):
        day: annotation

        @pydantic.field_validator("day", mode="before")
        @classmethod
        def _check(cls, value: Any) -> Any:
            return value

    return M


def of_type(annotation: Any) -> Any:
    return create_model("M", day=(Annotated[annotation, BeforeValidator(same)], ...))


def wrapped(annotation: Any) -> Any:
    wrap = WrapValidator(lambda value, validate: validate(value))
    return create_model("M", day=(Annotated[annotation, wrap], ...))


def of_outer_model(annotation: Any) -> Any:
    """Return a model in which the value is in a recursive model below a function."""

    class M(BaseModel):
        day: annotation
        other: M | None = None

        @pydantic.model_validator(mode="before")
        @classmethod
        def _check(cls, value: Any) -> Any:
            return value

    return M


SHAPES = {
    "model-before": of_model_before,
    "model-wrap": of_model_wrap,
    "field-before": of_field,
    "type-before": of_type,
    "type-wrap": wrapped,
    "deferred": deferred,
    "recursive": of_outer_model,
}


def decode(annotation: Any, value: Any) -> Any:
    arguments = Arguments([Parameter(name="x", annotation=annotation)], lenient=False)
    return arguments.decode(msgspec.json.encode({"x": value}))["x"]


def problems_of(annotation: Any, value: Any) -> list[tuple[str, str]]:
    with pytest.raises(InvalidArguments) as caught:
        decode(annotation, value)
    return [(each.path, each.message) for each in caught.value.problems]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_value_below_a_function_is_accepted_and_refused_as_one_that_is_not(shape: str) -> None:
    for annotation, valid, invalid in CASES:
        plain = create_model("M", day=(annotation, ...))
        checked = SHAPES[shape](annotation)

        assert decode(checked, {"day": valid}).day == decode(plain, {"day": valid}).day
        expected = problems_of(plain, {"day": invalid})
        assert problems_of(checked, {"day": invalid}) == expected, annotation


@pytest.mark.parametrize("shape", SHAPES)
def test_the_validator_of_large_values_accepts_and_refuses_the_same(shape: str) -> None:
    for annotation, valid, invalid in CASES:
        checked = SHAPES[shape](annotation)
        large = large_validator(checked)

        assert build_large(large, {"day": valid}) == decode(checked, {"day": valid})
        with pytest.raises(pydantic.ValidationError) as caught:
            build_large(large, {"day": invalid})
        texts = [text for _, text in problems_of(checked, {"day": invalid})]
        assert [each["msg"].lower() for each in caught.value.errors()] == list(
            map(str.lower, texts)
        ), annotation


@pytest.mark.parametrize("shape", ["model-before", "type-wrap"])
def test_dates_below_a_function_are_accepted_and_refused_in_a_large_body(shape: str) -> None:
    models = GenericAlias(list, (SHAPES[shape](date),))
    items: list[Any] = [{"day": "2020-01-01"}] * LONG

    assert decode(models, items)[-1].day == date(2020, 1, 1)
    assert problems_of(models, [*items, {"day": 1}]) == [
        (f"x[{LONG}].day", "input should be a valid date")
    ]


@pytest.mark.parametrize("made", [date(2020, 1, 1), datetime(2020, 1, 1)])
def test_an_object_that_a_function_returns_is_validated_as_pydantic_does(made: Any) -> None:
    annotation = Annotated[date, BeforeValidator(lambda value: made)]

    assert decode(annotation, "x") == TypeAdapter(annotation).validate_python("x")
    assert decode(list[annotation], ["x"] * LONG)[-1] == date(2020, 1, 1)
