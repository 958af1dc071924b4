"""An app mounted in Starlette or FastAPI: under a prefix, at the root, beside another app."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route

from answerback import App, Context
from answerback.auth import OAuth
from answerback.gates import login
from answerback.server.http.server_options import BadOption

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


async def own_page(_: Request) -> JSONResponse:
    return JSONResponse("own")


def in_starlette(prefix: str, app: App) -> Any:
    return Starlette(routes=[Route("/own", own_page), Mount(prefix, app.asgi())])


def in_fastapi(prefix: str, app: App) -> Any:
    outer = FastAPI()
    outer.add_api_route("/own", lambda: "own")
    outer.mount(prefix, app.asgi())
    return outer


def itself_in_starlette(prefix: str, app: App) -> Any:
    return Starlette(routes=[Route("/own", own_page), Mount(prefix, app)])


def itself_in_fastapi(prefix: str, app: App) -> Any:
    outer = FastAPI()
    outer.add_api_route("/own", lambda: "own")
    outer.mount(prefix, app)
    return outer


def send_request(outer: Any, method: str, path: str, **more: Any) -> httpx.Response:
    async def send() -> httpx.Response:
        transport = httpx.ASGITransport(outer)
        async with httpx.AsyncClient(transport=transport, base_url=HERE) as client:
            return await client.request(method, path, **more)

    return asyncio.run(asyncio.wait_for(send(), 60))


@pytest.mark.parametrize(
    "mount", [in_starlette, in_fastapi, itself_in_starlette, itself_in_fastapi]
)
@pytest.mark.parametrize("prefix", ["/tools", "/a/b"])
def test_a_mounted_app_serves_under_its_prefix_only(mount: Any, prefix: str) -> None:
    outer = mount(prefix, app_that_adds(0))

    called = send_request(outer, "POST", f"{prefix}/functions/add", json={"x": 7, "y": 3})
    unknown = send_request(outer, "POST", f"{prefix}/functions/nope", json={})
    listed = send_request(outer, "GET", f"{prefix}/functions").json()
    health = send_request(outer, "GET", f"{prefix}/healthz").json()
    outside = send_request(outer, "POST", "/functions/add", json={"x": 7, "y": 3})

    assert called.json() == {"result": 10}
    assert unknown.json() == {"error": "Function not found: nope"}
    assert [tool["name"] for tool in listed] == ["add"]
    assert health["name"] == "add0"
    assert outside.status_code == 404
    assert send_request(outer, "GET", "/own").json() == "own"


@pytest.mark.parametrize("mount", [in_starlette, in_fastapi])
def test_openapi_names_the_prefix_of_a_mounted_app(mount: Any) -> None:
    outer = mount("/tools", app_that_adds(0))

    document = send_request(outer, "GET", "/tools/openapi.json").json()

    (server,) = document["servers"]
    (path,) = (path for path in document["paths"] if path.endswith("/add"))
    url = httpx.URL(HERE).join(server["url"]).path.rstrip("/") + path
    assert send_request(outer, "POST", url, json={"x": 7, "y": 3}).json() == {"result": 10}


def test_one_app_mounted_twice_has_a_document_for_each_prefix() -> None:
    application = app_that_adds(0).asgi()
    outer = Starlette(routes=[Mount("/one", application), Mount("/two", application)])

    documents = [
        send_request(outer, "GET", f"/{at}/openapi.json").json() for at in ("one", "two", "one")
    ]

    assert [document["servers"][0]["url"] for document in documents] == ["/one", "/two", "/one"]


def test_two_apps_can_be_mounted_side_by_side() -> None:
    outer = Starlette(
        routes=[
            Mount("/one", app_that_adds(1).asgi()),
            Mount("/two", app_that_adds(2, "envelope").asgi()),
        ]
    )

    one = send_request(outer, "POST", "/one/functions/add", json={"x": 7, "y": 3})
    two = send_request(outer, "POST", "/two/functions/add", json={"x": 7, "y": 3})

    assert one.json() == {"result": 11}
    assert two.json()["data"] == {"result": 12}
    assert send_request(outer, "GET", "/one/nowhere").json() == {"error": "Not found: /one/nowhere"}
    assert send_request(outer, "GET", "/two/nowhere").json()["success"] is False


def test_an_app_with_the_direct_contract_can_be_mounted() -> None:
    outer = in_starlette("/tools", app_that_adds(0, "direct"))

    response = send_request(outer, "POST", "/tools/add", json={"x": 7, "y": 3})

    assert response.json()["structuredContent"] == {"result": 10}
    assert send_request(outer, "GET", "/tools/healthz").json()["name"] == "add0"


def test_an_app_can_be_mounted_at_the_root() -> None:
    outer = Starlette(routes=[Route("/own", own_page), Mount("/", app_that_adds(0).asgi())])

    assert send_request(outer, "POST", "/functions/add", json={"x": 7, "y": 3}).json() == {
        "result": 10
    }
    assert send_request(outer, "GET", "/own").json() == "own"


def test_a_signal_handler_of_the_program_does_not_keep_a_mounted_app_in_memory() -> None:
    def signals() -> dict[signal.Signals, Any]:
        return {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}

    async def served() -> weakref.ref[Any]:
        asgi = app_that_adds(0).asgi()
        transport = httpx.ASGITransport(asgi)
        async with httpx.AsyncClient(transport=transport, base_url=HERE) as client:
            assert (await client.get("/openapi.json")).is_success
        return weakref.ref(asgi)

    before = signals()
    signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        left = asyncio.run(served())
        was_wrapped = signals() != before
        gc.collect()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

    assert was_wrapped
    assert left() is None


def test_a_mounted_app_refuses_a_foreign_host() -> None:
    outer = in_starlette("/tools", app_that_adds(0))

    response = send_request(
        outer, "POST", "/tools/functions/add", json={}, headers={"Host": "evil.com"}
    )

    assert response.status_code == 421


@pytest.mark.filterwarnings("ignore")  # The test client has a warning about httpx.
def test_the_lifespan_of_the_outer_app_runs_and_ours_does_nothing() -> None:
    from starlette.testclient import TestClient

    events: list[str] = []

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        events.append("startup")
        yield
        events.append("shutdown")

    application = app_that_adds(0).asgi()
    outer = Starlette(routes=[Mount("/tools", application)], lifespan=lifespan)

    with TestClient(outer, base_url=HERE) as client:
        mounted = client.post("/tools/functions/add", json={"x": 7, "y": 3})
    with TestClient(application, base_url=HERE) as client:
        alone = client.post("/functions/add", json={"x": 7, "y": 3})

    assert events == ["startup", "shutdown"]
    assert mounted.json() == alone.json() == {"result": 10}


def test_a_root_path_of_the_server_is_named_in_openapi() -> None:
    """uvicorn's `--root-path`: the path has the prefix that the client sent."""
    document = send_request(_with_root("/api", app_that_adds(0)), "GET", "/api/openapi.json").json()

    assert document["servers"] == [{"url": "/api"}]


def _with_root(root: str, app: App) -> Any:
    application = app.asgi()

    async def outer(scope: Any, receive: Any, send: Any) -> None:
        await application({**scope, "root_path": root}, receive, send)

    return outer


def test_a_root_path_that_is_only_the_start_of_a_segment_is_not_removed() -> None:
    async def send() -> httpx.Response:
        transport = httpx.ASGITransport(app_that_adds(0).asgi(), root_path="/func")
        async with httpx.AsyncClient(transport=transport, base_url=HERE) as client:
            return await client.post("/functions/add", json={"x": 7, "y": 3})

    assert asyncio.run(send()).json() == {"result": 10}


@pytest.mark.parametrize("body", [b'{"x":', STATELESS_CALL])
def test_middleware_gets_a_response_even_if_the_client_disconnects(body: bytes) -> None:
    """Starlette's BaseHTTPMiddleware raises an error if there is no response."""
    app = App("left")
    began = asyncio.Event()

    @app.tool
    async def wait() -> None:
        began.set()
        await asyncio.sleep(60)

    async def pass_on(request: Request, call_next: Any) -> Response:
        response: Response = await call_next(request)
        return response

    outer = Starlette(routes=[Mount("/tools", app.asgi())])
    outer.add_middleware(BaseHTTPMiddleware, dispatch=pass_on)
    whole = body is STATELESS_CALL
    messages = iter([{"type": "http.request", "body": body, "more_body": not whole}])

    async def receive() -> Any:
        if (message := next(messages, None)) is not None:
            return message
        if whole:
            await began.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    sent: list[Any] = []
    path = "/tools/mcp" if whole else "/tools/functions/wait"
    headers = [(name.lower().encode(), value.encode()) for name, value in STATELESS_HEADERS.items()]
    scope = {"type": "http", "method": "POST", "path": path, "headers": headers}
    asyncio.run(asyncio.wait_for(outer({**scope, "query_string": b""}, receive, send), 60))

    # Nobody reads this response; without it the middleware would have raised an error.
    assert [message["type"] for message in sent][:1] == ["http.response.start"]


def test_a_running_tool_sees_that_its_rest_client_disconnected() -> None:
    """Under our own server the connection tells; elsewhere only ASGI's messages do."""
    app = App("waiting")
    began, stopped = threading.Event(), threading.Event()

    @app.tool
    def wait(ctx: Context) -> None:
        began.set()
        for _ in range(1000):
            if ctx.cancelled:
                stopped.set()
                return
            time.sleep(0.01)

    messages = iter([{"type": "http.request", "body": b"{}", "more_body": False}])

    async def receive() -> Any:
        if (message := next(messages, None)) is not None:
            return message
        await asyncio.to_thread(began.wait, 60)
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        pass

    headers = [(b"host", b"127.0.0.1"), (b"content-type", b"application/json")]
    scope = {"type": "http", "method": "POST", "path": "/functions/wait", "headers": headers}

    async def call() -> None:
        await asyncio.wait_for(app.asgi()(scope, receive, send), 60)

    asyncio.run(call())

    assert stopped.is_set()


@pytest.mark.parametrize(
    ("workers", "secret", "warnings"), [("2", "", 2), ("1", "", 0), ("2", "of enough bytes!", 0)]
)
def test_several_workers_of_another_server_warn_that_they_need_a_secret(
    tmp_path: Path, workers: str, secret: str, warnings: int
) -> None:
    (tmp_path / "mounted.py").write_text(
        "from answerback import App\nouter = App('tools').asgi()\n"
    )
    options = ["--port", "0", "--workers", workers, "mounted:outer"]
    command = [sys.executable, "-m", "uvicorn", *options]
    environ = os.environ | {"ANSWERBACK_SECRET": secret}
    lines: list[str] = []
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, cwd=tmp_path, env=environ
    ) as server:
        assert server.stderr is not None
        try:
            while sum("startup complete" in line for line in lines) < int(workers):
                lines.append(server.stderr.readline())
                assert lines[-1], "the server ended"
        finally:
            server.terminate()

    assert sum("ANSWERBACK_SECRET is not set" in line for line in lines) == warnings


MCP_PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


def test_mcp_is_served_at_a_path_of_ones_own() -> None:
    app = app_that_adds(0)
    outer = FastAPI()
    outer.mount("/mcp", app.asgi(mcp="/"))
    outer.mount("/other", app.asgi(mcp="/for/models"))

    for path in ("/mcp/", "/other/for/models", "/other/for/models/"):
        assert send_request(outer, "POST", path, json=MCP_PING).json()["result"] == {}, path
    moved = send_request(outer, "POST", "/other/mcp", json=MCP_PING)
    called = send_request(outer, "POST", "/mcp/functions/add", json={"x": 1, "y": 2})

    assert moved.status_code == 404
    assert moved.json() == {"error": "Not found: /other/mcp; MCP is at /other/for/models"}
    assert called.json() == {"result": 3}


def test_mcp_is_served_at_the_exact_path_of_a_route() -> None:
    outer = FastAPI()
    outer.add_route("/mcp", app_that_adds(0).asgi(rest=False))  # type: ignore[arg-type]

    assert send_request(outer, "POST", "/mcp", json=MCP_PING).json()["result"] == {}


def test_without_rest_only_mcp_health_and_own_pages_are_served() -> None:
    app = app_that_adds(0)
    app.route("/page")(own_page)
    outer = app.asgi(rest=False)
    add = {"x": 1, "y": 2}

    found = {
        path: send_request(outer, "POST" if body else "GET", path, json=body).status_code
        for path, body in {
            "/functions/add": add,
            "/message": MCP_PING,
            "/mcp": MCP_PING,
            "/functions": None,
            "/openapi.json": None,
            "/healthz": None,
            "/readyz": None,
            "/page": None,
        }.items()
    }

    assert [path for path, status in found.items() if status == 200] == [
        *("/mcp", "/healthz", "/readyz", "/page")
    ]
    assert set(found.values()) == {200, 404}


@pytest.mark.parametrize("path", ["mcp", "/mcp/", "/functions/mcp", "/healthz", "/a b", "", "//"])
def test_a_path_that_mcp_cannot_have_is_refused(path: str) -> None:
    with pytest.raises(BadOption, match=r"cannot be the MCP path"):
        app_that_adds(0).asgi(mcp=path)


def test_the_console_needs_rest() -> None:
    with pytest.raises(BadOption, match=r"console=True needs rest=True"):
        app_that_adds(0).asgi(rest=False, console=True)


@pytest.mark.parametrize("mount", [in_starlette, in_fastapi])
def test_the_root_of_a_mounted_app_names_the_address_of_mcp(mount: Any) -> None:
    outer = mount("/mcp", app_that_adds(0))

    refused = send_request(outer, "POST", "/mcp/", json=MCP_PING)

    assert refused.status_code == 404
    assert refused.json()["error"] == (
        "Not found: /mcp/; MCP is at /mcp/mcp; see /mcp/functions and /mcp/openapi.json"
    )


LOGIN = OAuth(issuer="https://login.example.com", url="https://example.com/tools/mcp")


async def with_user(scope: Any, receive: Any, send: Any) -> None:
    await app_that_adds(0)({**scope, "user": "anna"}, receive, send)


@pytest.mark.parametrize(
    ("outer", "lines"),
    [
        (app_that_adds(0), 1),
        (app_that_adds(0).asgi(auth=False), 0),
        (App("gated", requires=[login()]), 0),
        (App("authenticated", auth=LOGIN), 0),
        (with_user, 0),
    ],
)
def test_a_mounted_app_that_nothing_authenticates_says_so_once(
    outer: Any, lines: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "answerback")
    mounted = Starlette(routes=[Mount("/tools", outer)])

    for _ in range(2):
        send_request(mounted, "GET", "/tools/functions")

    said = [each.getMessage() for each in caplog.records if "authenticat" in each.getMessage()]
    assert len(said) == lines
    assert all("app.asgi(auth=False)" in each for each in said)


def test_an_app_of_its_own_says_nothing_about_authentication(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "answerback")

    send_request(app_that_adds(0), "GET", "/functions")

    assert caplog.records == []


def test_auth_false_is_refused_for_an_app_that_authenticates() -> None:
    with pytest.raises(BadOption, match=r"auth=False is for an app without auth="):
        App("authenticated", auth=LOGIN).asgi(auth=False)
