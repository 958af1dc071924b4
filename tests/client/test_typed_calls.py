"""`server.call(…, into=T)` returns typed data, or a failed reply that says what does not fit."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel, field_validator

from answerback import App, NotFound, Reply, Text, connect, success

app = App("weather")
RUNS: list[str] = []


@dataclass
class Weather:
    city: str
    degrees: float


class Place(BaseModel):
    city: str


@app.tool
def weather(city: str) -> dict[str, Any]:
    """The weather in a city."""
    RUNS.append(city)
    if city == "Atlantis":
        raise NotFound(f"no station in {city}")
    return {"city": city, "degrees": 3, "wind": "north"}


@app.tool
def cities(count: int = 2) -> list[str]:
    """Some cities."""
    return ["Oslo", "Rome"][:count]


@app.tool
def forecast(city: str) -> Reply[Weather]:
    """The weather of tomorrow, with a text beside the data."""
    return success("It gets colder.", Weather(city, -2))


@app.tool
def warnings() -> Reply[list[str]]:
    """Warnings, with a text beside the data."""
    return success("Stay at home.", ["storm"])


@app.tool
def report() -> list[Text]:
    """A text without data."""
    return [Text('{"not": "data"}')]


@app.tool
def move(what: str, into: str) -> str:
    """Move something into a folder."""
    return f"{what} is in {into}"


def called(*args: Any, **named: Any) -> Any:
    """The reply of an async and of a blocking server, which are equal."""

    async def awaited() -> Any:
        async with connect(app) as server:
            return await server.call(*args, **named)

    with connect(app) as server:
        blocking: Any = server.call(*args, **named)
    reply = asyncio.run(awaited())
    assert (reply.data, reply.error) == (blocking.data, blocking.error)
    return reply


@pytest.mark.parametrize("into", [None, Weather])
def test_the_data_has_no_message_that_was_added_for_models(into: Any) -> None:
    found = called("forecast", {"city": "Oslo"}, into=into)

    plain = {"city": "Oslo", "degrees": -2.0}
    assert found.data == (plain if into is None else Weather("Oslo", -2))
    assert found.content[0] == Text("It gets colder.")
    assert found.raw["structuredContent"] == {**plain, "message": "It gets colder."}


def test_a_list_with_a_message_is_read_and_checked_by_its_schema() -> None:
    with connect(app, output_schema="error") as server:
        found = server.call("warnings", {})

    assert (found.data, found.error, found.findings) == (["storm"], None, ())


@pytest.mark.parametrize(
    ("into", "data"),
    [
        (Weather, Weather("Oslo", 3.0)),
        (Place, Place(city="Oslo")),
        (dict[str, Any], {"city": "Oslo", "degrees": 3, "wind": "north"}),
        (Weather | None, Weather("Oslo", 3.0)),
    ],
)
def test_the_data_has_the_type_that_the_caller_asks_for(into: Any, data: Any) -> None:
    reply = called("weather", city="Oslo", into=into)

    assert reply.data == data
    assert type(reply.data) is type(data)


def test_a_wrapped_value_is_read_without_its_wrapping() -> None:
    assert called("cities", into=list[str]).data == ["Oslo", "Rome"]
    assert called("cities", {"count": 1}, into=tuple[str, ...]).data == ("Oslo",)


def test_a_text_without_data_is_the_str() -> None:
    assert called("report", into=str).data == '{"not": "data"}'
    assert called("move", {"what": "a", "into": "b"}, into=str).data == "a is in b"


def test_data_that_does_not_fit_is_a_failed_reply() -> None:
    reply = called("cities", into=Weather)

    assert reply.error.code == "INVALID_OUTPUT"
    assert not reply.has_data


def test_a_failed_call_keeps_its_own_error() -> None:
    reply = called("weather", city="Atlantis", into=Weather)

    assert (reply.error.code, reply.error.message) == ("NOT_FOUND", "no station in Atlantis")


@pytest.mark.parametrize("value", ["folder", 5, {"a": 1}, [1], ()])
def test_a_value_that_is_not_a_type_is_refused_before_the_tool_runs(value: Any) -> None:
    RUNS.clear()

    with pytest.raises(TypeError, match=r'in a mapping: call\(name, {"into": …}\)'):
        called("weather", city="Oslo", into=value)

    assert RUNS == []


def test_a_tools_own_argument_of_that_name_goes_into_the_mapping() -> None:
    reply = called("move", {"what": "notes", "into": "attic"})

    assert reply.data == "notes is in attic"


def test_one_of_several_servers_returns_typed_data() -> None:
    with connect({"mcpServers": {"met": app}}) as servers:
        reply = servers.call("met_weather", city="Rome", into=Weather)

    assert reply.data == Weather("Rome", 3.0)


def test_large_data_is_built_while_the_event_loop_goes_on() -> None:
    threads: set[int] = set()

    class Row(BaseModel):
        number: int

        @field_validator("number")
        @classmethod
        def note_thread(cls, number: int) -> int:
            threads.add(threading.get_ident())
            return number

    large = App("large")

    @large.tool
    def rows() -> list[dict[str, int]]:
        """Many rows."""
        return [{"number": number} for number in range(10_000)]

    async def run() -> Any:
        async with connect(large) as server:
            return await server.call("rows", into=list[Row])

    reply = asyncio.run(run())

    assert reply.data[9_999].number == 9_999
    assert threads
    assert threading.get_ident() not in threads
