"""Middleware around calls, and observers of outcomes: in memory and on every wire."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from answerback import App, Context, Forbidden, Invocation, Next, NotFound, Observation


def app_with(*middleware: Any, observers: Any = ()) -> App:
    app = App("app", middleware=middleware, observers=observers)

    @app.tool
    def add(x: int, y: int) -> int:
        return x + y

    @app.tool(tags={"read"})
    async def add_async(x: int, y: int) -> int:
        await asyncio.sleep(0)
        return x + y

    @app.tool(inline=True)
    def add_inline(x: int, y: int, ctx: Context) -> int:
        return x + y

    @app.tool
    def fail() -> int:
        raise NotFound("no such thing")

    @app.resource("note://{name}")
    def note(name: str) -> str:
        return name

    @app.prompt
    def ask(what: str) -> str:
        return what

    return app


KINDS = pytest.mark.parametrize("tool", ["add", "add_async", "add_inline"])


@KINDS
def test_middleware_sees_the_call_and_its_result(tool: str) -> None:
    seen: list[Any] = []

    async def watch(call: Invocation, next: Next) -> Any:
        seen.append((call.kind, call.name, dict(call.arguments)))
        result = await next(call)
        seen.append(result)
        return result

    reply = asyncio.run(app_with(watch).call(tool, x=1, y=2))

    assert reply.data == 3
    assert seen == [("tool", tool, {"x": 1, "y": 2}), 3]


@KINDS
def test_middleware_can_change_arguments_and_the_result(tool: str) -> None:
    async def change(call: Invocation, next: Next) -> Any:
        call.arguments["x"] = 10
        return await next(call) * 2

    assert asyncio.run(app_with(change).call(tool, x=1, y=2)).data == 24


@KINDS
def test_middleware_can_answer_itself_and_refuse(tool: str) -> None:
    async def guard(call: Invocation, next: Next) -> Any:
        if call.arguments["x"] == 0:
            raise Forbidden("not zero")
        return 7 if call.arguments["x"] == 1 else await next(call)

    app = app_with(guard)
    answers = [asyncio.run(app.call(tool, x=x, y=2)) for x in (0, 1, 2)]

    assert answers[0].error is not None
    assert answers[0].error.code == "FORBIDDEN"
    assert [answer.data for answer in answers[1:]] == [7, 4]


def test_the_first_middleware_is_outermost_and_plain_functions_work_too() -> None:
    order: list[str] = []

    def plain(call: Invocation, next: Next) -> Any:
        order.append("plain")
        call.arguments["y"] = 5
        return next(call)

    async def inner(call: Invocation, next: Next) -> Any:
        order.append("inner")
        return await next(call)

    reply = asyncio.run(app_with(plain, inner).call("add", x=1, y=2))

    assert reply.data == 6
    assert order == ["plain", "inner"]


def test_the_reply_is_checked_after_the_middleware() -> None:
    async def wrong(call: Invocation, next: Next) -> Any:
        return "text"

    reply = asyncio.run(app_with(wrong).call("add", x=1, y=2))

    assert reply.error is not None
    assert reply.error.code == "INVALID_OUTPUT"


def test_an_unexpected_exception_of_middleware_is_masked() -> None:
    async def broken(call: Invocation, next: Next) -> Any:
        raise RuntimeError("the password is swordfish")

    reply = asyncio.run(app_with(broken).call("add", x=1, y=2))

    assert reply.error is not None
    assert reply.error.code == "TOOL_EXECUTION_ERROR"
    assert "swordfish" not in reply.error.message


def test_middleware_that_forgets_to_return_the_result_is_named_in_the_log_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def forgetful(call: Invocation, next: Next) -> Any:
        await next(call)

    app = app_with(forgetful)
    replies = [asyncio.run(app.call("add", x=1, y=2)) for _ in range(2)]

    warnings = [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING]
    assert all(reply.error is not None for reply in replies)
    assert len(warnings) == 1
    assert "'forgetful' returned None" in warnings[0].replace('"', "'")
    assert "return await next(call)" in warnings[0]


def test_middleware_can_try_a_tool_again() -> None:
    app = App("app", middleware=[retry])
    attempts: list[int] = []

    @app.tool
    def flaky(ctx: Context) -> int:
        attempts.append(1)
        if len(attempts) < 3:
            raise NotFound("not yet")
        return len(attempts)

    assert asyncio.run(app.call("flaky")).data == 3


async def retry(call: Invocation, next: Next) -> Any:
    for _ in range(2):
        try:
            return await next(call)
        except NotFound:
            continue
    return await next(call)


def test_middleware_uses_the_context_and_the_tags_of_the_tool() -> None:
    seen: list[Any] = []

    async def look(call: Invocation, next: Next) -> Any:
        seen.append((call.context.wire, call.tags))
        return await next(call)

    app = app_with(look)
    asyncio.run(app.call("add_async", x=1, y=2))
    asyncio.run(app.call("add_inline", x=1, y=2))

    assert seen == [("memory", {"read"}), ("memory", frozenset())]


def test_refused_calls_do_not_reach_middleware_but_observers_see_them() -> None:
    ran: list[str] = []
    seen: list[Observation] = []

    async def watch(call: Invocation, next: Next) -> Any:
        ran.append(call.name)
        return await next(call)

    app = app_with(watch, observers=[seen.append])
    asyncio.run(app.call("add", x=1))
    asyncio.run(app.call("ad", x=1, y=2))
    asyncio.run(app.call("fail"))
    asyncio.run(app.call("add", x=1, y=2))

    codes = [each.reply.error.code if each.reply and each.reply.error else "" for each in seen]
    assert ran == ["fail", "add"]
    assert [each.name for each in seen] == ["add", "ad", "fail", "add"]
    assert codes == ["INVALID_ARGUMENTS", "TOOL_NOT_FOUND", "NOT_FOUND", ""]
    assert all(each.kind == "tool" and each.seconds > 0 for each in seen)


def test_an_observer_that_fails_is_logged_and_the_call_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def broken(seen: Observation) -> None:
        raise RuntimeError("out of order")

    reply = asyncio.run(app_with(observers=[broken]).call("add", x=1, y=2))

    assert reply.data == 3
    assert [record.levelno for record in caplog.records] == [logging.ERROR]


def test_the_middleware_of_an_including_app_is_outside_that_of_an_included_app() -> None:
    order: list[str] = []

    def naming(name: str) -> Any:
        async def middleware(call: Invocation, next: Next) -> Any:
            order.append(f"{name} {call.name}")
            return await next(call)

        return middleware

    def observing(name: str) -> Callable[[Observation], None]:
        return lambda seen: order.append(f"{name} saw {seen.name}")

    other = app_with(naming("inner"), observers=[observing("inner")])
    app = App("outer", middleware=[naming("outer")], observers=[observing("outer")])
    app.include(other, prefix="in_")

    asyncio.run(app.call("in_add", x=1, y=2))
    asyncio.run(app.call("in_unknown"))

    assert order == [
        "outer in_add",
        "inner in_add",
        "outer saw in_add",
        "inner saw in_add",
        "outer saw in_unknown",
    ]


def test_an_app_with_middleware_cannot_be_included_in_one_that_was_called_without() -> None:
    app, other = App("plain"), app_with(retry)
    asyncio.run(app.call("nothing"))

    with pytest.raises(ValueError, match="include it before 'plain' is served or called"):
        app.include(other)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"middleware": [3]}, "middleware has 3; write functions"),
        ({"middleware": [Invocation]}, "write functions"),
        ({"middleware": retry}, r"middleware is a list: middleware=\[retry\]"),
        ({"observers": print}, r"observers is a list: observers=\[print\]"),
        ({"observers": [retry]}, "write plain functions"),
    ],
)
def test_a_wrong_middleware_or_observer_is_refused(options: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        App("app", **options)


TOOLS = """
import sys
from typing import Annotated
from answerback import App, Depends

async def seven() -> int:
    return 7

async def double(call, next):
    if WAITS:
        await sys.modules["asyncio"].sleep(0.01)
    result = await next(call)
    return result * 2

app = App("app", middleware=[double])

@app.tool
def plain(x: int) -> int:
    return x

@app.tool
async def later(x: int) -> int:
    import asyncio
    await asyncio.sleep(0)
    return x

@app.tool(inline=True)
def quick(x: int) -> int:
    return x

@app.tool
def with_dependency(x: int, y: Annotated[int, Depends(seven)]) -> int:
    return x * y

@app.tool
def loop_needed() -> int:
    return int("asyncio" in sys.modules)

@app.resource("note://{name}")
def note(name: str) -> str:
    return name

@app.prompt
def ask(what: str) -> str:
    return what

app.run()
"""
NAMES = ("plain", "later", "quick")


@pytest.fixture(params=[False, True], ids=["does not wait", "waits"])
def file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "app.py"
    head = "import asyncio\nWAITS = True" if request.param else "WAITS = False"
    path.write_text(head + TOOLS)
    return path


def run(file: Path, *arguments: str, **environ: str) -> str:
    command = [sys.executable, str(file), *arguments]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, input=b'{"x":3}', env=os.environ | environ, timeout=60
    )
    return done.stdout.decode()


def test_middleware_wraps_calls_from_the_shell_and_over_cgi(file: Path) -> None:
    called = [run(file, "call", name, "x=3") for name in NAMES]
    cgi = [
        run(
            file,
            "cgi",
            REQUEST_METHOD="POST",
            PATH_INFO=f"/{name}",
            CONTENT_LENGTH="7",
            CONTENT_TYPE="application/json",
        )
        for name in NAMES
    ]

    assert [json.loads(each) for each in called] == [{"result": 6}] * 3
    assert json.loads(run(file, "call", "with_dependency", "x=1")) == {"result": 14}
    assert [each.rpartition("\n")[2] for each in cgi] == ['{"result":6}'] * 3


def test_middleware_that_does_not_wait_needs_no_event_loop(tmp_path: Path) -> None:
    file = tmp_path / "app.py"
    file.write_text("WAITS = False" + TOOLS)

    assert json.loads(run(file, "call", "loop_needed")) == {"result": 0}


@pytest.mark.parametrize("wire", ["stdio", "http"])
def test_middleware_wraps_tools_resources_and_prompts_over_mcp(
    file: Path, wire: str, serve: Any
) -> None:
    async def results(target: Any) -> list[Any]:
        async with Client(target, read_timeout_seconds=20) as client:
            tools = [await client.call_tool(name, {"x": 3}) for name in NAMES * 2]
            tools.append(await client.call_tool("with_dependency", {"x": 1}))
            resource: Any = (await client.read_resource("note://ab")).contents[0]
            prompt: Any = (await client.get_prompt("ask", {"what": "cd"})).messages[0].content
            return [*(each.structured_content for each in tools), resource.text, prompt.text]

    if wire == "stdio":
        stdio = StdioServerParameters(
            command=sys.executable, args=[str(file), "mcp"], env=dict(os.environ)
        )
        found = asyncio.run(results(stdio))
    else:
        with serve(file) as server:
            found = asyncio.run(results(f"{server.url}/mcp"))

    assert found == [{"result": 6}] * 6 + [{"result": 14}, "abab", "cdcd"]


def test_middleware_with_other_parameters_is_refused_at_registration() -> None:
    async def timing(call: Any) -> Any:
        return call

    with pytest.raises(TypeError, match=r"middleware timing\(call\) must take two parameters"):
        App("a", middleware=[timing])  # type: ignore[list-item]  # the subject of the test
