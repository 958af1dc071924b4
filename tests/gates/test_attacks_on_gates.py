"""Ways around gates that must not work, beside those in the other files."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from tests.gates.named_users import authenticated, gated_app, post, request, rpc

from answerback import App, Context, Invocation, Next
from answerback.core.authentication import User
from answerback.gates import login, scope, subscription
from answerback.testing import TestContext


def bank() -> App:
    app = gated_app()

    def is_rich(ctx: Context) -> bool:
        return bool(ctx.user.subject == "rich")

    @app.resource("note://open")
    def open_note() -> str:
        return "n"

    @app.resource("note://login", requires=[login()])
    def login_note() -> str:
        return "n"

    @app.resource("note://hidden", requires=[scope("admin", hide=True)])
    def hidden_note() -> str:
        return "n"

    @app.resource("note://pro", requires=[subscription("pro", check=is_rich)])
    def pro_note() -> str:
        return "n"

    return app


@pytest.mark.parametrize(
    ("uri", "token", "code"),
    [
        ("note://open", "", None),
        ("note://login", "", "LOGIN_REQUIRED"),
        ("note://login", "bob", None),
        ("note://pro", "bob", "FORBIDDEN"),
        ("note://pro", "rich", "FORBIDDEN"),
    ],
)
def test_a_client_subscribes_only_to_resources_that_its_token_lets_it_read(
    uri: str, token: str, code: str | None
) -> None:
    response = rpc(bank(), "resources/subscribe", token, uri=uri).json()

    assert response.get("error", {}).get("data", {}).get("code") == code


def test_a_hidden_resource_cannot_be_subscribed_to_in_the_same_words_as_an_unknown_one() -> None:
    hidden = rpc(bank(), "resources/subscribe", "bob", uri="note://hidden")
    unknown = rpc(bank(), "resources/subscribe", "bob", uri="note://hiddem")

    assert hidden.text == unknown.text.replace("hiddem", "hidden")


def test_a_stateless_subscription_leaves_out_what_the_token_does_not_let_read() -> None:
    """The stream stays open, so it is read up to its first event."""
    app = bank()
    uris = ["note://open", "note://login", "note://hidden", "note://pro"]
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    body = request(
        "subscriptions/listen", notifications={"resourceSubscriptions": uris}, _meta=meta
    )
    headers = {
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "subscriptions/listen",
        "host": "test",
    }
    scope_: dict[str, Any] = {
        "type": "http",
        "method": "POST",
        "path": "/mcp",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        "query_string": b"",
    }

    async def first_event() -> bytes:
        sent: asyncio.Queue[bytes] = asyncio.Queue()
        messages = iter([{"type": "http.request", "body": json.dumps(body).encode()}])

        async def receive() -> dict[str, Any]:
            for message in messages:
                return message
            await asyncio.Event().wait()
            raise AssertionError

        async def send(message: dict[str, Any]) -> None:
            if found := message.get("body"):
                sent.put_nowait(found)

        task = asyncio.ensure_future(authenticated(app)(scope_, receive, send))
        try:
            return await asyncio.wait_for(sent.get(), 60)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    event = asyncio.run(first_event())

    assert b'"resourceSubscriptions":["note://open"]' in event


def test_middleware_does_not_run_before_the_gates() -> None:
    ran: list[str] = []

    async def watch(call: Invocation, next: Next) -> Any:
        ran.append(call.name)
        return await next(call)

    app = App("bank", middleware=[watch], requires=[login()])

    @app.tool
    def add(x: int) -> int:
        return x

    refused = asyncio.run(app.call("add", x=1))
    served = asyncio.run(app.call("add", x=1, ctx=TestContext(user="anna")))

    assert refused.error is not None
    assert refused.error.code == "LOGIN_REQUIRED"
    assert served.data == 1
    assert ran == ["add"]


def test_a_user_is_not_asked_before_the_gates() -> None:
    from typing import Annotated

    from answerback import Ask

    app = App("bank", requires=[login()])

    @app.tool
    def close(sure: Annotated[bool, Ask("Sure?")]) -> str:
        return "closed"

    ctx = TestContext([True])
    reply = asyncio.run(app.call("close", ctx=ctx))

    assert reply.error is not None
    assert reply.error.code == "LOGIN_REQUIRED"
    assert ctx.questions == []


def test_a_tool_that_calls_another_passes_its_user_on_with_the_context_alone() -> None:
    app = gated_app()

    @app.tool(requires=[login()])
    def inner(ctx: Context) -> str:
        return str(ctx.user.subject)

    @app.tool
    async def with_context(ctx: Context) -> str:
        return str((await app.call("inner", ctx=ctx)).data)

    @app.tool
    async def without() -> str:
        reply = await app.call("inner")
        return reply.error.code if reply.error else "passed"

    for path in ("/functions/with_context", "/functions/without"):
        response = post(app, path, {}, "anna")
        expected = {"with_context": "anna", "without": "LOGIN_REQUIRED"}
        assert response.json() == {"result": expected[path.rpartition("/")[2]]}


def test_arguments_cannot_stand_in_for_the_user() -> None:
    app = gated_app()

    @app.tool(requires=[login()])
    def add(x: int) -> int:
        return x

    for body in ({"x": 1, "ctx": {"user": "anna"}}, {"x": 1, "user": "anna"}):
        response = post(app, "/functions/add", body, "")
        assert response.status_code == 401


def test_a_decision_is_not_kept_for_the_next_call() -> None:
    allowed = {"anna"}
    app = App("bank")

    def check(ctx: Context) -> bool:
        return ctx.user.subject in allowed

    @app.tool(requires=[subscription("pro", check=check)])
    def add(x: int) -> int:
        return x

    anna = TestContext(user=User(subject="anna"))
    first = asyncio.run(app.call("add", x=1, ctx=anna))
    allowed.clear()
    second = asyncio.run(app.call("add", x=1, ctx=anna))

    assert first.ok
    assert second.error is not None
    assert second.error.code == "SUBSCRIPTION_REQUIRED"


def test_the_gates_of_an_app_do_not_hide_the_pages_of_its_widgets() -> None:
    """A host reads the page before its user has logged in; the page has no data."""
    app = gated_app(requires=[login()])
    app.widget("accounts", html="<p>accounts</p>")

    @app.tool(widget="accounts")
    def accounts() -> list[str]:
        return []

    page = rpc(app, "resources/read", uri="ui://widget/accounts.html")
    called = rpc(app, "tools/call", name="accounts", arguments={})

    assert page.status_code == 200
    assert "accounts" in page.json()["result"]["contents"][0]["text"]
    assert called.status_code == 401


@pytest.mark.parametrize("name", ["Bearer\r\nX-Evil: 1", 'a"b', "ü✓"])
def test_a_message_of_an_author_cannot_break_the_header(name: str) -> None:
    from answerback.gates import Refusal

    app = App("bank")

    def refuse(ctx: Context) -> None:
        raise Refusal(f"log in: {name}", "SCOPE_REQUIRED")

    @app.tool(requires=[refuse])
    def add(x: int) -> int:
        return x

    for path, body in (
        ("/functions/add", {"x": 1}),
        ("/mcp", request("tools/call", name="add", arguments={"x": 1})),
    ):
        response = post(app, path, body)

        assert response.status_code == 403
        assert "x-evil" not in response.headers
        assert response.headers["www-authenticate"].isprintable()
