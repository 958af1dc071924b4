"""Schemathesis calls the app with data made from its OpenAPI document, and finds no failures."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal, NamedTuple, TypedDict

import msgspec
import pydantic
import pytest
import schemathesis
from msgspec import Meta
from schemathesis.config import SchemathesisConfig
from schemathesis.engine import StopReason, events, from_schema
from schemathesis.schemas import BaseSchema

from answerback import App, Ask, Context, Image
from answerback.contract import PRESETS
from answerback.dialects.accept import MEDIA_TYPES
from answerback.options import Task, Values

# The other examples serve no REST: some fail on purpose, some belong to other frameworks, and
# the demo is a program.
EXAMPLES = ["aligned", "calculator", "instances", "weather"]


class Colour(Enum):
    RED = "red"
    GREEN = "grün"


@dataclass
class Node:
    name: str
    children: list[Node] = field(default_factory=list)


class Size(TypedDict):
    height: Annotated[int, Meta(ge=0)]


class Pair(NamedTuple):
    left: int
    right: str


class Span(msgspec.Struct, forbid_unknown_fields=True):
    start: float
    end: float | None = None


class Person(pydantic.BaseModel):
    name: str
    age: Annotated[int, pydantic.Field(ge=0)] = 0


# Schemathesis 4.32 cannot read `prefixItems` in a response, so no fixed tuple is given back.
TYPES: dict[str, Any] = {
    "integers": int,
    "numbers": float,
    "texts": str,
    "truths": bool,
    "octets": bytes,
    "lists": list[int],
    "sets": set[int],
    "mappings": dict[str, float],
    "numbered": dict[int, str],
    "literals": Literal["a", 1, None],
    "enums": Colour,
    "optionals": int | None,
    "nodes": Node,
    "sizes": Size,
    "spans": Span,
    "people": Person,
    "dates": date,
    "moments": datetime,
    "times": time,
    "durations": timedelta,
    "ids": uuid.UUID,
    "decimals": Decimal,
    "bounded": Annotated[int, Meta(ge=0, lt=10)],
    "patterned": Annotated[str, Meta(pattern="^[a-z]+$", max_length=5)],
    "unions": int | str | Node | list[bool] | None,
    "records": Node | Size,
    "anything": Any,
}


def echoes(types: dict[str, Any], contract: str = "standard") -> App:
    """An app with one tool for each type, which returns its argument."""
    app = App("types", contract=contract)
    for name, annotation in types.items():

        def echo(value: Any) -> Any:
            return value

        echo.__annotations__ = {"value": annotation, "return": annotation}
        app.add_tool(echo, name=name, values=Values(lenient=name not in BY_PYDANTIC))
    return app


BY_PYDANTIC = ("people",)
"""pydantic's lax mode, which a lenient tool uses, accepts more than the schema allows."""
BY_FORMAT = ("durations", "moments", "times")
"""Their schemas have a format or a description alone, which allow more than the types do."""


def failures(
    app: App,
    *,
    asgi: Any = None,
    cases: int = 20,
    accept: str = "*/*",
    without_checks: Collection[str] = (),
    without_tools: str = "",
) -> list[str]:
    """The failures that the checks find; the cases are the same each time.

    *asgi* is called instead of the app's own ASGI application.
    """
    generation = {"max-examples": cases, "deterministic": True, "database": "none"}
    config = {
        "seed": 1,
        "generation": generation,
        "cache": {"enabled": False},
        "headers": {"Accept": accept},
        "checks": {name: {"enabled": False} for name in without_checks},
    }
    schema: BaseSchema = schemathesis.openapi.from_asgi(
        "/openapi.json", asgi or app.asgi(), config=SchemathesisConfig.from_dict(config)
    )
    if without_tools:
        schema = schema.exclude(path_regex=without_tools)
    return [each for event in from_schema(schema).execute() for each in _failures(event)]


def _failures(event: events.EngineEvent) -> Iterator[str]:
    match event:
        case events.ScenarioFinished(recorder=recorder):
            for case_id, checks in recorder.checks.items():
                response = recorder.interactions[case_id].response
                code = response.headers.get("x-error-code") if response else None
                for check in checks:
                    # The tool itself refused the input, for a reason that no schema can express.
                    by_tool = check.name == "positive_data_acceptance" and code == ["INVALID_INPUT"]
                    if check.failure_info is not None and not by_tool:
                        case = recorder.cases[case_id].value
                        yield f"{check.name}: {case.method} {case.path} {case.body!r}"
        case events.NonFatalError() | events.FatalError():
            yield str(event)
        case events.EngineFinished(stop_reason=reason) if reason is not StopReason.COMPLETED:
            yield f"stopped: {reason}"


@pytest.mark.parametrize("name", EXAMPLES)
def test_schemathesis_finds_no_failure_in_an_example(
    name: str, example: Callable[[str], App]
) -> None:
    assert failures(example(name), cases=40) == []


def test_schemathesis_finds_no_failure_with_any_type() -> None:
    exact = {name: each for name, each in TYPES.items() if name not in BY_FORMAT}
    assert failures(echoes(exact), cases=15) == []


def test_schemathesis_finds_no_failure_with_types_whose_schema_is_a_format() -> None:
    types = {name: TYPES[name] for name in BY_FORMAT}
    assert failures(echoes(types), cases=15, without_checks=["positive_data_acceptance"]) == []


@pytest.mark.parametrize("contract", PRESETS)
def test_schemathesis_finds_no_failure_with_any_contract(contract: str) -> None:
    few = {name: TYPES[name] for name in ("integers", "nodes", "unions", "anything")}
    few["nothing"] = None

    assert failures(echoes(few, contract), cases=10) == []


def test_schemathesis_finds_no_failure_in_the_errors_of_tools(everything: App) -> None:
    """Most of these tools fail on purpose; the document describes their errors."""
    found = failures(
        everything,
        cases=3,
        without_checks=["not_a_server_error"],
        without_tools="/(wait_for|large|loud)$",
    )

    assert found == []


@pytest.mark.parametrize("accept", MEDIA_TYPES)
@pytest.mark.parametrize("name", ["calculator", "instances", "weather"])
def test_schemathesis_finds_no_failure_in_any_dialect(
    name: str, accept: str, example: Callable[[str], App]
) -> None:
    app = example(name)

    found = failures(app, asgi=_with_document_of_dialects(app), cases=5, accept=accept)

    assert found == []


def _with_document_of_dialects(app: App) -> Any:
    """The app's ASGI application, with a document that lists all dialects."""
    site, document = app.asgi(), json.dumps(app.openapi(dialects=True)).encode()

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or scope["path"] != "/openapi.json":
            await site(scope, receive, send)
            return
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": document})

    return answer


def ask_before(sure: Annotated[bool, Ask("Really?")]) -> bool:
    return sure


async def sample(ctx: Context) -> str:
    return (await ctx.sample("Say something")).text


async def too_slow() -> str:
    await asyncio.sleep(30)
    return "late"


def picture() -> Image:
    return Image(b"GIF89a", "image/gif")


@pytest.mark.parametrize("accept", ["*/*", "application/json", "image/*"])
def test_schemathesis_finds_no_undocumented_status_or_media_type(accept: str) -> None:
    app = App("statuses")
    app.add_tool(ask_before)
    app.add_tool(sample)
    app.add_tool(too_slow, timeout=0.01)
    app.add_tool(picture)

    assert failures(app, cases=3, accept=accept, without_checks=["not_a_server_error"]) == []


def test_schemathesis_finds_a_tool_that_fails() -> None:
    """This shows that the tests above can fail."""
    app = App("broken")

    @app.tool
    def broken(divisor: int) -> int:
        return 1 // divisor

    assert "not_a_server_error: POST /functions/broken {'divisor': 0}" in failures(app)


def test_schemathesis_finds_no_failure_in_tasks_and_keys() -> None:
    app = App("jobs")

    def double(x: int) -> dict[str, int]:
        return {"double": 2 * x}

    app.add_tool(double, name="optional", task="optional")
    app.add_tool(double, name="keyed", task=Task(key=True))

    assert failures(app, cases=5) == []
