"""`nan="null"`: floats that are not finite are sent as null, and the schema says so."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from decimal import Decimal
from math import inf, nan
from typing import Any, NamedTuple, TypedDict

import jsonschema  # type: ignore[import-untyped]  # it ships no types
import pydantic
import pytest

from answerback import App
from answerback.options import Values


@dataclass
class Reading:
    celsius: float
    history: list[float] = field(default_factory=list)


class Row(TypedDict):
    mean: float
    reading: Reading


class Pair(NamedTuple):
    low: float
    high: float


@dataclass
class Tree:
    weight: float
    below: list[Tree] = field(default_factory=list)


class Model(pydantic.BaseModel):
    celsius: float


class NullableModel(pydantic.BaseModel):
    celsius: float | None


class AliasedModel(pydantic.BaseModel):
    celsius: float = pydantic.Field(validation_alias="in", serialization_alias="out")


@dataclass
class ReadingOfModel:
    mean: float
    model: NullableModel


VALUES: list[tuple[Any, Any, Any]] = [
    (float, nan, {"result": None}),
    (float, 1.5, {"result": 1.5}),
    (list[float], [1.0, inf, -inf], {"result": [1.0, None, None]}),
    (dict[str, float], {"a": nan}, {"a": None}),
    (tuple[float, int], (nan, 1), {"result": [None, 1]}),
    (int | float, nan, {"result": None}),
    (Reading, Reading(nan, [nan, 1.0]), {"celsius": None, "history": [None, 1.0]}),
    (Row, {"mean": nan, "reading": Reading(1.0)}, None),
    (Pair, Pair(nan, 1.0), {"result": [None, 1.0]}),
    (Tree, Tree(nan, [Tree(inf)]), {"weight": None, "below": [{"weight": None, "below": []}]}),
    (NullableModel, NullableModel(celsius=nan), {"celsius": None}),
    (AliasedModel, AliasedModel.model_validate({"in": 1.0}), {"out": 1.0}),
    (tuple[float, Model], (nan, Model(celsius=1)), {"result": [None, {"celsius": 1.0}]}),
    (
        ReadingOfModel,
        ReadingOfModel(nan, NullableModel(celsius=inf)),
        {"mean": None, "model": {"celsius": None}},
    ),
    (Any, {"a": [nan]}, {"a": [None]}),
    (dict, {"content": [], "structuredContent": {"a": nan}}, {"a": None}),
    (dict, {"success": True, "data": {"a": [inf]}}, {"a": [None]}),
    (dict, {"a": nan}, {"a": None}),
]


def app_returning(annotation: Any, value: Any, **options: Any) -> App:
    def tool() -> Any:
        return value

    tool.__annotations__["return"] = annotation
    app = App("test", **options)
    app.add_tool(tool)
    return app


@pytest.mark.parametrize(("annotation", "value", "expected"), VALUES)
def test_a_float_that_is_not_finite_is_sent_as_null_and_fits_the_schema(
    annotation: Any, value: Any, expected: Any
) -> None:
    app = app_returning(annotation, value, values=Values(nan="null"))

    sent = app.write(asyncio.run(app.call("tool")))

    assert sent == (expected or {"mean": None, "reading": {"celsius": 1.0, "history": []}})
    schema = app.tools["tool"].output_schema
    if schema is not None:
        jsonschema.Draft202012Validator(schema).validate(sent)


def test_a_tool_may_send_null_where_its_app_refuses() -> None:
    app = App("test")

    @app.tool(values=Values(nan="null"))
    def mean() -> float:
        return nan

    reply = asyncio.run(app.call("mean"))

    assert app.write(reply) == {"result": None}


@pytest.mark.parametrize(
    ("value", "annotation"), [(nan, float), ([nan], list[float]), ({"a": inf}, Any)]
)
def test_a_float_that_is_not_finite_is_refused_by_default(value: Any, annotation: Any) -> None:
    app = app_returning(annotation, value)

    reply = asyncio.run(app.call("tool"))

    assert reply.error is not None
    assert reply.error.code == "INVALID_OUTPUT"


@pytest.mark.parametrize(
    ("value", "annotation"),
    [("words", float), (None, int), (Decimal("NaN"), Any), ({"celsius": None}, Model)],
)
def test_only_a_float_becomes_null(value: Any, annotation: Any) -> None:
    app = app_returning(annotation, value, values=Values(nan="null"))

    reply = asyncio.run(app.call("tool"))

    assert reply.error is not None
    assert reply.error.code == "INVALID_OUTPUT"


def test_the_openapi_document_has_both_forms_of_a_class() -> None:
    app = App("test")

    def move(reading: Reading) -> Reading:
        return reading

    app.add_tool(move, values=Values(nan="null"))
    schemas = app.openapi()["components"]["schemas"]

    celsius = [each["properties"]["celsius"] for each in schemas.values() if "celsius" in str(each)]

    assert {"type": "number"} in celsius
    assert any("null" in str(each) for each in celsius)
