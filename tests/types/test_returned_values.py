"""Values that a `before` or `wrap` validator of the author returned, in pydantic's two modes."""

from __future__ import annotations

import asyncio
import enum
from collections import deque
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID

import msgspec
import pydantic
import pytest
from pydantic import AnyUrl, BaseModel, BeforeValidator, TypeAdapter, WrapValidator, create_model

from answerback import App
from answerback.types.arguments import Arguments, Parameter
from answerback.types.problems import InvalidArguments


class Color(enum.Enum):
    RED = "red"


# Each type with JSON that it accepts.
CASES: list[tuple[Any, Any]] = [
    (date, "2020-01-01"),
    (datetime, "2020-01-01T00:00:00Z"),
    (time, "10:00:00"),
    (timedelta, "P1D"),
    (Decimal, "1.5"),
    (Decimal, 1.5),
    (Fraction, "1/2"),
    (UUID, "12345678-1234-5678-1234-567812345678"),
    (bytes, "abc"),
    (set[int], [1]),
    (set[date], ["2020-01-01"]),
    (frozenset[int], [1]),
    (deque[int], [1]),
    (tuple[int, int], [1, 2]),
    (tuple[date, ...], ["2020-01-01"]),
    (Color, "red"),
    (Path, "/a"),
    (AnyUrl, "http://a.example/"),
    (dict[int, int], {"1": 1}),
    (dict[float, date], {"1.5": "2020-01-01"}),
    (dict[bool, int], {"true": 1}),
    (dict[date, int], {"2020-01-01": 1}),
    (date | None, "2020-01-01"),
    (date | int, "2020-01-01"),
    (int, 1),
    (float, 1.5),
    (bool, True),
    (str, "a"),
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


def decode(annotation: Any, value: Any, *, lenient: bool = True) -> Any:
    arguments = Arguments([Parameter(name="x", annotation=annotation)], lenient=lenient)
    return arguments.decode(msgspec.json.encode({"x": value}))["x"]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_value_below_a_function_is_accepted_as_one_that_is_not(shape: str) -> None:
    for annotation, valid in CASES:
        plain = create_model("M", day=(annotation, ...))
        checked = SHAPES[shape](annotation)

        assert decode(checked, {"day": valid}).day == decode(plain, {"day": valid}).day


@pytest.mark.parametrize("shape", SHAPES)
def test_strict_arguments_refuse_a_date_in_json_below_a_function(shape: str) -> None:
    plain = create_model("M", day=(date, ...))
    checked = SHAPES[shape](date)

    assert decode(plain, {"day": "2020-01-01"}, lenient=False).day == date(2020, 1, 1)
    with pytest.raises(InvalidArguments, match=r"x\.day: input should be a valid date"):
        decode(checked, {"day": "2020-01-01"}, lenient=False)


@pytest.mark.parametrize("made", [date(2020, 1, 1), datetime(2020, 1, 1)])
def test_an_object_that_a_function_returns_is_validated_as_pydantic_does(made: Any) -> None:
    annotation = Annotated[date, BeforeValidator(lambda value: made)]

    assert decode(annotation, "x") == TypeAdapter(annotation).validate_python("x")


def test_a_returned_dict_with_a_date_below_a_function_is_sent() -> None:
    checked = of_model_before(date)
    app = App("test")

    def today() -> Any:
        return {"day": date(2020, 1, 1)}

    today.__annotations__["return"] = checked
    app.add_tool(today)

    reply = asyncio.run(app.call("today"))

    assert app.write(reply) == {"day": "2020-01-01"}
