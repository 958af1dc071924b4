"""The app as a part of another: under a prefix, side by side, in memory."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route

from answerback import App

HERE = "http://127.0.0.1"
PREFIX = "io.modelcontextprotocol/"
META = {PREFIX + "protocolVersion": "2026-07-28", PREFIX + "clientCapabilities": {}}
STATELESS_CALL = json.dumps(
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "wait", "arguments": {}, "_meta": META},
    }
).encode()
STATELESS_HEADERS = {
    "Host": "127.0.0.1",
    "Content-Type": "application/json",
    "MCP-Protocol-Version": "2026-07-28",
    "Mcp-Method": "tools/call",
    "Mcp-Name": "wait",
}


def app_that_adds(extra: int, contract: str = "standard") -> App:
    app = App(f"add{extra}", contract=contract)

    @app.tool
    def add(x: int, y: int) -> int:
        """Add two numbers."""
        return x + y + extra

    return app


async def own(_: Request) -> JSONResponse:
    return JSONResponse("own")


def in_starlette(prefix: str, app: App) -> Any:
    return Starlette(routes=[Route("/own", own), Mount(prefix, app.asgi())])


def in_fastapi(prefix: str, app: App) -> Any:
    outer = FastAPI()
    outer.add_api_route("/own", lambda: "own")
    outer.mount(prefix, app.asgi())
    return outer


def ask(outer: Any, method: str, path: str, **more: Any) -> httpx.Response:
    async def send() -> httpx.Response:
        transport = httpx.ASGITransport(outer)
        async with httpx.AsyncClient(transport=transport, base_url=HERE) as client:
            return await client.request(method, path, **more)

    return asyncio.run(asyncio.wait_for(send(), 20))


@pytest.mark.parametrize("mounted", [in_starlette, in_fastapi])
@pytest.mark.parametrize("prefix", ["/tools", "/a/b"])
def test_everything_is_under_the_prefix_and_the_rest_stays_where_it_was(
    mounted: Any, prefix: str
) -> None:
    outer = mounted(prefix, app_that_adds(0))

    called = ask(outer, "POST", f"{prefix}/functions/add", json={"x": 7, "y": 3})
    unknown = ask(outer, "POST", f"{prefix}/functions/nope", json={})
    listed = ask(outer, "GET", f"{prefix}/functions").json()
    health = ask(outer, "GET", f"{prefix}/healthz").json()
    outside = ask(outer, "POST", "/functions/add", json={"x": 7, "y": 3})

    assert called.json() == {"result": 10}
    assert unknown.json() == {"error": "Function not found: nope"}
    assert [tool["name"] for tool in listed] == ["add"]
    assert health["name"] == "add0"
    assert outside.status_code == 404
    assert ask(outer, "GET", "/own").json() == "own"


@pytest.mark.parametrize("mounted", [in_starlette, in_fastapi])
def test_openapi_says_where_the_functions_are(mounted: Any) -> None:
    outer = mounted("/tools", app_that_adds(0))

    document = ask(outer, "GET", "/tools/openapi.json").json()

    (server,) = document["servers"]
    (path,) = (path for path in document["paths"] if path.endswith("/add"))
    url = httpx.URL(HERE).join(server["url"]).path.rstrip("/") + path
    assert ask(outer, "POST", url, json={"x": 7, "y": 3}).json() == {"result": 10}


def test_openapi_says_the_same_each_time_and_for_each_place() -> None:
    site = app_that_adds(0).asgi()
    outer = Starlette(routes=[Mount("/one", site), Mount("/two", site)])

    found = [ask(outer, "GET", f"/{at}/openapi.json").json() for at in ("one", "two", "one")]

    assert [document["servers"][0]["url"] for document in found] == ["/one", "/two", "/one"]


def test_two_apps_stand_side_by_side() -> None:
    outer = Starlette(
        routes=[
            Mount("/one", app_that_adds(1).asgi()),
            Mount("/two", app_that_adds(2, "envelope").asgi()),
        ]
    )

    one = ask(outer, "POST", "/one/functions/add", json={"x": 7, "y": 3})
    two = ask(outer, "POST", "/two/functions/add", json={"x": 7, "y": 3})

    assert one.json() == {"result": 11}
    assert two.json()["data"] == {"result": 12}
    assert ask(outer, "GET", "/one/nowhere").json() == {"error": "Not found: /one/nowhere"}
    assert ask(outer, "GET", "/two/nowhere").json()["success"] is False


def test_a_contract_whose_functions_are_at_the_root_mounts_too() -> None:
    outer = in_starlette("/tools", app_that_adds(0, "direct"))

    found = ask(outer, "POST", "/tools/add", json={"x": 7, "y": 3})

    assert found.json()["structuredContent"] == {"result": 10}
    assert ask(outer, "GET", "/tools/healthz").json()["name"] == "add0"


def test_an_app_at_the_root_of_another_is_found() -> None:
    outer = Starlette(routes=[Route("/own", own), Mount("/", app_that_adds(0).asgi())])

    assert ask(outer, "POST", "/functions/add", json={"x": 7, "y": 3}).json() == {"result": 10}
    assert ask(outer, "GET", "/own").json() == "own"


def test_the_guard_looks_at_mounted_apps_too() -> None:
    outer = in_starlette("/tools", app_that_adds(0))

    found = ask(outer, "POST", "/tools/functions/add", json={}, headers={"Host": "evil.com"})

    assert found.status_code == 421


@pytest.mark.filterwarnings("ignore")  # The test client's own, about httpx.
def test_the_lifespan_of_the_outer_app_is_its_own_and_ours_is_silent() -> None:
    from starlette.testclient import TestClient

    seen: list[str] = []

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        seen.append("up")
        yield
        seen.append("down")

    site = app_that_adds(0).asgi()
    outer = Starlette(routes=[Mount("/tools", site)], lifespan=lifespan)

    with TestClient(outer, base_url=HERE) as client:
        mounted = client.post("/tools/functions/add", json={"x": 7, "y": 3})
    with TestClient(site, base_url=HERE) as client:
        alone = client.post("/functions/add", json={"x": 7, "y": 3})

    assert seen == ["up", "down"]
    assert mounted.json() == alone.json() == {"result": 10}


def test_a_prefix_that_a_proxy_took_off_is_told_and_not_looked_for() -> None:
    """uvicorn's `--root-path`: the path comes with the prefix that the caller used."""
    document = ask(_with_root("/api", app_that_adds(0)), "GET", "/api/openapi.json").json()

    assert document["servers"] == [{"url": "/api"}]


def _with_root(root: str, app: App) -> Any:
    site = app.asgi()

    async def outer(scope: Any, receive: Any, send: Any) -> None:
        await site({**scope, "root_path": root}, receive, send)

    return outer


def test_a_prefix_that_only_begins_like_a_path_of_ours_takes_nothing_from_it() -> None:
    async def send() -> httpx.Response:
        transport = httpx.ASGITransport(app_that_adds(0).asgi(), root_path="/func")
        async with httpx.AsyncClient(transport=transport, base_url=HERE) as client:
            return await client.post("/functions/add", json={"x": 7, "y": 3})

    assert asyncio.run(send()).json() == {"result": 10}


@pytest.mark.parametrize("body", [b'{"x":', STATELESS_CALL])
def test_one_who_leaves_is_no_fault_to_middleware_that_wants_an_answer(body: bytes) -> None:
    """Starlette's own raises where there is none."""
    app = App("left")
    began = asyncio.Event()

    @app.tool
    async def wait() -> None:
        began.set()
        await asyncio.sleep(60)

    async def pass_on(request: Request, call_next: Any) -> Response:
        answer: Response = await call_next(request)
        return answer

    outer = Starlette(routes=[Mount("/tools", app.asgi())])
    outer.add_middleware(BaseHTTPMiddleware, dispatch=pass_on)
    whole = body is STATELESS_CALL
    coming = iter([{"type": "http.request", "body": body, "more_body": not whole}])

    async def receive() -> Any:
        if (message := next(coming, None)) is not None:
            return message
        if whole:
            await began.wait()
        return {"type": "http.disconnect"}

    async def send(_: Any) -> None:
        pass

    path = "/tools/mcp" if whole else "/tools/functions/wait"
    headers = [(name.lower().encode(), value.encode()) for name, value in STATELESS_HEADERS.items()]
    scope = {"type": "http", "method": "POST", "path": path, "headers": headers}
    asyncio.run(asyncio.wait_for(outer({**scope, "query_string": b""}, receive, send), 10))
