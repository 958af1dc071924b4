"""`nan="null"` for pydantic models: the reply and its schema over MCP and REST."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from math import inf, isnan, nan
from typing import Annotated, Any

import httpx
import jsonschema  # type: ignore[import-untyped]  # it ships no types
import pydantic
import pytest

from answerback import App
from answerback.options import Values


class Reading(pydantic.BaseModel):
    celsius: float


class Place(pydantic.BaseModel):
    name: str
    now: Reading
    past: list[Reading] = []
    wind: float | None = None
    rain: Annotated[float, pydantic.Field(ge=0)] = 0.0
    finite: pydantic.FiniteFloat = 0.0


class Rounded(pydantic.BaseModel):
    celsius: float = pydantic.Field(serialization_alias="degrees")

    @pydantic.field_serializer("celsius")
    def round_down(self, celsius: float) -> float:
        return celsius if isnan(celsius) else float(int(celsius))

    @pydantic.computed_field  # type: ignore[prop-decorator]  # mypy does not know the decorator
    @property
    def twice(self) -> float:
        return self.celsius * 2


class Strings(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(ser_json_inf_nan="strings")

    celsius: float


@dataclass
class Report:
    mean: float
    reading: Reading


def built(**fields: Any) -> Place:
    """A model whose fields were not validated, as after an assignment."""
    return Place.model_construct(name="Oslo", now=Reading(celsius=1), **fields)


WHOLE: dict[str, Any] = {
    "name": "Oslo",
    "now": {"celsius": 1.0},
    "past": [],
    "wind": None,
    "rain": 0.0,
    "finite": 0.0,
}
CASES: list[tuple[Any, Any, Any]] = [
    (Reading, Reading(celsius=nan), {"celsius": None}),
    (Reading, {"celsius": -inf}, {"celsius": None}),
    (Reading, Reading(celsius=1.5), {"celsius": 1.5}),
    (list[Reading], [Reading(celsius=inf), Reading(celsius=1)], [None, 1.0]),
    (dict[str, Reading], {"a": Reading(celsius=nan)}, {"a": {"celsius": None}}),
    (Reading | None, Reading(celsius=nan), {"result": {"celsius": None}}),
    (Report, Report(nan, Reading(celsius=nan)), {"mean": None, "reading": {"celsius": None}}),
    (Place, built(wind=nan), WHOLE),
    (Place, built(rain=inf), WHOLE | {"rain": None}),
    (Place, built(past=[Reading(celsius=nan)]), WHOLE | {"past": [{"celsius": None}]}),
    (Rounded, Rounded(celsius=nan), {"degrees": None, "twice": None}),
    (Rounded, Rounded(celsius=2.5), {"degrees": 2.0, "twice": 5.0}),
    (Strings, Strings(celsius=nan), {"celsius": None}),
    (Annotated[float, pydantic.AfterValidator(abs)], nan, {"result": None}),
]


def app_returning(annotation: Any, value: Any, **options: Any) -> App:
    def tool() -> Any:
        return value

    tool.__annotations__["return"] = annotation
    app = App("test", **options)
    app.add_tool(tool)
    return app


def answers(app: App) -> tuple[Any, dict[str, Any], dict[str, Any], dict[str, Any]]:
    """The body of REST and its schema in OpenAPI, the result of MCP and the announced tool."""

    async def ask() -> list[Any]:
        transport = httpx.ASGITransport(app.asgi())
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            rest = (await client.post("/functions/tool", json={})).json()
            params = {"name": "tool", "arguments": {}}
            found = []
            for method, sent in (("tools/call", params), ("tools/list", {})):
                message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": sent}
                found.append((await client.post("/message", json=message)).json()["result"])
            document = (await client.get("/openapi.json")).json()
            return [rest, document, found[0], found[1]["tools"][0]]

    rest, document, result, tool = asyncio.run(ask())
    return rest, document, result, tool


@pytest.mark.parametrize(("annotation", "value", "expected"), CASES)
def test_a_float_of_a_model_is_sent_as_null_and_fits_the_announced_schema(
    annotation: Any, value: Any, expected: Any
) -> None:
    app = app_returning(annotation, value, values=Values(nan="null"))

    rest, document, result, tool = answers(app)

    if isinstance(expected, list):
        expected = {"result": [{"celsius": each} for each in expected]}
    assert rest == expected
    assert result["structuredContent"] == expected
    jsonschema.Draft202012Validator(tool["outputSchema"]).validate(result["structuredContent"])
    body = document["paths"]["/functions/tool"]["post"]["responses"]["200"]["content"]
    schema = {**body["application/json"]["schema"], "components": document["components"]}
    jsonschema.Draft202012Validator(schema).validate(rest)


def test_the_announced_schema_says_number_or_null() -> None:
    schema = answers(app_returning(Place, built(), values=Values(nan="null")))[3]["outputSchema"]

    rain, wind = schema["properties"]["rain"], schema["properties"]["wind"]
    assert rain["anyOf"] == [{"minimum": 0, "type": "number"}, {"type": "null"}]
    assert wind["anyOf"] == [{"type": "number"}, {"type": "null"}]
    assert schema["$defs"]["Reading"]["properties"]["celsius"]["anyOf"][1] == {"type": "null"}


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (Reading, Reading(celsius=nan)),
        (Reading, {"celsius": nan}),
        (Place, built(rain=nan)),
        (Place, built(wind=nan)),
    ],
)
def test_a_float_of_a_model_is_refused_by_default(annotation: Any, value: Any) -> None:
    app = app_returning(annotation, value)

    reply = asyncio.run(app.call("tool"))

    assert reply.error is not None
    assert reply.error.code == "INVALID_OUTPUT"


@pytest.mark.parametrize(
    ("annotation", "value", "path"),
    [
        (Reading, {"celsius": None}, "celsius"),
        (Reading, {"celsius": "warm"}, "celsius"),
        (Place, built(rain=-1.0), "rain"),
        (Place, built(rain=nan), "rain"),
        (Place, built(finite=nan), "finite"),
        (Place, {"name": "Oslo", "now": {"celsius": 1}, "rain": nan}, "rain"),
        (Reading, Reading.model_construct(celsius=None), "celsius"),
    ],
)
def test_a_value_that_the_model_refuses_is_still_refused_with_nan_as_null(
    annotation: Any, value: Any, path: str
) -> None:
    app = app_returning(annotation, value, values=Values(nan="null"))

    reply = asyncio.run(app.call("tool"))

    assert reply.error is not None
    assert f"Invalid output: {path}: " in reply.error.message


def test_the_arguments_of_a_tool_with_nan_as_null_are_read_as_before() -> None:
    app = App("test", values=Values(nan="null"))

    @app.tool
    def tool(reading: Reading) -> Reading:
        return Reading(celsius=reading.celsius * inf)

    schema = app.tools["tool"].input_schema["properties"]["reading"]
    reply = asyncio.run(app.call("tool", reading={"celsius": None}))

    assert schema["properties"]["celsius"] == {"type": "number"}
    assert reply.error is not None
    assert reply.error.code == "INVALID_ARGUMENTS"
