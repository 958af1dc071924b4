"""An author's own exceptions: `App(errors=…)` and `@app.error(…)`, on every wire."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any, cast

import pytest
from tests.gates.named_users import post, rpc

from answerback import App, Conflict, InvalidInput, NotFound, ToolError, connect, failure
from answerback.core.reply import Error


class ProjectError(Exception):
    pass


class MissingProject(ProjectError):
    pass


def called(app: App, name: str = "fail", **arguments: object) -> Error:
    reply = asyncio.run(app.call(name, **arguments))
    assert reply.error is not None
    return reply.error


def raising(app: App, exc: BaseException) -> App:
    """The app, with a tool, a resource and a prompt that raise *exc*."""

    def fail() -> str:
        raise exc

    app.add_tool(fail)
    app.resource("project://fail")(fail)
    app.prompt(fail)
    return app


def test_an_exception_of_the_table_is_an_error_of_its_class_with_its_text() -> None:
    app = raising(App("p", errors={ProjectError: NotFound}), ProjectError("no project 7"))

    error = called(app)

    assert (error.code, error.message) == ("NOT_FOUND", "no project 7")


def test_the_nearest_class_of_an_exception_decides() -> None:
    table: dict[type[BaseException], Any] = {ProjectError: Conflict, MissingProject: NotFound}

    assert called(raising(App("p", errors=table), MissingProject("x"))).code == "NOT_FOUND"
    assert called(raising(App("p", errors=table), ProjectError("x"))).code == "CONFLICT"
    assert called(raising(App("p", errors={Exception: Conflict}), KeyError("x"))).message == "x"


def test_a_subclass_of_a_tool_error_may_have_its_hint_and_details_as_attributes() -> None:
    class Full(Conflict):
        hint = "delete something"
        details = {"free": 0}  # noqa: RUF012 -- as an author writes it
        retryable = True

    plain, other = (
        called(raising(App("p"), Full("disk full"))),
        called(raising(App("p"), Full("disk full", hint="wait"))),
    )

    assert (plain.hint, plain.details, plain.retryable) == ("delete something", {"free": 0}, True)
    assert other.hint == "wait"


def test_an_exception_without_text_is_shown_by_the_name_of_its_class() -> None:
    app = raising(App("p", errors={ProjectError: NotFound}), MissingProject())

    assert called(app).message == "MissingProject"


@pytest.mark.parametrize(
    ("show", "shown"),
    [
        (lambda exc: f"sorry: {exc}", Error("UNKNOWN_ERROR", "sorry: 7")),
        (lambda exc: NotFound(str(exc), "NO_PROJECT", hint="ls"), None),
        (lambda exc: failure(str(exc), code="NO_PROJECT", hint="ls"), None),
    ],
)
def test_a_function_makes_the_error(show: Callable[[Any], Any], shown: Error | None) -> None:
    app = raising(App("p"), MissingProject("7"))

    assert app.error(ProjectError)(show) is show
    error = called(app)

    wanted = shown or Error("NO_PROJECT", "7", hint="ls", kind=error.kind)
    assert error == wanted


def test_a_function_may_raise_the_error_or_leave_the_exception_masked(
    caplog: pytest.LogCaptureFixture,
) -> None:
    app = raising(App("p"), MissingProject("7"))

    @app.error(MissingProject)
    def show(exc: MissingProject) -> None:
        raise NotFound(f"no project {exc}") from exc

    @app.error(ValueError, KeyError)
    def hide(exc: Exception) -> None:
        return None

    assert called(app).message == "no project 7"
    assert called(raising(App("q", errors={KeyError: hide}), KeyError("secret"))).code == (
        "TOOL_EXECUTION_ERROR"
    )
    assert "KeyError: 'secret'" in caplog.text


def test_a_function_that_fails_is_masked_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    wrong: Any = lambda exc: 7  # noqa: E731 -- a type checker refuses it
    app = raising(App("p", errors={ProjectError: wrong}), ProjectError("secret"))

    error = called(app)

    assert error.code == "TOOL_EXECUTION_ERROR"
    assert "secret" not in error.message
    assert "returned int for ProjectError; return a ToolError, failure(…), a str" in caplog.text


def test_what_is_not_in_the_table_stays_masked() -> None:
    error = called(raising(App("p", errors={ProjectError: NotFound}), OSError("secret")))

    assert error.code == "TOOL_EXECUTION_ERROR"
    assert "secret" not in error.message


def test_a_wrong_argument_or_result_is_not_an_exception_of_the_author() -> None:
    app = App("p", errors={Exception: Conflict})

    @app.tool
    def double(x: int) -> int:
        return cast("int", "two")

    assert called(app, "double", x="two").code == "INVALID_ARGUMENTS"
    assert called(app, "double", x=2).code == "INVALID_OUTPUT"


def test_an_included_app_keeps_its_table_and_falls_back_to_the_one_that_includes_it() -> None:
    inner = App("inner", errors={ProjectError: NotFound})
    outer = App("outer", errors={ProjectError: Conflict, OSError: InvalidInput})
    raising(inner, MissingProject("7"))

    @inner.tool
    def disk() -> str:
        raise OSError("full")

    outer.include(inner, prefix="in_")

    @outer.tool
    def fail() -> str:
        raise ProjectError("8")

    assert called(outer, "in_fail").code == "NOT_FOUND"
    assert called(outer, "in_disk").code == "INVALID_INPUT"
    assert called(outer, "fail").code == "CONFLICT"
    assert called(inner, "disk").code == "TOOL_EXECUTION_ERROR"


def test_a_shown_exception_is_in_the_log_of_debugging_only(
    caplog: pytest.LogCaptureFixture,
) -> None:
    app = raising(App("p", errors={ProjectError: NotFound}), MissingProject("7"))

    with caplog.at_level(logging.DEBUG, "answerback"):
        called(app)

    assert [record.levelname for record in caplog.records if record.exc_info] == ["DEBUG"]


@pytest.mark.parametrize("make", [lambda: NotFound("no 7", "NO_PROJECT", {"id": 7}, hint="ls")])
@pytest.mark.parametrize("is_own", [False, True])
def test_the_client_reads_text_code_hint_and_details_of_a_resource_and_a_prompt(
    make: Callable[[], ToolError], is_own: bool
) -> None:
    app = App("p", errors={ProjectError: lambda exc: make()})
    raising(app, ProjectError("secret") if is_own else make())

    async def read() -> tuple[Error | None, ToolError]:
        async with connect(app) as server:
            reply = await server.read("project://fail")
            with pytest.raises(NotFound) as caught:
                await server.prompt("fail")
            return reply.error, caught.value

    for error in asyncio.run(read()):
        assert error is not None
        assert (error.message, error.code) == ("no 7", "NO_PROJECT")
        assert (error.details, error.hint, error.retryable) == ({"id": 7}, "ls", False)


@pytest.mark.parametrize(
    ("errors", "message"),
    [
        ([ProjectError], "should be a dict of exception classes, such as {KeyError: NotFound}"),
        ({"ProjectError": NotFound}, "'ProjectError' is not an exception class; pass one"),
        ({NotFound: Conflict}, "callers already see the message of NotFound; leave it out"),
        ({ProjectError: "NOT_FOUND"}, "for ProjectError is 'NOT_FOUND'; write a subclass of ToolE"),
        ({ProjectError: str}, "a subclass of ToolError, or a function that takes the exception"),
        ({ProjectError: lambda: "x"}, "is made by '<lambda>', which takes []; write def"),
    ],
)
def test_a_wrong_table_is_refused(errors: Any, message: str) -> None:
    with pytest.raises(TypeError) as caught:
        App("p", errors=errors)

    assert message in str(caught.value)


def test_a_wrong_function_of_an_exception_is_refused() -> None:
    app = App("p", errors={ProjectError: NotFound})
    wrong: Any = app.error

    async def late(exc: Exception) -> str:
        return str(exc)

    with pytest.raises(TypeError, match=r"takes exception classes: @app.error\(ProjectError\)"):
        app.error()
    with pytest.raises(TypeError, match=r"takes exception classes: @app.error\(ProjectError\)"):
        wrong(late)
    with pytest.raises(TypeError, match=r"by 'late', which is async; write def late\(exc\)"):
        app.error(OSError)(late)
    with pytest.raises(ValueError, match="there is already an error for ProjectError"):
        app.error(ProjectError)(lambda exc: "x")


def test_a_masked_resource_or_prompt_is_not_called_a_tool(
    caplog: pytest.LogCaptureFixture,
) -> None:
    app = raising(App("p"), ProjectError("secret"))

    async def read() -> tuple[Error | None, ToolError]:
        async with connect(app) as server:
            reply = await server.read("project://fail")
            with pytest.raises(ToolError) as caught:
                await server.prompt("fail")
            return reply.error, caught.value

    resource, prompt = asyncio.run(read())

    assert resource is not None
    assert resource.message.startswith("The resource failed unexpectedly (reference ")
    assert prompt.message.startswith("The prompt failed unexpectedly (reference ")
    assert prompt.code == "TOOL_EXECUTION_ERROR"
    assert "resource 'project://fail' failed, reference" in caplog.text
    assert "prompt 'fail' failed, reference" in caplog.text
    assert [vars(record)["kind"] for record in caplog.records] == ["resource", "prompt"]


def test_an_own_exception_has_its_code_and_text_over_rest_and_mcp() -> None:
    app = raising(App("p", errors={ProjectError: NotFound}), MissingProject("no project 7"))

    rest = post(app, "/functions/fail", {})
    tool = rpc(app, "tools/call", name="fail", arguments={}).json()["result"]
    resource = rpc(app, "resources/read", uri="project://fail").json()["error"]
    prompt = rpc(app, "prompts/get", name="fail").json()["error"]

    assert (rest.status_code, rest.headers["x-error-code"]) == (404, "NOT_FOUND")
    assert rest.json()["error"] == "no project 7"
    assert (tool["isError"], tool["content"][0]["text"]) == (True, "no project 7")
    assert resource == {
        "code": -32002,
        "message": "no project 7",
        "data": {"uri": "project://fail", "code": "NOT_FOUND", "retryable": False},
    }
    assert prompt == {
        "code": -32602,
        "message": "no project 7",
        "data": {"code": "NOT_FOUND", "retryable": False},
    }
