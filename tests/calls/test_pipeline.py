"""The pipeline of a call: the replies to callers, and the failures that only the log shows."""

import asyncio
import re
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import msgspec
import pytest
from tests.steps import steps_of

from answerback import (
    App,
    Conflict,
    Contract,
    Forbidden,
    InvalidInput,
    NotFound,
    RateLimited,
    Reply,
    Text,
    TimedOut,
    ToolError,
    Unauthenticated,
    Unavailable,
    failure,
)
from answerback.calls.call import Call, reply_or_refusal
from answerback.calls.runners import run_without_loop
from answerback.calls.runtime import runtime_for_one_call
from answerback.core.peer import NeedsInput, Question
from answerback.core.reply import Error
from answerback.registry.declarations import registry_of

PASSWORD = "postgres://admin:hunter2@db"


def call_tool(fn: Callable[..., Any], /, **arguments: Any) -> Reply[Any]:
    app = App("test")
    app.add_tool(fn, name="tool")
    return asyncio.run(app.call("tool", **arguments))


def raising(exc: BaseException) -> Callable[[], Any]:
    def tool() -> Any:
        raise exc

    return tool


def raising_async(exc: BaseException) -> Callable[[], Any]:
    async def tool() -> Any:
        raise exc

    return tool


def error_of(reply: Reply[Any]) -> Error:
    assert reply.error is not None
    assert reply.data is msgspec.UNSET
    return reply.error


class WithoutText(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


class Panic(BaseException):
    """Libraries in Rust raise such an exception."""


@pytest.mark.parametrize("make", [raising, raising_async])
@pytest.mark.parametrize(
    "exc",
    [
        RuntimeError(PASSWORD),
        KeyError(PASSWORD),
        MemoryError(),
        RecursionError(PASSWORD),
        StopIteration(PASSWORD),
        StopAsyncIteration(PASSWORD),
        WithoutText(),
        ExceptionGroup(PASSWORD, [ValueError(PASSWORD), NotFound(PASSWORD)]),
        SystemExit(PASSWORD),
        SystemExit(0),
        Panic(PASSWORD),
        BaseExceptionGroup(PASSWORD, [Panic(PASSWORD)]),
        msgspec.ValidationError(PASSWORD),
        UnicodeEncodeError("utf-8", PASSWORD, 0, 1, "no"),
    ],
    ids=lambda exc: type(exc).__name__,
)
def test_an_unexpected_exception_is_masked_and_logged_under_its_reference(
    exc: BaseException, make: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    reply = call_tool(make(exc))

    error = error_of(reply)
    assert error.code == "TOOL_EXECUTION_ERROR"
    assert "hunter2" not in str(reply)
    reference = error.details["reference"]
    assert re.fullmatch("[0-9a-f]{12}", reference)
    assert error.message == f"The tool failed unexpectedly (reference {reference})"
    assert f"tool 'tool' failed, reference {reference}" in caplog.text
    assert "Traceback" in caplog.text


def test_two_failures_have_different_references() -> None:
    app = App("test")
    app.add_tool(raising(ValueError()), name="tool")

    first, second = (error_of(asyncio.run(app.call("tool"))) for _ in range(2))

    assert first.details != second.details


class Chained(ToolError):
    def __init__(self, cause: Exception) -> None:
        Exception.__init__(self, cause)


@pytest.mark.parametrize(
    ("make", "code", "message"),
    [
        (ToolError, "UNKNOWN_ERROR", "Unknown error"),
        (NotFound, "NOT_FOUND", "Not found"),
        (Chained, "UNKNOWN_ERROR", "Unknown error"),
        (lambda exc: NotFound(exc, code="ITEM_UNKNOWN"), "ITEM_UNKNOWN", "Item unknown"),
        (failure, "UNKNOWN_ERROR", "Unknown error"),
    ],
)
def test_an_exception_as_the_message_of_an_error_is_logged_and_not_shown(
    make: Any, code: str, message: str, caplog: pytest.LogCaptureFixture
) -> None:
    app = App("test")

    @app.tool
    def pay() -> Any:
        try:
            raise OSError("password=hunter2")
        except OSError as exc:
            error = make(exc)
        if isinstance(error, ToolError):
            raise error
        return error

    error = asyncio.run(app.call("pay")).error

    assert error is not None
    assert error.code == code
    assert isinstance(error.details, dict)
    assert error.message == f"{message} (reference {error.details['reference']})"
    assert "hunter2" not in repr(error)
    assert "OSError: password=hunter2" in caplog.text
    assert error.details["reference"] in caplog.text


def test_a_contract_can_set_the_text_of_masked_errors() -> None:
    app = App("test", contract=Contract(name="mine", masked="Ask the desk"))
    app.add_tool(raising(ValueError(PASSWORD)), name="tool")

    error = error_of(asyncio.run(app.call("tool")))

    assert error.message.startswith("Ask the desk (reference ")


@pytest.mark.parametrize(
    ("make", "exc"),
    [
        (raising, KeyboardInterrupt),
        (raising, GeneratorExit),
        (raising, asyncio.CancelledError),
        (raising_async, KeyboardInterrupt),
        (raising_async, GeneratorExit),
    ],
)
def test_exceptions_that_stop_more_than_the_call_propagate(
    make: Callable[..., Any], exc: type[BaseException]
) -> None:
    app = App("test")
    app.add_tool(make(exc()), name="tool")

    with pytest.raises(exc):
        run_without_loop(tool_handler(app)(Call("tool")))


def tool_handler(app: App) -> Callable[[Call], Any]:
    return runtime_for_one_call(registry_of(app)).handlers.tools


def test_a_failure_is_answered_while_another_thread_imports_asyncio(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = App("test")
    app.add_tool(raising(NotFound("nothing here")), name="tool")
    path = tool_handler(app)
    # Until an import has finished, other threads see a module without its names.
    monkeypatch.setitem(sys.modules, "asyncio", ModuleType("asyncio"))

    reply = run_without_loop(path(Call("tool")))

    assert error_of(reply).code == "NOT_FOUND"


def test_a_cancelled_call_raises_cancelled_error() -> None:
    async def wait() -> None:
        await asyncio.Event().wait()

    app = App("test")
    app.add_tool(wait)

    async def call() -> None:
        task = asyncio.create_task(app.call("wait"))
        await asyncio.sleep(0)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(call())


@pytest.mark.parametrize("make", [raising, raising_async])
def test_a_tool_error_reaches_the_caller_and_is_not_logged(
    make: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    raised = Unavailable("the oven is cold", details={"degrees": 4}, retryable=True, hint="wait")

    error = error_of(call_tool(make(raised)))

    assert error == Error("UNAVAILABLE", "the oven is cold", {"degrees": 4}, True, "wait")
    assert caplog.text == ""


@pytest.mark.parametrize(
    ("kind", "code", "status"),
    [
        (ToolError, "UNKNOWN_ERROR", 500),
        (InvalidInput, "INVALID_INPUT", 400),
        (Unauthenticated, "UNAUTHENTICATED", 401),
        (Forbidden, "FORBIDDEN", 403),
        (NotFound, "NOT_FOUND", 404),
        (Conflict, "CONFLICT", 409),
        (RateLimited, "RATE_LIMITED", 429),
        (Unavailable, "UNAVAILABLE", 503),
        (TimedOut, "TIMED_OUT", 504),
    ],
)
def test_each_class_of_tool_error_has_its_code_and_status(
    kind: type[ToolError], code: str, status: int
) -> None:
    plain = error_of(call_tool(raising(kind("no"))))
    own = error_of(call_tool(raising(kind("no", code="CITY_UNKNOWN"))))

    assert (plain.code, plain.row.status, plain.kind) == (code, status, None)
    assert (own.code, own.row.status) == ("CITY_UNKNOWN", status)


class CityGone(NotFound):
    code = "CITY_GONE"


class CityMoved(NotFound):
    """A class whose author forgot to call super().__init__."""

    def __init__(self, city: str) -> None:
        self.city = city


def test_an_authors_error_class_has_its_own_code_and_its_parents_status() -> None:
    error = error_of(call_tool(raising(CityGone("it is gone"))))

    assert (error.code, error.message, error.row.status) == ("CITY_GONE", "it is gone", 404)


def test_an_error_class_that_does_not_call_super_still_has_a_message() -> None:
    error = error_of(call_tool(raising(CityMoved("Paris"))))

    assert (error.code, error.message, error.row.status) == ("NOT_FOUND", "Paris", 404)


def test_an_unknown_tool_is_named_and_similar_names_are_suggested() -> None:
    app = App("test")
    app.add_tool(raising(ValueError()), name="get_weather")

    near = error_of(asyncio.run(app.call("get_wether")))
    far = error_of(asyncio.run(app.call("zzz")))

    assert (near.code, near.message) == ("TOOL_NOT_FOUND", "Function not found: get_wether")
    assert near.hint == "did you mean 'get_weather'?"
    assert far.hint is None


def test_the_name_that_was_meant_is_found_among_many_tools() -> None:
    verbs = ("get", "list", "create", "update", "delete", "search", "send", "read", "move", "close")
    nouns = ("user", "order", "invoice", "file", "event", "task", "note", "message", "ticket")
    ends = ("", "_by_id", "_by_name", "_history")
    app = App("test")
    for name in (f"{verb}_{noun}{end}" for verb in verbs for noun in nouns for end in ends):
        app.add_tool(raising(ValueError()), name=name)

    async def hint_for(name: str) -> str:
        return error_of(await app.call(name)).hint or ""

    async def hints() -> dict[str, str]:
        meant = {
            "serch_invoice": "search_invoice",
            "update_tikcet_by_id": "update_ticket_by_id",
            "Send_Message": "send_message",
            "getOrderHistory": "get_order_history",
            "close_notes_by_name": "close_note_by_name",
        }
        return {right: await hint_for(wrong) for wrong, right in meant.items()}

    found = asyncio.run(hints())

    assert [name for name, hint in found.items() if f"did you mean {name!r}" not in hint] == []


def test_an_unknown_tool_is_compared_with_a_bounded_number_of_names() -> None:
    def steps_among(count: int) -> int:
        app = App("test")
        for number in range(count):
            app.add_tool(raising(ValueError()), name=f"service_{number % 7}_operation_{number}")
        return steps_of(lambda: asyncio.run(app.call("service_7_operation_x")))

    few, many = steps_among(50), steps_among(500)

    assert many < 2 * few


def test_one_error_lists_all_invalid_arguments_and_the_tool_does_not_run() -> None:
    ran = []

    def book(guests: int, day: str, room: str) -> None:
        ran.append(guests)

    error = error_of(call_tool(book, guests="two", dya="monday", room=5))

    assert error.code == "INVALID_ARGUMENTS"
    paths = {problem["path"]: problem for problem in error.details["problems"]}
    assert set(paths) == {"guests", "day", "dya", "room"}
    assert (paths["guests"]["expected"], paths["guests"]["got"]) == ("int", "str 'two'")
    assert paths["dya"]["hint"] == "did you mean 'day'?"
    assert all(name in error.message for name in paths)
    assert ran == []


@pytest.mark.parametrize("body", [b"", b"{", b"nope", b'{"x": NaN}', b"\xff", b'{"x": 1} 2'])
def test_a_body_that_is_not_json_is_refused_as_invalid_json(body: bytes) -> None:
    def tool(x: int) -> int:
        return x

    app = App("test")
    app.add_tool(tool)

    error = error_of(run_without_loop(tool_handler(app)(Call("tool", body))))

    assert (error.code, error.message) == ("INVALID_JSON", "Invalid JSON body")
    assert error.hint


@pytest.mark.parametrize("body", [b"[]", b"5", b"null", b'"x"'])
def test_arguments_must_be_an_object(body: bytes) -> None:
    def tool(x: int = 1) -> int:
        return x

    app = App("test")
    app.add_tool(tool)

    assert (
        error_of(run_without_loop(tool_handler(app)(Call("tool", body)))).code
        == "INVALID_ARGUMENTS"
    )


def test_a_question_that_nobody_can_answer_is_an_error_with_the_question() -> None:
    def tool() -> None:
        params = {"message": "Delete all?"}
        raise NeedsInput({"sure": Question("elicitation/create", params)})

    app = App("test")
    app.add_tool(tool)

    outcome = run_without_loop(tool_handler(app)(Call("tool")))
    error = error_of(reply_or_refusal(outcome))

    assert isinstance(outcome, NeedsInput)
    assert (error.code, error.row.status) == ("INPUT_REQUIRED", 409)
    assert error.message == (
        "This call needs something the client does not offer: elicitation. It asks: Delete all?"
    )
    assert error.hint is not None
    assert "asks the user" in error.hint
    assert error.details["questions"][0]["params"] == {"message": "Delete all?"}


def test_except_exception_in_a_tool_does_not_catch_a_question() -> None:
    def tool() -> str:
        try:
            raise NeedsInput({})
        except Exception:  # noqa: BLE001 -- authors write this
            return "swallowed"

    assert error_of(call_tool(tool)).code == "INPUT_REQUIRED"


def test_without_an_event_loop_async_tools_run_in_a_loop_of_their_own() -> None:
    async def tool(x: int) -> int:
        await asyncio.sleep(0)
        return 2 * x

    def return_coroutine(x: int) -> Any:
        return tool(x)

    app = App("test")
    app.add_tool(tool)
    app.add_tool(return_coroutine)
    app.add_tool(return_coroutine, name="with_timeout", timeout=60)

    replies = [run_without_loop(tool_handler(app)(Call(name, b'{"x": 4}'))) for name in app.tools]

    assert [reply.data for reply in replies] == [8, 8, 8]


def test_running_a_waiting_coroutine_without_a_loop_is_an_error() -> None:
    async def forever() -> None:
        await asyncio.sleep(0)

    waiting = forever()

    with pytest.raises(RuntimeError, match="there is no loop to wait on"):
        run_without_loop(waiting)
    waiting.close()


def test_a_tool_that_calls_sys_exit_is_a_failed_call() -> None:
    def leave() -> None:
        sys.exit("bye")

    assert error_of(call_tool(leave)).code == "TOOL_EXECUTION_ERROR"


def test_a_tool_that_raises_cancelled_error_is_a_failed_call() -> None:
    app = App("test")

    @app.tool
    async def give_up() -> int:
        raise asyncio.CancelledError

    reply = asyncio.run(app.call("give_up"))

    assert reply.error is not None
    assert reply.error.code == "TOOL_EXECUTION_ERROR"


def test_the_first_tool_error_of_a_group_reaches_the_caller(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def collect() -> int:
        second = ExceptionGroup("", [Conflict("too late"), Unavailable("cold")])
        raise ExceptionGroup("", [ExceptionGroup("", [NotFound("gone")]), second])

    error = error_of(call_tool(collect))

    assert (error.code, error.message) == ("NOT_FOUND", "gone")
    assert "too late" in caplog.text


def test_a_group_with_another_exception_is_masked() -> None:
    def collect() -> int:
        raise ExceptionGroup("", [NotFound("gone"), ValueError("secret")])

    error = error_of(call_tool(collect))

    assert error.code == "TOOL_EXECUTION_ERROR"
    assert "gone" not in error.message


@pytest.mark.parametrize("returns", [int, list[Text], Reply, None, Any])
def test_a_tool_error_that_is_returned_counts_as_raised(returns: Any) -> None:
    def find() -> Any:
        return NotFound("gone")

    find.__annotations__["return"] = returns

    error = error_of(call_tool(find))

    assert (error.code, error.message) == ("NOT_FOUND", "gone")


@pytest.mark.parametrize(
    ("exc", "words"), [(ToolError(""), "Unknown error"), (NotFound(""), "Not found")]
)
def test_an_error_without_a_message_has_the_words_of_its_code(exc: ToolError, words: str) -> None:
    assert error_of(call_tool(raising(exc))).message == words
