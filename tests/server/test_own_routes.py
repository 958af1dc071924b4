"""Pages of the author's own, beside the tools."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from answerback import App, NotFound
from answerback.auth import ApiKeys


def ask(app: App, method: str, url: str, **options: Any) -> httpx.Response:
    async def send() -> httpx.Response:
        transport = httpx.ASGITransport(app.asgi(hosts=["test"]))
        async with (
            app.running(),
            httpx.AsyncClient(transport=transport, base_url="http://test") as client,
        ):
            return await client.request(method, url, **options)

    return asyncio.run(send())


async def show(request: Request) -> Response:
    return PlainTextResponse(f"{request.method} {request.path_params} {request.query_params}")


@contextmanager
def open_shop() -> Iterator[str]:
    yield "the shop"


def shop(**options: Any) -> App:
    app = App("shop", **options)
    app.route("/plans/{name}", methods=["GET", "POST"])(show)
    app.add_tool(lambda: 1, name="add")
    return app


def test_a_page_gets_its_request() -> None:
    page = ask(shop(), "POST", "/plans/pro?from=tool")

    assert (page.status_code, page.text) == (200, "POST {'name': 'pro'} from=tool")


def test_a_page_needs_no_token_and_the_tools_do() -> None:
    app = shop(auth=ApiKeys({ApiKeys.new().digest: "ci"}))

    assert ask(app, "GET", "/plans/pro").status_code == 200
    assert ask(app, "POST", "/functions/add", json={}).status_code == 401


def test_a_page_of_a_foreign_host_is_refused() -> None:
    assert ask(shop(), "GET", "/plans/pro", headers={"host": "evil.example"}).status_code == 421


def test_a_method_that_a_page_does_not_have_is_refused() -> None:
    refused = ask(shop(), "DELETE", "/plans/pro")

    assert refused.status_code == 405
    assert set(refused.headers["allow"].split(", ")) == {"GET", "HEAD", "POST"}


def test_the_pages_of_an_included_app_are_served() -> None:
    outer = App("outer")
    outer.include(shop(), prefix="shop_")

    assert ask(outer, "GET", "/plans/pro").status_code == 200


def test_a_page_reads_the_value_of_the_lifespan() -> None:
    app = App("shop", lifespan=open_shop)

    @app.route("/name")
    async def name(request: Request) -> Response:
        return PlainTextResponse(app.state)

    assert ask(app, "GET", "/name").text == "the shop"


def test_an_exception_of_a_page_is_logged_and_not_shown(caplog: pytest.LogCaptureFixture) -> None:
    app = App("shop")

    @app.route("/broken")
    async def broken(request: Request) -> Response:
        raise RuntimeError("password=hunter2")

    answer = ask(app, "GET", "/broken")

    assert (answer.status_code, answer.json()) == (500, {"error": "Internal server error"})
    assert "hunter2" in caplog.text


def test_a_page_refuses_as_a_tool_does(caplog: pytest.LogCaptureFixture) -> None:
    app = App("shop")

    @app.route("/plans/{name}")
    async def plan(request: Request) -> Response:
        raise NotFound("there is no such plan", code="NO_PLAN", hint="see /plans")

    answer = ask(app, "GET", "/plans/gold")

    assert (answer.status_code, answer.json()) == (404, {"error": "there is no such plan"})
    assert answer.headers["X-Error-Code"] == "NO_PLAN"
    assert answer.headers["X-Error-Hint"] == "see /plans"
    assert not caplog.records


def test_a_page_that_refuses_with_a_foreign_exception_does_not_show_it() -> None:
    app = App("shop")

    @app.route("/broken")
    async def broken(request: Request) -> Response:
        raise NotFound(RuntimeError("password=hunter2"))  # type: ignore[arg-type]  # a mistake

    answer = ask(app, "GET", "/broken")

    assert answer.status_code == 404
    assert "hunter2" not in answer.text


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("plans", "begins with a slash"),
        ("/mcp", "the server's own"),
        ("/functions/add", "the server's own"),
        ("/.well-known/x", "the server's own"),
        ("/plans/{name}", "already"),
    ],
)
def test_a_path_that_cannot_be_a_page_is_refused(path: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        shop().route(path)


def test_a_forgotten_path_is_explained() -> None:
    with pytest.raises(TypeError, match=r"@app.route takes a path"):
        App("shop").route(show)  # type: ignore[arg-type]  # as an author might write it


@pytest.mark.parametrize(("size", "status"), [(1000, 200), (1001, 413)])
def test_a_body_that_is_too_large_is_not_given_to_a_page(size: int, status: int) -> None:
    """It comes in two chunks, of which each is small enough."""
    app = App("shop")

    @app.route("/upload", methods=["POST"])
    async def upload(request: Request) -> Response:
        return PlainTextResponse(str(len(await request.body())))

    async def chunks() -> AsyncIterator[bytes]:
        yield b"x" * 500
        yield b"x" * (size - 500)

    async def send() -> httpx.Response:
        transport = httpx.ASGITransport(app.asgi(hosts=["test"], max_body=1000))
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            return await client.post("/upload", content=chunks())

    assert asyncio.run(send()).status_code == status


def test_a_client_that_leaves_during_its_upload_is_not_an_error_of_the_page(
    caplog: pytest.LogCaptureFixture,
) -> None:
    app = App("shop")

    @app.route("/upload", methods=["POST"])
    async def upload(request: Request) -> Response:
        return PlainTextResponse(str(len(await request.body())))

    scope: dict[str, Any] = {
        **{"type": "http", "method": "POST", "path": "/upload", "query_string": b""},
        **{"headers": [(b"host", b"test")], "server": ("test", 80), "client": ("test", 1)},
    }
    messages: list[dict[str, Any]] = [
        {"type": "http.request", "body": b"half", "more_body": True},
        {"type": "http.disconnect"},
    ]
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return messages.pop(0)

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(app.asgi(hosts=["test"])(scope, receive, send))

    assert (messages, sent, caplog.records) == ([], [], [])
