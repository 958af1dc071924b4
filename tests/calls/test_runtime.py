"""The runtime beside the registry: what lives while an app is served."""

from __future__ import annotations

import asyncio
import gc
import re
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.records.support import MemorySink
from tests.server.test_serve_flags import started
from tests.serving import until
from tests.tasks.task_client import TaskClient, run_with

from answerback import App, Limits
from answerback.calls.runtime import runtime_on_loop
from answerback.calls.thread_pool import ThreadPool
from answerback.records import Records
from answerback.registry.declarations import registry_of
from answerback.server.asgi.application import AsgiApp
from answerback.server.http.server_options import WebOptions

NESTED = """
from answerback import App

app = App("nested")

@app.tool(task="optional")
def fail() -> int:
    raise ValueError("the disk is full")

@app.tool
async def outer() -> list[str]:
    return [(await app.call("fail")).error.message]

app.run()
"""


def test_a_call_within_a_call_leaves_debugging_on_for_later_tasks(tmp_path: Path) -> None:
    path = tmp_path / "nested.py"
    path.write_text(NESTED)

    with started(path, "--debug", "--port", "0") as server:
        url = next(word for word in server.banner.split() if word.startswith("http://"))
        base = url.partition("/functions")[0]
        with httpx.Client(base_url=base, timeout=30) as client:
            nested = client.post("/functions/outer").json()["result"][0]
            headers = {"Prefer": "respond-async"}
            made = client.post("/functions/fail", headers=headers)
            waited = {"Prefer": "wait=20"}
            done = client.get(made.headers["location"], headers=waited).json()
            failed = client.get(done["resultUrl"])

    assert "the disk is full" in nested
    assert "the disk is full" in failed.text


def test_a_call_within_a_call_leaves_the_readiness_to_the_threads_that_serve() -> None:
    app = App("nested")
    release = threading.Event()

    @app.tool(timeout=0.1)
    def hang() -> None:
        release.wait(60)

    @app.tool
    async def outer() -> Any:
        return (await app.call("hang")).ok

    async def post() -> Any:
        transport = httpx.ASGITransport(app.asgi())
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            await client.post("/functions/outer")
            await client.post("/functions/hang")
            return (await client.get("/readyz")).json()

    try:
        found = asyncio.run(post())
    finally:
        release.set()

    assert found["checks"]["threads"]["lost"] == 2


@pytest.mark.slow
def test_a_restart_of_the_tasks_keeps_no_thread_pool_of_the_last_one() -> None:
    app = App("jobs", limits=Limits(shutdown=1))
    app.add_tool(lambda: 1, name="one", task="optional")

    async def steps(client: TaskClient) -> Any:
        return await client.until(await client.create("one"))

    def pools() -> int:
        gc.collect()
        return sum(type(each) is ThreadPool for each in gc.get_objects())

    before = pools()
    for _ in range(5):
        run_with(app, steps)

    # A thread needs a moment to end.
    asyncio.run(until(lambda: pools() <= before))
    assert pools() <= before


def test_a_call_within_a_call_is_recorded_where_its_wire_records() -> None:
    app = App("nested")
    sink = MemorySink()
    records = Records(sink)

    @app.tool
    def inner() -> int:
        return 1

    @app.tool
    async def outer() -> Any:
        return (await app.call("inner")).data

    async def post() -> httpx.Response:
        runtime = runtime_on_loop(registry_of(app), records=records)
        # The newest runtime of the app, which does not run the call.
        other = runtime_on_loop(registry_of(app))
        transport = httpx.ASGITransport(AsgiApp(runtime, WebOptions()))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            response = await client.post("/functions/outer")
        assert other.records is None
        return response

    response = asyncio.run(post())
    records.close()

    assert response.json() == {"result": 1}
    assert [event.tool for event in sink.replies] == ["inner", "outer"]


def test_a_call_outside_of_calls_uses_the_runtime_that_serves_the_app() -> None:
    app = App("served")
    app.add_tool(lambda: 1, name="one")
    sink = MemorySink()
    records = Records(sink)

    async def call() -> None:
        await app.call("one")
        runtime = runtime_on_loop(registry_of(app), records=records)
        await app.call("one")
        assert runtime.records is records

    asyncio.run(call())
    records.close()

    assert [event.tool for event in sink.replies] == ["one"]


def test_a_runtime_ends_with_its_wire() -> None:
    app = App("served")
    app.add_tool(lambda: 1, name="one")
    app.asgi()
    gc.collect()

    assert registry_of(app).changes.attached() == []


def test_serving_and_calling_an_app_write_nothing_into_its_registry() -> None:
    app = App("served", limits=Limits(shutdown=1))

    @app.tool(task="optional")
    async def one() -> int:
        return 1

    registry = registry_of(app)
    before = dict(vars(registry))

    async def steps(client: TaskClient) -> Any:
        await app.call("one")
        return await client.until(await client.create("one"))

    run_with(app, steps)

    assert vars(registry) == before


PUBLIC = (
    "add_tool apps asgi auth call completion contract disable enable error include lifespan "
    "openapi override overrides prompt records redeem remove_prompt remove_tool resource "
    "resource_changed resources route run run_async running state tool tools visible widget write"
)
OF_OTHERS = {"py", "md", "example", "post", "add_middleware", "wsgi_app", "on", "input", "show"} | {
    "include_router",
}
"""What follows `app.` in the docs where `app` is not an App: files, hosts, other frameworks."""


def test_an_app_has_at_most_33_public_names() -> None:
    names = [name for name in dir(App("front")) if not name.startswith("_")]

    assert names == PUBLIC.split()
    assert len(names) <= 33


def test_an_app_has_every_name_that_the_docs_use() -> None:
    root = Path(__file__).parents[2]
    pages = [root / "README.md", *(root / "docs").rglob("*.md"), *(root / "examples").glob("*.py")]
    found = {name for page in pages for name in re.findall(r"\bapp\.([a-z_]+)", page.read_text())}

    assert found - OF_OTHERS <= set(PUBLIC.split())


DECLARED = """
from answerback import App
from answerback.auth import OAuth
from answerback.registry.declarations import registry_of

URL = "https://tools.example.com/mcp"
app = App("declared", auth=OAuth(issuer="https://login.example.com", url=URL))

@app.tool
def written() -> list[str]:
    return [name for name, value in vars(registry_of(app)).items() if before[name] is not value]

before = dict(vars(registry_of(app)))
app.run()
"""


def test_the_flags_of_serve_write_nothing_into_the_registry(tmp_path: Path) -> None:
    path = tmp_path / "declared.py"
    path.write_text(DECLARED)
    flags = ("--debug", "--dev-auth", "--url", "https://tools.example.com/mcp")

    with started(path, *flags, "--port", "0") as server:
        base = server.banner.partition("POST ")[2].partition("/functions")[0]
        with httpx.Client(base_url=base, timeout=30) as client:
            token = client.post("/dev/token").json()["access_token"]
            headers = {"Authorization": f"Bearer {token}"}
            reply = client.post("/functions/written", headers=headers)

    assert reply.json() == {"result": []}
