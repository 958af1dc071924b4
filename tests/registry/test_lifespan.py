"""Lifespan in memory: what it yields, how often it runs, and what it refuses."""

from __future__ import annotations

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
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from answerback import App, Context
from answerback.registry.declarations import registry_of

Events = list[Any]


class State:
    def __init__(self, events: Events) -> None:
        self.events = events
        self.thread = threading.get_ident()


def make_app(kind: str, events: Events, **options: Any) -> App:
    """An app with a lifespan of a *kind*, and tools that return the name of their state's class."""
    app = App("lifespan", lifespan=lifespans(events)[kind], **options)

    @app.tool
    async def on_the_loop(ctx: Context[State]) -> str:
        return type(ctx.state).__name__

    @app.tool
    def in_a_thread(ctx: Context) -> str:
        return type(ctx.state).__name__

    return app


def lifespans(events: Events) -> dict[str, Any]:

    @asynccontextmanager
    async def on_loop() -> AsyncIterator[State]:
        events.append("open")
        yield State(events)
        events.append("close")

    @asynccontextmanager
    async def on_loop_with_app(app: App) -> AsyncIterator[State]:
        events.append("open")
        assert registry_of(app).name == "lifespan"
        yield State(events)
        events.append("close")

    @contextmanager
    def plain() -> Iterator[State]:
        events.append("open")
        state = State(events)
        yield state
        assert state.thread == threading.get_ident()
        events.append("close")

    class Manager:
        async def __aenter__(self) -> State:
            events.append("open")
            return State(events)

        async def __aexit__(self, *exc_info: object) -> None:
            events.append("close")

    class PlainManager:
        def __init__(self, app: App) -> None:
            assert registry_of(app).name == "lifespan"

        def __enter__(self) -> State:
            events.append("open")
            return State(events)

        def __exit__(self, *exc_info: object) -> None:
            events.append("close")

    return {
        "async": on_loop,
        "async with app": on_loop_with_app,
        "plain": plain,
        "class": Manager,
        "plain class": PlainManager,
    }


KINDS = ["async", "async with app", "plain", "class", "plain class"]


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_call_of_a_loop_starts_the_lifespan_and_the_loop_ends_it(kind: str) -> None:
    events: Events = []
    app = make_app(kind, events)

    async def two_calls() -> list[Any]:
        replies = await asyncio.gather(app.call("on_the_loop"), app.call("in_a_thread"))
        events.append("called")
        return [reply.data for reply in replies]

    first = asyncio.run(two_calls())
    second = asyncio.run(two_calls())

    assert first == second == ["State", "State"]
    assert events == ["open", "called", "close"] * 2


@pytest.mark.parametrize("kind", KINDS)
def test_running_starts_and_ends_it_once_although_it_is_nested(kind: str) -> None:
    events: Events = []
    app = make_app(kind, events)

    async def use() -> None:
        async with app.running():
            events.append((await app.call("on_the_loop")).data)
            async with app.running():
                events.append((await app.call("in_a_thread")).data)
            events.append("still open")
        events.append("after")

    asyncio.run(use())

    assert events == ["open", "State", "State", "still open", "close", "after"]


def test_a_call_within_a_call_uses_the_same_state() -> None:
    events: Events = []
    app = make_app("async", events)

    @app.tool
    def nested() -> str:
        reply = asyncio.run(app.call("in_a_thread"))
        return str(reply.data)

    reply = asyncio.run(app.call("nested"))

    assert reply.data == "State"
    assert events == ["open", "close"]


def test_an_included_app_that_runs_already_is_not_started_again() -> None:
    events: Events = []
    child = make_app("async", events)
    app = App("parent")
    app.include(child)

    async def use() -> None:
        async with child.running():
            async with app.running():
                events.append((await app.call("on_the_loop")).data)
            events.append((await child.call("on_the_loop")).data)
        async with app.running():
            events.append((await app.call("on_the_loop")).data)

    asyncio.run(use())

    assert events == ["open", "State", "State", "close", "open", "State", "close"]


def test_without_a_lifespan_the_state_is_none() -> None:
    app = App("bare")

    @app.tool
    def state(ctx: Context[None]) -> bool:
        return ctx.state is None

    async def use() -> Any:
        async with app.running():
            return (await app.call("state")).data

    assert asyncio.run(use()) is True
    assert app.lifespan is None


def test_async_tools_share_the_loop_and_the_lifespan_is_left_in_its_own_task() -> None:
    tasks: list[Any] = []

    @asynccontextmanager
    async def lifespan() -> AsyncIterator[asyncio.AbstractEventLoop]:
        tasks.append(asyncio.current_task())
        yield asyncio.get_running_loop()
        tasks.append(asyncio.current_task())

    app = App("loops", lifespan=lifespan)

    @app.tool
    async def is_shared(ctx: Context[asyncio.AbstractEventLoop]) -> bool:
        return ctx.state is asyncio.get_running_loop()

    reply = asyncio.run(app.call("is_shared"))

    assert reply.data is True
    assert tasks[0] is tasks[1]


def test_a_lifespan_that_fails_is_raised_in_memory_and_tried_again_at_the_next_call() -> None:
    attempts: list[int] = []

    @contextmanager
    def lifespan() -> Iterator[int]:
        attempts.append(1)
        if len(attempts) == 1:
            raise ValueError("no database")
        yield 5

    app = App("failing", lifespan=lifespan)

    @app.tool
    def state(ctx: Context[int]) -> int:
        return ctx.state

    async def use() -> Any:
        with pytest.raises(ValueError, match="no database"):
            await app.call("state")
        return (await app.call("state")).data

    assert asyncio.run(use()) == 5


def bare_generator() -> Iterator[None]:
    yield


async def bare_async_generator() -> AsyncIterator[None]:
    yield


def two_parameters(app: App, other: int) -> Any: ...


@pytest.mark.parametrize(
    ("lifespan", "message"),
    [
        (bare_generator, "decorate it with contextlib.asynccontextmanager"),
        (bare_async_generator, "decorate it with contextlib.asynccontextmanager"),
        (two_parameters, "it should take the app, or nothing"),
        (5, "pass the function itself"),
        (contextmanager(bare_generator)(), "pass the function itself"),
    ],
)
def test_what_cannot_be_a_lifespan_is_refused_when_the_app_is_made(
    lifespan: Any, message: str
) -> None:
    with pytest.raises(TypeError, match=message):
        App("refused", lifespan=lifespan)


def test_a_function_that_returns_no_context_manager_is_named() -> None:
    app = App("wrong", lifespan=lambda: 5)  # type: ignore[arg-type, return-value]  # on purpose

    @app.tool
    def add(x: int) -> int:
        return x

    with pytest.raises(TypeError, match="the lifespan returned int, not a context manager"):
        asyncio.run(app.call("add", x=1))


def test_resources_and_prompts_have_the_state_too() -> None:
    app = make_app("plain", [])

    @app.resource("state://name")
    def read(ctx: Context[State]) -> str:
        return type(ctx.state).__name__

    @app.prompt
    def ask(ctx: Context[State]) -> str:
        return type(ctx.state).__name__

    async def send(method: str, **params: Any) -> Any:
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        transport = httpx.ASGITransport(app.asgi())
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return (await client.post("/message", json=message)).json()["result"]

    async def use() -> tuple[Any, Any]:
        async with app.running():
            return await send("resources/read", uri="state://name"), await send(
                "prompts/get", name="ask"
            )

    resource, prompt = asyncio.run(use())

    assert resource["contents"][0]["text"] == "State"
    assert prompt["messages"][0]["content"]["text"] == "State"


async def post(host: Any, path: str) -> Any:
    transport = httpx.ASGITransport(host)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        return (await client.post(path, json={})).json()


def test_mounted_in_fastapi_the_host_runs_it(caplog: pytest.LogCaptureFixture) -> None:
    events: Events = []
    app = make_app("async", events)
    host = FastAPI(lifespan=app.lifespan)
    host.mount("/tools", app.asgi())

    async def use() -> None:
        async with host.router.lifespan_context(host):
            events.append(await post(host, "/tools/functions/on_the_loop"))
        events.append("after")

    asyncio.run(use())

    assert events == ["open", {"result": "State"}, "close", "after"]
    assert caplog.records == []


def test_mounted_without_it_the_first_call_starts_it_with_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    events: Events = []
    app = make_app("async", events)
    host = FastAPI()
    host.mount("/tools", app.asgi())

    async def use() -> list[Any]:
        path = "/tools/functions/on_the_loop"
        return list(await asyncio.gather(post(host, path), post(host, path)))

    with caplog.at_level(logging.WARNING, "answerback"):
        replies = asyncio.run(use())

    assert replies == [{"result": "State"}] * 2
    assert events == ["open", "close"]
    assert [record.message for record in caplog.records] == [
        "the lifespan of app 'lifespan' starts at its first call, because the host does not run "
        "it; pass lifespan=app.lifespan to the host's application"
    ]


def test_a_lifespan_that_fails_at_the_first_mounted_call_is_logged_and_masked(
    caplog: pytest.LogCaptureFixture,
) -> None:
    @contextmanager
    def lifespan() -> Iterator[None]:
        raise ValueError("password hunter2")
        yield

    app = App("failing", lifespan=lifespan)

    @app.tool
    def add(x: int = 1) -> int:
        return x

    reply = asyncio.run(post(app.asgi(), "/functions/add"))

    assert reply == {"error": "The server could not start"}
    assert "hunter2" in str(caplog.records[-1].exc_info)


FILE = """
import asyncio, sys
from contextlib import asynccontextmanager, contextmanager
from answerback import App, Context

@KIND
DEF lifespan():
    print("open", file=sys.stderr, flush=True)
    yield LOOP
    print("close", file=sys.stderr, flush=True)

app = App("file", lifespan=lifespan)

@app.tool
async def on_the_loop(ctx: Context) -> bool:
    return ctx.state in (None, asyncio.get_running_loop())

@app.tool
def without_asyncio() -> bool:
    return "asyncio.base_events" not in sys.modules

app.run()
"""


@pytest.fixture(params=["async", "plain"])
def file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    is_async = request.param == "async"
    text = FILE.replace("KIND", "asynccontextmanager" if is_async else "contextmanager")
    text = text.replace("DEF", "async def" if is_async else "def")
    path = tmp_path / f"{request.param}.py"
    path.write_text(text.replace("LOOP", "asyncio.get_running_loop()" if is_async else "None"))
    return path


def run(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        input="{}",
        capture_output=True,
        text=True,
        timeout=60,
        env=os.environ | environ,
    )


def test_call_runs_it_around_the_one_call(file: Path) -> None:
    done = run(str(file), "call", "on_the_loop")

    assert (done.returncode, done.stdout) == (0, '{"result":true}\n')
    assert done.stderr.split() == ["open", "close"]


def test_cgi_runs_it_around_the_one_call(file: Path) -> None:
    request = {"REQUEST_METHOD": "POST", "PATH_INFO": "/on_the_loop", "CONTENT_LENGTH": "2"}
    done = run(str(file), "cgi", **request)

    assert done.stdout.endswith('{"result":true}')
    assert done.stderr.split() == ["open", "close"]


@pytest.mark.parametrize("command", [["list"], ["openapi"], ["call", "unknown"]])
def test_it_does_not_run_where_no_tool_is_called(file: Path, command: list[str]) -> None:
    done = run(str(file), *command)

    assert "open" not in done.stderr.split()
    assert "close" not in done.stderr.split()


def test_a_page_over_cgi_does_not_run_it(file: Path) -> None:
    done = run(str(file), "cgi", REQUEST_METHOD="GET", PATH_INFO="/functions")

    assert done.stdout.startswith("Status: 200 OK")
    assert done.stderr == ""


def test_a_plain_lifespan_starts_no_event_loop(tmp_path: Path) -> None:
    path = tmp_path / "plain.py"
    text = FILE.replace("KIND", "contextmanager").replace("DEF", "def").replace("LOOP", "None")
    path.write_text(text.replace("import asyncio, sys", "import sys"))

    done = run(str(path), "call", "without_asyncio")

    assert done.stdout == '{"result":true}\n'


@pytest.mark.parametrize("command", ["call", "cgi"])
def test_one_that_fails_ends_the_process_with_its_reason(command: str, tmp_path: Path) -> None:
    path = tmp_path / "failing.py"
    text = FILE.replace("KIND", "contextmanager").replace("DEF", "def")
    path.write_text(text.replace("yield LOOP", "raise ValueError('no database')\n    yield"))
    request = {"REQUEST_METHOD": "POST", "PATH_INFO": "/without_asyncio", "CONTENT_LENGTH": "2"}
    words = ["call", "without_asyncio"] if command == "call" else ["cgi"]

    done = run(str(path), *words, **(request if command == "cgi" else {}))

    assert done.returncode != 0
    assert "Traceback" in done.stderr
    assert done.stderr.count("the lifespan failed to start: ValueError: no database") == 1
    assert "no database" not in done.stdout


def test_a_reply_is_given_although_the_end_fails(tmp_path: Path) -> None:
    path = tmp_path / "failing.py"
    text = FILE.replace("KIND", "contextmanager").replace("DEF", "def").replace("LOOP", "None")
    path.write_text(text.replace('print("close"', 'raise ValueError("close"'))

    done = run(str(path), "call", "on_the_loop")

    assert done.stdout == '{"result":true}\n'
    assert "the lifespan failed" in done.stderr


NESTED = """
import asyncio, sys
from contextlib import contextmanager
from answerback import App, Context

@contextmanager
def lifespan():
    print("open", file=sys.stderr, flush=True)
    yield 5
    print("close", file=sys.stderr, flush=True)

child = App("child", lifespan=lifespan)
app = App("parent")
app.include(child)

@child.tool
def state(ctx: Context) -> int:
    return ctx.state

@app.tool
def nested() -> int:
    return asyncio.run(app.call("state")).data

app.run()
"""


@pytest.mark.parametrize("command", ["call", "mcp"])
def test_a_call_within_a_call_finds_the_lifespan_of_an_included_app_running(
    command: str, tmp_path: Path
) -> None:
    path = tmp_path / "nested.py"
    path.write_text(NESTED)
    rpc = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "nested"}}

    done = subprocess.run(
        [sys.executable, str(path), *(["call", "nested"] if command == "call" else ["mcp"])],
        input="" if command == "call" else json.dumps(rpc) + "\n",
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert '{"result":5}' in done.stdout
    assert done.stderr.split() == ["open", "close"]
