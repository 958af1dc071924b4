"""The details of each error type have the schema that OpenAPI publishes."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # it ships no types
import pytest
from tests.resilience.manual_clock import ManualClock

from answerback import App, Context, Reply, TimedOut, Unavailable
from answerback.dialects.reply_schemas import DETAILS, dialect_schema
from answerback.resilience import Breaker, Limit


def failing_app() -> App:
    clock = ManualClock()
    app = App("app", contract="envelope")

    @app.tool
    def add(x: int) -> int:
        raise RuntimeError("a bug")

    @app.tool(limit=Limit("1/min", clock=clock))
    def limited() -> int:
        return 1

    @app.tool(breaker=Breaker("details", failures=1, clock=clock))
    def broken() -> int:
        raise ConnectionResetError

    @app.tool
    def timed_out() -> int:
        raise TimedOut("the weather service took too long", retry_after=2.5)

    @app.tool
    async def asking(ctx: Context) -> str:
        return await ctx.elicit("Which city?", str)

    @app.tool
    def wrong() -> int:
        return "seven"  # type: ignore[return-value]  # the subject of the test

    return app


CASES = {
    "INVALID_ARGUMENTS": ("add", {}),
    "RATE_LIMITED": ("limited", {}),
    "UNAVAILABLE": ("broken", {}),
    "TIMED_OUT": ("timed_out", {}),
    "INPUT_REQUIRED": ("asking", {}),
    "TOOL_EXECUTION_ERROR": ("add", {"x": 1}),
    "INVALID_OUTPUT": ("wrong", {}),
}


def second_reply(name: str, arguments: dict[str, Any]) -> Reply[Any]:
    app = failing_app()
    logging.disable()
    asyncio.run(app.call(name, **arguments))
    reply = asyncio.run(app.call(name, **arguments))
    logging.disable(logging.NOTSET)
    return reply


@pytest.mark.parametrize("code", DETAILS)
def test_the_details_of_an_error_fit_the_schema_of_its_code(code: str) -> None:
    name, arguments = CASES[code]

    reply = second_reply(name, arguments)

    assert reply.error is not None
    assert reply.error.code == code
    # These two have a reference only if an exception was masked.
    optional = {"reference"} if code in ("UNAVAILABLE", "TIMED_OUT") else set()
    required = sorted(DETAILS[code].keys() - optional)
    schema = {"type": "object", "properties": DETAILS[code], "required": required}
    jsonschema.validate(reply.to("envelope")["error"]["details"], schema)
    jsonschema.validate(reply.to("envelope"), dialect_schema("envelope"))
    jsonschema.validate(reply.to("problem"), dialect_schema("problem"))


def test_details_of_another_form_do_not_fit_the_published_schema() -> None:
    reply = second_reply("add", {}).to("envelope")
    reply["error"]["details"] = {"problems": "x is missing"}

    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(reply, dialect_schema("envelope"))

    assert reply["error"]["code"] == "INVALID_ARGUMENTS"


def test_openapi_has_the_details_of_each_code_and_the_header_retry_after() -> None:
    document = failing_app().openapi()

    conditions = document["components"]["schemas"]["AnswerbackFailure"]["allOf"]
    codes = [each["if"]["properties"]["code"]["const"] for each in conditions]
    assert codes == list(DETAILS)
    assert document["components"]["headers"]["RetryAfter"]["schema"]["type"] == "integer"


def test_a_tool_with_a_limit_lists_429_and_one_with_a_breaker_503() -> None:
    paths = failing_app().openapi()["paths"]

    limited = paths["/functions/limited"]["post"]["responses"]
    broken = paths["/functions/broken"]["post"]["responses"]
    plain = paths["/functions/add"]["post"]["responses"]
    assert "429" in limited
    assert "503" in broken
    assert "429" not in plain


def slow_app() -> App:
    app = App("app")

    async def wait() -> int:
        await asyncio.Event().wait()
        return 1

    app.tool(name="pay", timeout=0.01)(wait)
    app.tool(name="fetch", timeout=0.01, read_only=True)(wait)
    return app


CHECK_FIRST = "it may have taken effect: check that before you call again"
REPORT = "this is a server error: report the reference to whoever runs the server"


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("add", REPORT),
        ("wrong", REPORT),
        ("limited", "try again in 60 seconds"),
        ("broken", "try again in 30 seconds"),
        ("pay", CHECK_FIRST),
        ("fetch", "try again later, or ask for less"),
    ],
)
def test_an_error_of_the_server_says_what_to_do_next(name: str, hint: str) -> None:
    app = slow_app() if name in ("pay", "fetch") else failing_app()
    arguments = {"x": 1} if name == "add" else {}
    logging.disable()

    replies = [asyncio.run(app.call(name, **arguments)) for _ in range(2)]
    logging.disable(logging.NOTSET)

    error = replies[1].error
    assert error is not None
    assert error.hint == hint


def test_the_seconds_of_an_authors_error_are_sent_among_its_details() -> None:
    class Busy(Unavailable):
        retry_after = 12

    app = App("app")

    @app.tool
    def work() -> int:
        raise Busy("the queue is full", details={"queue": 40})

    reply = asyncio.run(app.call("work"))

    assert reply.error is not None
    assert reply.error.details == {"queue": 40, "retry_after": 12}
