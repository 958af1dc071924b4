"""What belongs to one user: sessions, streams, questions and records."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.auth.conftest import WallClock
from tests.auth.issuer import URL, Issuer
from tests.auth.requests import CALL, Caller, oauth_caller
from tests.loop_clock import advance_clock

from answerback import App, Context
from answerback.auth import OAuth
from answerback.records import JSONL

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {"elicitation": {}},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
PREFIX = "io.modelcontextprotocol/"
META = {
    f"{PREFIX}protocolVersion": "2026-07-28",
    f"{PREFIX}clientInfo": {"name": "test", "version": "1"},
    f"{PREFIX}clientCapabilities": {"elicitation": {"form": {}}},
}
BOUND = 60


def bearer(token: str, **more: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}", **more}


def session_of(caller: Caller, token: str | None) -> str:
    headers = {} if token is None else bearer(token)
    id: str = caller.send("POST", "/mcp", headers, json=INITIALIZE).headers["mcp-session-id"]
    return id


def in_session(caller: Caller, session: str, token: str | None, method: str = "POST") -> int:
    headers = {"Mcp-Session-Id": session} | ({} if token is None else bearer(token))
    options: dict[str, Any] = {"json": CALL} if method == "POST" else {}
    return caller.send(method, "/mcp", headers, **options).status_code


@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
def test_the_session_of_another_user_is_unknown(
    caller: Caller, issuer: Issuer, method: str
) -> None:
    session = session_of(caller, issuer.token())

    status = in_session(caller, session, issuer.token(sub="mallory"), method)

    assert status == 404
    assert in_session(caller, session, issuer.token(jti="another token of alice")) == 200
    assert caller.ran == ["alice"]


def test_a_session_of_a_user_is_unknown_without_a_token(issuer: Issuer) -> None:
    caller = oauth_caller(issuer, anonymous=True)
    session = session_of(caller, issuer.token())

    assert in_session(caller, session, None) == 404
    assert caller.ran == []


def test_an_anonymous_session_goes_on_after_a_login(issuer: Issuer) -> None:
    caller = oauth_caller(issuer, anonymous=True)
    session = session_of(caller, None)

    assert in_session(caller, session, None) == 200
    assert in_session(caller, session, issuer.token()) == 200
    assert in_session(caller, session, issuer.token(), "DELETE") == 204
    assert in_session(caller, session, issuer.token()) == 404
    assert in_session(caller, session, None) == 200


def test_request_state_of_another_user_is_refused(issuer: Issuer) -> None:
    app = App("asking", auth=OAuth(issuer=issuer.url, url=URL))

    @app.tool
    async def delete(ctx: Context) -> str:
        return f"{await ctx.elicit('Really?', bool)}"

    caller = Caller(app.auth)
    caller.asgi = app.asgi()

    def call(token: str, **more: Any) -> Any:
        params = {"name": "delete", "arguments": {}, "_meta": META, **more}
        headers = bearer(token) | {
            "Mcp-Protocol-Version": "2026-07-28",
            "Mcp-Method": "tools/call",
            "Mcp-Name": "delete",
        }
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        return caller.send("POST", "/mcp", headers, json=body).json()

    asked = call(issuer.token())["result"]
    key = next(iter(asked["inputRequests"]))
    answer = {
        "requestState": asked["requestState"],
        "inputResponses": {key: {"action": "accept", "content": {"value": True}}},
    }
    mallory = call(issuer.token(sub="mallory"), **answer)
    alice = call(issuer.token(jti="again"), **answer)

    assert mallory["error"]["message"] == "Invalid requestState"
    assert alice["result"]["content"][0]["text"] == "True"


class Streamed:
    """A response of the app that is read while it is sent."""

    def __init__(self) -> None:
        self.status = 0
        self.events: asyncio.Queue[bytes] = asyncio.Queue()
        self.started = asyncio.Event()
        self.ended = asyncio.Event()

    async def send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.started.set()
        elif message.get("body"):
            self.events.put_nowait(message["body"])
        if message["type"] == "http.response.body" and not message.get("more_body"):
            self.ended.set()


@asynccontextmanager
async def streaming(
    app: Any, method: str, headers: dict[str, str], body: Any = None
) -> AsyncIterator[Streamed]:
    streamed = Streamed()
    first = [{"type": "http.request", "body": b"" if body is None else json.dumps(body).encode()}]

    async def receive() -> Any:
        return first.pop() if first else await asyncio.Event().wait()

    sent = {"Content-Type": "application/json", **headers}
    scope = {
        "type": "http",
        "method": method,
        "path": "/mcp",
        "query_string": b"",
        "headers": [(name.lower().encode(), value.encode()) for name, value in sent.items()]
        + [(b"host", b"127.0.0.1")],
        "server": ("127.0.0.1", 80),
        "client": ("127.0.0.1", 1),
    }
    task = asyncio.ensure_future(app(scope, receive, streamed.send))
    try:
        yield streamed
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def streaming_app(issuer: Issuer) -> tuple[App, asyncio.Event]:
    """An app with a slow tool, and the event that the tool was cancelled."""
    cancelled = asyncio.Event()
    app = App("streams", auth=OAuth(issuer=issuer.url, url=URL))

    @app.tool
    async def slow(ctx: Context) -> str:
        ctx.progress(1)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return "done"

    return app, cancelled


def session_in(app: Any, token: str) -> str:
    async def open_session() -> str:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            reply = await client.post("/mcp", json=INITIALIZE, headers=bearer(token))
            return reply.headers["mcp-session-id"]

    return asyncio.run(open_session())


def listen_request() -> tuple[dict[str, str], Any]:
    headers = {"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "subscriptions/listen"}
    params = {"_meta": META, "notifications": {"toolsListChanged": True}}
    return headers, {"jsonrpc": "2.0", "id": 5, "method": "subscriptions/listen", "params": params}


def slow_call(version: str) -> tuple[dict[str, str], Any]:
    meta: dict[str, Any] = {"progressToken": 1}
    headers = {"Accept": "application/json, text/event-stream"}
    if version == "2026-07-28":
        meta |= META
        headers |= {
            "Mcp-Protocol-Version": version,
            "Mcp-Method": "tools/call",
            "Mcp-Name": "slow",
        }
    params = {"name": "slow", "arguments": {}, "_meta": meta}
    return headers, {"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": params}


@pytest.mark.parametrize("kind", ["GET", "listen", "2025-11-25", "2026-07-28"])
def test_an_open_stream_ends_when_its_token_expires(
    issuer: Issuer, kind: str, wall_clock: WallClock
) -> None:
    app, cancelled = streaming_app(issuer)
    asgi = app.asgi()
    token = issuer.token(exp=time.time() + 60)
    headers: dict[str, str] = {}
    body: Any = None
    if kind in ("GET", "2025-11-25"):
        headers["Mcp-Session-Id"] = session_in(asgi, token)
    if kind == "listen":
        more, body = listen_request()
        headers |= more
    elif kind != "GET":
        more, body = slow_call(kind)
        headers |= more

    async def run() -> int:
        method = "GET" if kind == "GET" else "POST"
        async with streaming(asgi, method, bearer(token, **headers), body) as streamed:
            async with asyncio.timeout(3 * BOUND):
                await streamed.started.wait()
                if kind != "GET":
                    await streamed.events.get()
                assert not streamed.ended.is_set()
                wall_clock.advance(61)
                advance_clock(61)
                await streamed.ended.wait()
                if kind == "2026-07-28":
                    await cancelled.wait()
            return streamed.status

    assert asyncio.run(run()) == 200


def test_a_stream_that_ended_with_its_token_is_resumed_with_a_new_one(
    issuer: Issuer, wall_clock: WallClock
) -> None:
    app = App("streams", auth=OAuth(issuer=issuer.url, url=URL))
    goes_on = asyncio.Event()

    @app.tool
    async def slow(ctx: Context) -> str:
        await goes_on.wait()
        return f"done for {ctx.user.subject}"

    asgi = app.asgi()
    token = issuer.token(exp=time.time() + 60)
    session = {"Mcp-Session-Id": session_in(asgi, token)}
    headers, body = slow_call("2025-11-25")
    headers["Accept"] = "text/event-stream"

    async def run() -> tuple[list[bytes], bytes]:
        async with asyncio.timeout(3 * BOUND):
            sent = bearer(token, **headers, **session)
            async with streaming(asgi, "POST", sent, body) as streamed:
                id = (await streamed.events.get()).split(b"id: ")[1].split(b"\n")[0]
                wall_clock.advance(61)
                advance_clock(61)
                await streamed.ended.wait()
                goes_on.set()
                left = [streamed.events.get_nowait() for _ in range(streamed.events.qsize())]
            again = bearer(issuer.token(), **session, **{"Last-Event-ID": id.decode()})
            async with streaming(asgi, "GET", again) as resumed:
                return left, await resumed.events.get()

    left, found = asyncio.run(run())

    assert left == []
    assert b"done for alice" in found


def test_a_user_cannot_resume_the_stream_of_another(issuer: Issuer) -> None:
    app, _ = streaming_app(issuer)
    asgi = app.asgi()
    alice, mallory = issuer.token(), issuer.token(sub="mallory")
    sessions = {name: session_in(asgi, token) for name, token in (("a", alice), ("m", mallory))}
    headers, body = slow_call("2025-11-25")
    headers["Accept"] = "text/event-stream"

    async def run() -> tuple[bytes, bytes]:
        own = bearer(alice, **headers, **{"Mcp-Session-Id": sessions["a"]})
        async with streaming(asgi, "POST", own, body) as streamed, asyncio.timeout(BOUND):
            first = await streamed.events.get()
            id = first.split(b"id: ")[1].split(b"\n")[0].decode()
            await streamed.events.get()
            foreign = bearer(mallory, **{"Mcp-Session-Id": sessions["m"], "Last-Event-ID": id})
            again = bearer(alice, **{"Mcp-Session-Id": sessions["a"], "Last-Event-ID": id})
            async with (
                streaming(asgi, "GET", foreign) as other,
                streaming(asgi, "GET", again) as resumed,
            ):
                found = await resumed.events.get()
                stolen = b"" if other.events.empty() else other.events.get_nowait()
                return found, stolen

    found, stolen = asyncio.run(run())

    assert b"notifications/progress" in found
    assert stolen == b""


def test_a_record_has_a_digest_of_the_user_and_no_token(
    issuer: Issuer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    path = tmp_path / "audit.jsonl"
    caller = Caller(OAuth(issuer=issuer.url, url=URL), records=JSONL(path))
    token, other = issuer.token(), issuer.token(jti="another")
    caller.call(token, "/mcp")
    caller.call(other, "/functions/who")
    caller.call(issuer.token(sub="bob"), "/mcp")
    caller.call(issuer.token(exp=1), "/mcp")

    assert caller.app.records is not None
    caller.app.records.close()
    text = path.read_text()
    events = [json.loads(line)["event"] for line in text.splitlines()]
    users = [event["user"] for event in events if "kind" in event]

    assert len(users) == 3
    assert users[0] == users[1] != users[2]
    assert len(users[0]) == 16
    for secret in (token, other, token.rpartition(".")[2]):
        assert secret not in text
        assert secret not in caplog.text
    assert "alice" not in text
