"""Failures of a service that escape a tool with a breaker or retries: their codes, and no leaks."""

from __future__ import annotations

import asyncio
import json
import urllib.error
from collections.abc import Callable
from typing import Any

import httpx
import pytest
import requests
import urllib3
from mcp.types import CallToolResult
from tests.resilience.manual_clock import ManualClock

from answerback import App, Invocation, Next, Reply, failure
from answerback.core.reply import Error
from answerback.options import Values
from answerback.resilience import Breaker, Limit, Retry
from answerback.resilience.service_failure import read_failure

SECRET = "10.0.0.7:5432 with user 'admin'"


def call(app: App, name: str = "fetch") -> Reply[Any]:
    return asyncio.run(app.call(name))


def error_of(reply: Reply[Any]) -> Error:
    assert reply.error is not None
    return reply.error


def app_that_raises(exc: BaseException, **options: Any) -> App:
    app = App("app")

    @app.tool(**options)
    def fetch() -> str:
        raise exc

    return app


def requests_error(kind: type[requests.RequestException], cause: Exception) -> Exception:
    """An error as requests raises it: with that of urllib3 as its argument."""
    return kind(cause)


POOL: Any = urllib3.HTTPConnectionPool("localhost")
CONNECTION_ERRORS: list[Exception] = [
    ConnectionResetError(SECRET),
    ConnectionError(SECRET),
    OSError(113, SECRET),
    urllib.error.URLError(ConnectionResetError(SECRET)),
    httpx.ReadError(SECRET),
    httpx.RemoteProtocolError(SECRET),
    httpx.ConnectError(SECRET),
    requests.ConnectionError(SECRET),
    requests.exceptions.ChunkedEncodingError(SECRET),
    urllib3.exceptions.ProtocolError(SECRET),
    urllib3.exceptions.MaxRetryError(POOL, "/", urllib3.exceptions.ProtocolError(SECRET)),
    ExceptionGroup("in a task group", [ConnectionResetError(SECRET)]),
]
TIME_OUTS: list[Exception] = [
    TimeoutError(SECRET),
    httpx.ReadTimeout(SECRET),
    requests.ReadTimeout(SECRET),
    urllib3.exceptions.ReadTimeoutError(POOL, "/", SECRET),
]


def name_of(exc: Exception) -> str:
    return f"{type(exc).__module__}.{type(exc).__name__}"


@pytest.mark.parametrize("exc", CONNECTION_ERRORS, ids=name_of)
def test_a_connection_error_that_escapes_is_unavailable_and_does_not_leak(exc: Exception) -> None:
    app = app_that_raises(exc, retry=Retry(clock=ManualClock()), idempotent=True)

    error = error_of(call(app))

    assert error.code == "UNAVAILABLE"
    assert error.retryable is True
    assert error.hint == "try again later"
    assert error.details["reference"] in error.message
    assert "10.0.0.7" not in json.dumps([error.message, error.details, error.hint])


@pytest.mark.parametrize("exc", TIME_OUTS, ids=name_of)
def test_a_time_out_of_a_library_that_escapes_is_timed_out(exc: Exception) -> None:
    app = app_that_raises(exc, breaker=Breaker(name_of(exc)), idempotent=True)

    error = error_of(call(app))

    assert (error.code, error.retryable) == ("TIMED_OUT", True)
    assert "10.0.0.7" not in json.dumps([error.message, error.details, error.hint])


@pytest.mark.parametrize("exc", CONNECTION_ERRORS + TIME_OUTS, ids=name_of)
def test_each_of_them_is_a_failure_of_the_service(exc: Exception) -> None:
    breaker = Breaker(f"counts {name_of(exc)}", failures=1, clock=ManualClock())

    call(app_that_raises(exc, breaker=breaker))

    assert breaker.state == "open"


def test_a_call_that_may_have_taken_effect_is_not_said_to_be_retryable() -> None:
    app = app_that_raises(ConnectionResetError(SECRET), retry=Retry(clock=ManualClock()))

    error = error_of(call(app))

    assert (error.code, error.retryable) == ("UNAVAILABLE", False)
    assert error.hint == "it may have taken effect: check that before you call again"


def test_a_refused_connection_is_retryable_for_every_tool() -> None:
    refused = ConnectionRefusedError(111, SECRET)
    app = app_that_raises(refused, retry=Retry(clock=ManualClock()))

    error = error_of(call(app))

    assert (error.code, error.retryable) == ("UNAVAILABLE", True)


def test_the_wait_that_the_service_asked_for_is_passed_on() -> None:
    response = httpx.Response(
        503, headers={"Retry-After": "90"}, request=httpx.Request("GET", "http://localhost")
    )
    exc = httpx.HTTPStatusError(SECRET, request=response.request, response=response)
    app = app_that_raises(exc, retry=Retry(clock=ManualClock()), read_only=True)

    error = error_of(call(app))

    assert error.code == "UNAVAILABLE"
    assert error.details["retry_after"] == 90
    assert error.hint == "try again in 90 seconds"


@pytest.mark.parametrize("options", [{}, {"limit": Limit("10/s")}])
def test_without_a_breaker_or_retries_the_exception_is_an_internal_error(
    options: dict[str, Any],
) -> None:
    app = app_that_raises(ConnectionResetError(SECRET), **options)

    error = error_of(call(app))

    assert error.code == "TOOL_EXECUTION_ERROR"


def test_a_bug_of_the_tool_stays_an_internal_error() -> None:
    app = app_that_raises(KeyError(SECRET), retry=Retry(), breaker=Breaker("bugs"))

    error = error_of(call(app))

    assert error.code == "TOOL_EXECUTION_ERROR"


def test_an_exception_that_the_breaker_counts_is_unavailable() -> None:
    app = app_that_raises(KeyError(SECRET), breaker=Breaker("counted", counts=KeyError))

    error = error_of(call(app))

    assert error.code == "UNAVAILABLE"


def test_middleware_still_sees_the_exception_of_the_tool() -> None:
    seen: list[BaseException] = []

    async def watch(call: Invocation, next: Next) -> Any:
        try:
            return await next(call)
        except ConnectionResetError as exc:
            seen.append(exc)
            raise

    app = App("app", middleware=[watch])

    @app.tool(breaker=Breaker("watched"))
    async def fetch() -> str:
        raise ConnectionResetError(SECRET)

    error = error_of(call(app))

    assert [type(each) for each in seen] == [ConnectionResetError]
    assert error.code == "UNAVAILABLE"


def failed_envelope() -> Any:
    return {"success": False, "error": {"code": "UNAVAILABLE", "message": "the queue is full"}}


def failed_result() -> Any:
    return failure("the queue is full", code="UNAVAILABLE").to("mcp")


def failed_text() -> Any:
    return {"content": [{"type": "text", "text": json.dumps(failed_envelope())}]}


def failed_model() -> Any:
    return CallToolResult.model_validate(failed_result())


def failed_reply() -> Any:
    return failure("the queue is full", code="UNAVAILABLE")


FINISHED = [failed_envelope, failed_result, failed_text, failed_model, failed_reply]


@pytest.mark.parametrize("make", FINISHED)
def test_a_failure_that_a_tool_returns_is_tried_again_and_counted(make: Callable[[], Any]) -> None:
    app, clock, runs = App("app"), ManualClock(), []
    breaker = Breaker(f"returned by {make.__name__}", failures=1, clock=clock)

    @app.tool(retry=Retry(clock=clock), breaker=breaker, idempotent=True)
    def fetch() -> Any:
        runs.append(1)
        return make()

    error = error_of(call(app))

    assert (error.code, len(runs)) == ("UNAVAILABLE", 3)
    assert breaker.state == "open"


@pytest.mark.parametrize("make", FINISHED)
def test_a_failure_that_a_function_returns_is_counted(make: Callable[[], Any]) -> None:
    breaker = Breaker(f"function {make.__name__}", failures=1, clock=ManualClock())

    breaker.call(make)

    assert breaker.state == "open"


def test_a_failed_result_without_a_code_does_not_close_a_breaker() -> None:
    clock = ManualClock()
    breaker = Breaker("uncoded", failures=1, reset=30, clock=clock)
    app = App("app")

    @app.tool(breaker=breaker)
    def fetch() -> Any:
        text = {"type": "text", "text": "no such city"}
        return CallToolResult.model_validate({"content": [text], "isError": True})

    with pytest.raises(ConnectionError):
        breaker.call(lambda: (_ for _ in ()).throw(ConnectionError()))
    clock.time += 30
    reply = call(app)

    assert not reply.ok
    assert breaker.state == "half-open"


def test_data_of_a_declared_type_is_not_read_as_a_failure() -> None:
    app, clock = App("app"), ManualClock()
    breaker = Breaker("declared", failures=1, clock=clock)

    @app.tool(
        retry=Retry(clock=clock), breaker=breaker, idempotent=True, values=Values(returns="value")
    )
    def fetch() -> dict[str, Any]:
        envelope: dict[str, Any] = failed_envelope()
        return envelope

    reply = call(app)

    assert reply.data == failed_envelope()
    assert breaker.state == "closed"
    assert clock.waits == []


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("7", 7.0), ("Mon, 01 Jan 2001 00:00:00 GMT", 0.0), ("²", None), ("soon", None), ("-1", None)],
)
def test_a_header_retry_after_is_a_number_or_a_date(header: str, seconds: float | None) -> None:
    request = httpx.Request("GET", "http://localhost")
    response = httpx.Response(503, headers={b"Retry-After": header.encode()}, request=request)

    found = read_failure(httpx.HTTPStatusError("", request=request, response=response))

    assert found.retry_after == seconds


def test_the_header_of_a_response_of_requests_is_read_although_the_response_is_false() -> None:
    response = requests.Response()
    response.status_code = 503
    response.headers["Retry-After"] = "7"

    found = read_failure(requests.HTTPError(response=response))

    assert (found.transient, found.retry_after) == (True, 7.0)


class Hostile(Exception):
    @property
    def retry_after(self) -> float:
        raise RuntimeError("a bug in the exception")


def test_an_exception_whose_properties_raise_is_raised_as_it_is() -> None:
    @Retry(clock=ManualClock())
    def fetch() -> None:
        raise Hostile

    with pytest.raises(Hostile):
        fetch()


def test_a_wait_without_end_is_a_long_one() -> None:
    request = httpx.Request("GET", "http://localhost")
    response = httpx.Response(503, headers={"Retry-After": "9" * 400}, request=request)
    exc = httpx.HTTPStatusError("", request=request, response=response)

    error = error_of(call(app_that_raises(exc, retry=Retry(), read_only=True)))

    assert error.details["retry_after"] == 31_536_000
