"""`read(result, into=Type)` returns typed data, or says which part does not fit."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any, TypedDict

import msgspec
import pytest
from pydantic import BaseModel

from answerback import read
from answerback.errors import MalformedReply


class StructWeather(msgspec.Struct):
    city: str
    temperature: float
    day: date


@dataclass
class DataclassWeather:
    city: str
    temperature: float
    day: date


class PydanticWeather(BaseModel):
    city: str
    temperature: float
    day: date


class TypedWeather(TypedDict):
    city: str
    temperature: float
    day: date


OSLO = {"city": "Oslo", "temperature": 5, "day": "2026-01-31", "station": "Blindern"}
TYPES = [StructWeather, DataclassWeather, PydanticWeather, TypedWeather]


def result(data: Any, **members: Any) -> dict[str, Any]:
    return {"content": [], "structuredContent": data, **members}


@pytest.mark.parametrize("into", TYPES)
def test_data_is_built_of_every_kind_of_class(into: Any) -> None:
    reply = read(result(OSLO), into=into)

    assert reply.ok
    assert reply.data == into(city="Oslo", temperature=5.0, day=date(2026, 1, 31))
    assert reply.raw["structuredContent"]["station"] == "Blindern"
    assert reply.to("mcp")["structuredContent"] == OSLO


@pytest.mark.parametrize("into", TYPES)
def test_data_that_does_not_fit_is_a_failure_with_the_path(into: Any) -> None:
    days: Any = list[into]

    reply = read(result({"result": [OSLO, {**OSLO, "temperature": "mild"}]}), into=days)

    assert reply.error is not None
    assert reply.error.code == "INVALID_OUTPUT"
    assert not reply.has_data
    assert reply.raw["structuredContent"]["result"][1]["temperature"] == "mild"


def test_every_problem_is_named_with_its_path() -> None:
    reply = read(result({"city": 1, "temperature": "mild"}), into=StructWeather)

    assert reply.error is not None
    paths = [problem["path"] for problem in reply.error.details["problems"]]
    assert paths == ["data.city", "data.temperature", "data.day"]
    assert "data.temperature: expected float, got str 'mild'" in reply.error.message


@pytest.mark.parametrize(
    ("into", "data"),
    [(int, 5), (list[int], [1, 2]), (list[StructWeather], []), (int | None, None)],
)
def test_a_wrapped_value_is_unwrapped_where_the_type_says_so(into: Any, data: Any) -> None:
    reply = read(result({"result": data}), into=into)

    assert reply.data == data
    assert reply.to("mcp")["structuredContent"] == {"result": data}


def test_an_object_with_the_member_result_stays_whole_where_the_type_has_it() -> None:
    class Found(msgspec.Struct):
        result: int

    assert read(result({"result": 5}), into=Found).data == Found(5)


def test_typed_data_is_read_from_text_too() -> None:
    text = msgspec.json.encode(OSLO).decode()

    reply = read({"content": [{"type": "text", "text": text}]}, into=StructWeather)

    assert isinstance(reply.data, StructWeather)
    assert reply.data.city == "Oslo"
    assert reply.data_from == "text"


def test_a_text_is_the_data_where_a_str_is_asked_for() -> None:
    reply = read({"content": [{"type": "text", "text": '{"a": 1}'}]}, into=str)

    assert reply.data == '{"a": 1}'


def test_a_reply_without_data_is_a_failure_where_a_type_is_asked_for() -> None:
    reply = read({"content": [{"type": "text", "text": "mild"}]}, into=StructWeather)

    assert reply.error is not None
    assert reply.error.message == "the reply has no data"
    assert reply.for_model().startswith("mild")


def test_a_failure_stays_the_failure_that_it_is() -> None:
    reply = read({"error": "no such city"}, into=None)
    typed = read(result(OSLO, isError=True), into=StructWeather)

    assert reply.error is not None
    assert reply.error.message == "no such city"
    assert typed.error is not None
    assert typed.error.code == "UNKNOWN_ERROR"


def test_a_type_with_an_unhashable_annotation_works() -> None:
    assert read(result({"a": 1}), into=Annotated[dict[str, int], {"unit": "K"}]).data == {"a": 1}


def test_a_type_without_a_json_form_is_refused_at_once() -> None:
    with pytest.raises(TypeError, match="into"):
        read(result(OSLO), into=type(lambda: None))


def test_strict_raises_for_data_that_does_not_fit() -> None:
    with pytest.raises(MalformedReply, match=r"data\.city: missing"):
        read(result({}), into=StructWeather, strict=True)
