"""`Depends`: parameters that the author's functions fill."""

import asyncio
import json
import logging
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Annotated, Any

import httpx
import pytest

from answerback import App, Context, Depends, NotFound

EVENTS: list[Any] = []
THREADS: list[int] = []


@pytest.fixture(autouse=True)
def _no_events() -> None:
    EVENTS.clear()
    THREADS.clear()


class Pool:
    name = "pool"


def get_pool() -> Pool:
    EVENTS.append("plain")
    return Pool()


async def get_pool_async() -> Pool:
    await asyncio.sleep(0)
    EVENTS.append("async")
    return Pool()


def open_pool() -> Iterator[Pool]:
    EVENTS.append("open")
    THREADS.append(threading.get_ident())
    try:
        yield Pool()
    except Exception as exc:
        EVENTS.append(type(exc).__name__)
        raise
    finally:
        THREADS.append(threading.get_ident())
        EVENTS.append("close")


async def open_pool_async() -> AsyncIterator[Pool]:
    task = asyncio.current_task()
    EVENTS.append("open")
    try:
        yield Pool()
    except Exception as exc:
        EVENTS.append(type(exc).__name__)
        raise
    finally:
        assert asyncio.current_task() is task
        EVENTS.append("close")


class Settings:
    def __init__(self, ctx: Context) -> None:
        self.name = ctx.tool


class GetPool:
    def __call__(self) -> Pool:
        return Pool()

    def method(self) -> Pool:
        return Pool()


def get_none() -> Pool:
    raise NotFound("no pool", code="NO_POOL")


def break_down() -> Pool:
    raise ValueError("password hunter2")


FUNCTIONS = {
    "plain": (get_pool, ["plain"]),
    "async": (get_pool_async, ["async"]),
    "generator": (open_pool, ["open", "close"]),
    "async generator": (open_pool_async, ["open", "close"]),
    "decorated generator": (contextmanager(open_pool), ["open", "close"]),
    "decorated async generator": (asynccontextmanager(open_pool_async), ["open", "close"]),
    "object": (GetPool(), []),
    "method": (GetPool().method, []),
    "class": (Pool, []),
    "lambda": (lambda: Pool(), []),
    "coroutine of a plain function": (lambda: get_pool_async(), ["async"]),
}


def app_with(function: Any) -> App:
    app = App("dependencies")

    @app.tool
    def plain(x: int, pool: Annotated[Pool, Depends(function)]) -> str:
        THREADS.append(threading.get_ident())
        if x < 0:
            raise NotFound("below zero")
        return f"{pool.name} {x}"

    @app.tool
    async def on_loop(x: int, pool: Annotated[Pool, Depends(function)]) -> str:
        if x < 0:
            raise NotFound("below zero")
        await asyncio.sleep(0)
        return f"{pool.name} {x}"

    return app


def call(app: App, name: str, **arguments: Any) -> Any:
    return asyncio.run(asyncio.wait_for(app.call(name, **arguments), 60))


@pytest.mark.parametrize("tool", ["plain", "on_loop"])
@pytest.mark.parametrize("kind", FUNCTIONS)
def test_a_function_of_any_kind_fills_the_parameter(kind: str, tool: str) -> None:
    function, events = FUNCTIONS[kind]

    reply = call(app_with(function), tool, x=3)

    assert reply.data == "pool 3"
    assert events == EVENTS


@pytest.mark.parametrize("tool", ["plain", "on_loop"])
@pytest.mark.parametrize("function", [open_pool, open_pool_async])
def test_an_exception_of_the_tool_is_raised_in_the_generator(function: Any, tool: str) -> None:
    reply = call(app_with(function), tool, x=-1)

    assert reply.error.code == "NOT_FOUND"
    assert EVENTS == ["open", "NotFound", "close"]


def test_a_plain_generator_enters_and_leaves_on_the_thread_of_the_tool() -> None:
    call(app_with(open_pool), "plain", x=3)

    assert len(THREADS) == 3
    assert len(set(THREADS)) == 1
    assert THREADS[0] != threading.get_ident()


def test_it_is_resolved_after_the_arguments() -> None:
    reply = call(app_with(open_pool), "plain", x="three")

    assert reply.error.code == "INVALID_ARGUMENTS"
    assert EVENTS == []


def test_it_is_closed_before_the_reply_is_checked() -> None:
    app = App("order")

    @app.tool
    def wrong(pool: Annotated[Pool, Depends(open_pool)]) -> int:
        return "text"  # type: ignore[return-value]  # on purpose

    reply = call(app, "wrong")

    assert reply.error.code == "INVALID_OUTPUT"
    assert EVENTS == ["open", "close"]


def swallow() -> Iterator[Pool]:
    try:
        yield Pool()
    except NotFound:
        EVENTS.append("swallowed")


def translate() -> Iterator[Pool]:
    try:
        yield Pool()
    except NotFound as exc:
        raise NotFound("another", code="ANOTHER") from exc


def fail_at_end() -> Iterator[Pool]:
    yield Pool()
    raise NotFound("too late", code="TOO_LATE")


async def swallow_async() -> AsyncIterator[Pool]:
    try:
        yield Pool()
    except NotFound:
        EVENTS.append("swallowed")


@pytest.mark.parametrize("tool", ["plain", "on_loop"])
def test_a_generator_cannot_make_a_failed_call_succeed_but_can_fail_otherwise(tool: str) -> None:
    swallowed = call(app_with(swallow), tool, x=-1)
    swallowed_async = call(app_with(swallow_async), tool, x=-1)
    translated = call(app_with(translate), tool, x=-1)
    failed = call(app_with(fail_at_end), tool, x=1)

    assert EVENTS == ["swallowed", "swallowed"]
    assert swallowed.error.code == swallowed_async.error.code == "NOT_FOUND"
    assert translated.error.code == "ANOTHER"
    assert failed.error.code == "TOO_LATE"


@pytest.mark.parametrize("tool", ["plain", "on_loop"])
def test_an_error_of_a_dependency_fails_the_call(
    tool: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR, "answerback"):
        shown = call(app_with(get_none), tool, x=1)
        masked = call(app_with(break_down), tool, x=1)

    assert shown.error.code == "NO_POOL"
    assert masked.error.code == "TOOL_EXECUTION_ERROR"
    assert "hunter2" not in masked.error.message
    assert "hunter2" in caplog.text


def get_name(ctx: Context, pool: Annotated[Pool, Depends(open_pool)]) -> str:
    return f"{ctx.tool} {pool.name}"


def get_both(
    name: Annotated[str, Depends(get_name)], pool: Annotated[Pool, Depends(open_pool)]
) -> str:
    return f"{name} {pool.name}"


async def get_nested(
    both: Annotated[str, Depends(get_both)], pool: Annotated[Pool, Depends(open_pool_async)]
) -> str:
    return f"{both} {pool.name}"


@pytest.mark.parametrize("is_async", [False, True])
def test_dependencies_nest_and_are_called_once_in_a_call(is_async: bool) -> None:
    app = App("nested")

    def body(
        ctx: Context,
        both: Annotated[str, Depends(get_both)],
        nested: Annotated[str, Depends(get_nested)],
        pool: Annotated[Pool, Depends(open_pool)],
        settings: Annotated[Settings, Depends(Settings)],
    ) -> list[str]:
        return [ctx.tool, both, nested, pool.name, settings.name]

    if is_async:

        @app.tool(name="body")
        async def body_async(
            ctx: Context,
            both: Annotated[str, Depends(get_both)],
            nested: Annotated[str, Depends(get_nested)],
            pool: Annotated[Pool, Depends(open_pool)],
            settings: Annotated[Settings, Depends(Settings)],
        ) -> list[str]:
            return body(ctx, both, nested, pool, settings)

    else:
        app.tool(body)

    reply = call(app, "body")

    assert reply.data == ["body", "body pool pool", "body pool pool pool", "pool", "body"]
    assert EVENTS == ["open", "open", "close", "close"]


def test_it_is_in_no_schema_and_no_argument_fills_it() -> None:
    app = app_with(get_pool)

    schema = app.tools["plain"].input_schema
    reply = call(app, "plain", x=1, pool={"name": "other"})

    assert list(schema["properties"]) == ["x"]
    assert "pool" not in json.dumps(app.openapi()["paths"])
    assert reply.error.code == "INVALID_ARGUMENTS"


def fake() -> Pool:
    pool = Pool()
    pool.name = "fake"
    return pool


def test_a_test_can_override_it() -> None:
    app = app_with(get_pool)

    app.overrides[get_pool] = fake
    first = call(app, "plain", x=1)
    app.overrides.clear()
    with app.override(get_pool, fake):
        second = call(app, "on_loop", x=1)
    third = call(app, "plain", x=1)

    assert [first.data, second.data, third.data] == ["fake 1", "fake 1", "pool 1"]
    assert EVENTS == ["plain"]


def test_a_nested_one_can_be_overridden_too() -> None:
    app = App("nested")

    @app.tool
    def show(both: Annotated[str, Depends(get_both)]) -> str:
        return both

    with app.override(open_pool, fake):
        reply = call(app, "show")

    assert reply.data == "show fake fake"


def get_from_query(limit: int) -> int:
    return limit


def needs_default(limit: int = 3) -> int:
    return limit


def without_type(limit) -> int:  # type: ignore[no-untyped-def]  # on purpose
    return int(limit)


@pytest.mark.parametrize("function", [get_from_query, needs_default, without_type])
def test_a_dependency_that_takes_arguments_of_the_caller_is_refused(function: Any) -> None:
    message = (
        f"parameter 'limit' of '{function.__name__}', a dependency of tool 'plain', is neither a "
        "Context nor marked with Depends"
    )
    with pytest.raises(TypeError, match=message):
        app_with(function)


def first(value: Annotated[int, Depends(lambda: 1)]) -> int:
    return value


def second(value: Annotated[int, Depends(first)]) -> int:
    return value


first.__annotations__["value"] = Annotated[int, Depends(second)]


def test_a_circle_is_refused() -> None:
    with pytest.raises(TypeError, match="form a cycle: first -> second -> first"):
        app_with(first)


def test_a_default_is_refused_with_what_to_write() -> None:
    app = App("habit")

    with pytest.raises(TypeError, match=r"write pool: Annotated\[TYPE, Depends\(…\)\]"):

        @app.tool
        def habit(pool: Pool = Depends(get_pool)) -> None:  # type: ignore[assignment]  # noqa: B008 -- FastAPI's older way
            """Refused."""


def test_what_cannot_be_called_is_refused() -> None:
    with pytest.raises(TypeError, match="Depends takes a function"):
        Depends(5)  # type: ignore[arg-type]  # on purpose


def test_an_inline_tool_with_an_async_dependency_is_refused() -> None:
    app = App("inline")

    with pytest.raises(TypeError, match="is inline and depends on 'get_pool_async'"):

        @app.tool(inline=True)
        def quick(pool: Annotated[Pool, Depends(get_pool_async)]) -> None:
            """Refused."""


def test_resources_and_prompts_have_dependencies_too() -> None:
    app = App("others")

    @app.resource("pool://{name}")
    def read(name: str, pool: Annotated[Pool, Depends(open_pool)]) -> str:
        return f"{pool.name} {name}"

    @app.prompt
    async def ask(topic: str, pool: Annotated[Pool, Depends(open_pool_async)]) -> str:
        return f"{pool.name} {topic}"

    async def send(method: str, **params: Any) -> Any:
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        transport = httpx.ASGITransport(app.asgi())
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return (await client.post("/message", json=message)).json()["result"]

    resource = asyncio.run(send("resources/read", uri="pool://a"))
    prompt = asyncio.run(send("prompts/get", name="ask", arguments={"topic": "b"}))
    prompts = asyncio.run(send("prompts/list"))["prompts"]

    assert resource["contents"][0]["text"] == "pool a"
    assert prompt["messages"][0]["content"]["text"] == "pool b"
    assert [each["name"] for each in prompts[0]["arguments"]] == ["topic"]
    assert EVENTS == ["open", "close"] * 2


FILE = """
import asyncio, sys, threading
from contextlib import asynccontextmanager
from typing import Annotated
from answerback import App, Context, Depends

@asynccontextmanager
async def lifespan():
    yield asyncio.get_running_loop()

app = App("file"LIFESPAN)

async def open_async(ctx: Context):
    assert ctx.state in (None, asyncio.get_running_loop())
    task = asyncio.current_task()
    yield asyncio.get_running_loop()
    assert task is asyncio.current_task()
    print("closed", file=sys.stderr)

async def get_async(loop: Annotated[object, Depends(open_async)]) -> bool:
    return loop is asyncio.get_running_loop()

def open_plain():
    thread = threading.get_ident()
    yield thread
    assert thread == threading.get_ident()

@app.tool
def plain(
    same: Annotated[bool, Depends(get_async)], thread: Annotated[int, Depends(open_plain)]
) -> bool:
    return same and thread == threading.get_ident()

@app.tool(timeout=60)
def with_timeout(
    same: Annotated[bool, Depends(get_async)], thread: Annotated[int, Depends(open_plain)]
) -> bool:
    return same and thread == threading.get_ident()

@app.tool
async def on_loop(same: Annotated[bool, Depends(get_async)]) -> bool:
    return same

app.run()
"""


@pytest.fixture(params=["", ", lifespan=lifespan"], ids=["alone", "lifespan"])
def file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "file.py"
    path.write_text(FILE.replace("LIFESPAN", request.param))
    return path


@pytest.mark.parametrize("tool", ["plain", "with_timeout", "on_loop"])
def test_dependencies_work_on_wires_without_an_event_loop(file: Path, tool: str) -> None:
    rpc = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool}}
    request = {"REQUEST_METHOD": "POST", "PATH_INFO": f"/{tool}", "CONTENT_LENGTH": "2"}

    def run(text: str, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, str(file), *arguments],
            input=text,
            capture_output=True,
            text=True,
            timeout=60,
            env=os.environ | environ,
        )

    called = run("", "call", tool)
    over_cgi = run("{}", "cgi", **request)
    over_stdio = run(json.dumps(rpc) + "\n", "mcp")

    assert called.stdout == '{"result":true}\n'
    assert over_cgi.stdout.endswith('{"result":true}')
    assert '"structuredContent":{"result":true}' in over_stdio.stdout
    assert [each.stderr for each in (called, over_cgi, over_stdio)] == ["closed\n"] * 3
