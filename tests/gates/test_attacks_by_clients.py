"""Requests that a hostile client sends to get past gates, or to learn what they hide."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import pytest
from tests.gates.named_users import authenticated, gated_app, post, request, rpc

from answerback import App, Context
from answerback.gates import Refusal, login, scope


def guides() -> App:
    app = gated_app()

    @app.prompt(requires=[scope("staff")])
    def staff_guide(topic: str) -> str:
        return topic

    @app.completion("staff_guide", "topic")
    def topics(value: str) -> list[str]:
        return ["layoffs"]

    @app.resource("guide://{topic}")
    def guide(topic: str) -> str:
        return topic

    @app.resource("staff://{topic}", requires=[scope("staff")])
    def staff_page(topic: str) -> str:
        return topic

    @app.completion("staff://{topic}", "topic")
    def pages(value: str) -> list[str]:
        return ["payroll"]

    @app.prompt
    def open_guide(topic: str) -> str:
        return topic

    return app


@pytest.mark.parametrize("era", ["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize(
    "reference",
    [
        {"type": "ref/resource", "uri": "guide://{topic}", "name": "staff_guide"},
        {"type": "ref/prompt", "name": "open_guide", "uri": "staff://{topic}"},
    ],
)
def test_a_reference_to_two_entries_completes_only_the_one_of_its_type(
    era: str, reference: dict[str, Any]
) -> None:
    argument = {"name": "topic", "value": ""}

    response = rpc(guides(), "completion/complete", era=era, ref=reference, argument=argument)

    assert response.json()["result"]["completion"]["values"] == []


@pytest.mark.parametrize(
    "reference",
    [
        {"type": "ref/resource", "uri": "staff://{topic}", "name": "open_guide"},
        {"type": "ref/prompt", "name": "staff_guide", "uri": "guide://{topic}"},
    ],
)
def test_a_second_name_in_a_reference_does_not_change_the_challenge(
    reference: dict[str, Any],
) -> None:
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "completion/complete",
        "params": {"ref": reference, "argument": {"name": "topic", "value": ""}},
    }

    response = post(guides(), "/mcp", body, accept="text/event-stream, application/json")

    assert response.status_code == 401
    assert 'scope="staff"' in response.headers["www-authenticate"]


HOSTILE = 'x"\r\nSet-Cookie: session=evil\r\n\r\n€'


def told(name: str) -> App:
    """An app whose gate repeats an argument of the client in its refusal."""
    app = gated_app()

    def refuse(ctx: Context, text: str) -> None:
        if name == "scope":
            raise Refusal(f"Not for {text}", "SCOPE_REQUIRED", scopes=("read", text))
        raise Refusal("Link it", "LINK_REQUIRED", url=f"https://example.com/link?for={text}")

    @app.tool(requires=[refuse])
    def tool(text: str) -> str:
        return text

    return app


def test_a_link_of_a_refusal_cannot_add_a_header() -> None:
    response = post(told("link"), "/functions/tool", {"text": HOSTILE})

    assert response.status_code == 403
    expected = (
        "https://example.com/link?for=x%22%0D%0ASet-Cookie:%20session=evil%0D%0A%0D%0A%E2%82%AC"
    )
    assert response.headers["x-error-url"] == expected


@pytest.mark.parametrize("path", ["/functions/tool", "/mcp", "/message"])
def test_the_message_of_a_refusal_cannot_add_a_header_or_a_parameter(path: str) -> None:
    arguments = {"text": HOSTILE}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    body |= {"params": {"name": "tool", "arguments": arguments}}

    response = post(told("scope"), path, arguments if path == "/functions/tool" else body, "bob")

    assert response.status_code == 403
    challenge = response.headers["www-authenticate"]
    assert challenge.isprintable()
    assert challenge.isascii()
    # The quotation marks of error, error_description, scope and resource_metadata.
    assert challenge.count('"') == 8


def test_the_log_does_not_show_the_value_that_a_gate_returned(
    caplog: pytest.LogCaptureFixture,
) -> None:
    app = gated_app()

    def returns_a_secret(ctx: Context) -> Any:
        return {"card": "4111-1111"}

    @app.tool(requires=[returns_a_secret])
    def tool() -> int:
        return 1

    response = post(app, "/functions/tool", {}, "bob")

    assert response.status_code == 500
    assert "gate 'returns_a_secret' returned dict" in caplog.text
    assert "4111" not in caplog.text


def frames_of(app: App, uris: list[str], changed: list[str]) -> list[bytes]:
    """The frames of a subscription to *uris*, up to the one that tells of the last change."""

    async def listen() -> list[bytes]:
        frames: list[bytes] = []
        done = asyncio.Event()
        meta = {"protocolVersion": "2026-07-28", "clientCapabilities": {}}
        params: Any = {
            "notifications": {"resourceSubscriptions": uris},
            "_meta": {f"io.modelcontextprotocol/{name}": value for name, value in meta.items()},
        }
        body = json.dumps(request("subscriptions/listen", **params)).encode()
        headers = {
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
            "host": "test",
            "mcp-protocol-version": "2026-07-28",
            "mcp-method": "subscriptions/listen",
        }
        pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
        scope = {"type": "http", "method": "POST", "path": "/mcp", "headers": pairs}
        messages = [{"type": "http.request", "body": body}]

        async def receive() -> Any:
            if messages:
                return messages.pop()
            await done.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            if not message.get("body"):
                return
            frames.append(message["body"])
            if len(frames) == 1:
                for uri in changed:
                    app.resource_changed(uri)
            if not changed or (len(frames) > 1 and changed[-1].encode() in frames[-1]):
                done.set()

        async with asyncio.timeout(60):
            await authenticated(app)(scope, receive, send)
        return frames

    return asyncio.run(listen())


def test_a_subscription_to_a_hidden_resource_is_acknowledged_as_one_to_an_unknown_one() -> None:
    app = gated_app()

    @app.resource("note://hidden", requires=[scope("admin", hide=True)])
    def hidden_note() -> str:
        return "n"

    @app.resource("note://login", requires=[scope("admin")])
    def login_note() -> str:
        return "n"

    found = frames_of(app, ["note://hidden", "note://login", "note://unknown"], [])[0]

    assert (b"note://hidden" in found) == (b"note://unknown" in found)
    assert b"note://login" not in found


def test_a_subscription_cannot_name_more_resources_than_a_session() -> None:
    uris = [f"note://{number}" for number in range(1001)]
    notifications = {"resourceSubscriptions": uris}

    response = rpc(guides(), "subscriptions/listen", era="2026-07-28", notifications=notifications)

    assert response.status_code == 400
    assert response.json()["error"]["message"] == "More than 1000 subscriptions"


@pytest.mark.parametrize("era", ["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("method", ["resources/read", "resources/subscribe"])
def test_a_hidden_resource_is_as_unknown_where_a_template_serves_every_other_name(
    era: str, method: str
) -> None:
    app = gated_app()

    @app.resource("note://{name}")
    def note(name: str) -> str:
        return f"the note {name}"

    @app.resource("note://payroll", requires=[scope("admin", hide=True)])
    def payroll() -> str:
        return "secret"

    hidden = rpc(app, method, "bob", era=era, uri="note://payroll")
    unknown = rpc(app, method, "bob", era=era, uri="note://nothing")

    assert hidden.status_code == unknown.status_code
    assert hidden.text == unknown.text.replace("nothing", "payroll")


def test_changes_of_a_hidden_resource_are_not_told_to_those_who_subscribed_to_its_name() -> None:
    app = gated_app()

    @app.resource("note://{name}")
    def note(name: str) -> str:
        return name

    @app.resource("note://payroll", requires=[scope("admin", hide=True)])
    def payroll() -> str:
        return "secret"

    frames = frames_of(app, ["note://payroll", "note://one"], ["note://payroll", "note://one"])

    assert b"note://payroll" in frames[0]
    assert [b"note://payroll" in frame for frame in frames[1:]] == [False]


@pytest.mark.parametrize("user", ["", False, 0, None])
def test_a_user_of_middleware_that_is_empty_is_not_logged_in(user: Any) -> None:
    app = App("bank")

    @app.tool(requires=[login()])
    def balance() -> int:
        return 1

    serve: Any = app.asgi(hosts=["test"])

    async def with_user(scope: Any, receive: Any, send: Any) -> None:
        await serve({**scope, "user": user}, receive, send)

    async def send() -> httpx.Response:
        transport = httpx.ASGITransport(with_user)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            return await client.post("/functions/balance", json={})

    assert asyncio.run(send()).status_code == 401
