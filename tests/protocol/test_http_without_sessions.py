"""`serve --stateless` and `Access(sessions=False)`: MCP before 2026-07-28 without session ids."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from tests.fuzz.http_client import ServedApp, mirrored_headers, served_app, stateless_call
from tests.fuzz.stdio_client import call, cancel, notification, request
from tests.protocol.official_tools import FOR_CLIENTS
from tests.protocol.signed_tokens import OURS, session_id

from answerback import App, Context
from answerback.options import Access

INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"elicitation": {}},
    "clientInfo": {"name": "client", "version": "1"},
}
VERSION = "Mcp-Protocol-Version"
NOT_FOUND = -32601


@pytest.fixture(scope="module")
def sessionless() -> Iterator[ServedApp]:
    with served_app(FOR_CLIENTS, "--stateless") as served:
        yield served
        assert served.log() == ""


def test_initialize_sends_no_session_id_and_no_capability_that_needs_one(
    sessionless: ServedApp,
) -> None:
    response = sessionless.post(request(1, "initialize", INITIALIZE))

    assert response.status == 200
    assert "mcp-session-id" not in response.headers
    found = response.frame["result"]
    assert found["protocolVersion"] == "2025-11-25"
    assert found["capabilities"] == {"tools": {}, "resources": {}, "prompts": {}, "completions": {}}
    initialized = sessionless.post(notification("notifications/initialized"))
    assert (initialized.status, initialized.frames) == (202, [])


@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25"])
def test_a_call_without_a_session_has_structured_content_if_its_version_has_it(
    sessionless: ServedApp, version: str
) -> None:
    response = sessionless.post(call(1, "add", x=2, y=3), {VERSION: version})

    assert "mcp-session-id" not in response.headers
    result = response.frame["result"]
    assert result["structuredContent"] == {"total": 5, "terms": [2, 3]}
    assert "resultType" not in result


@pytest.mark.parametrize("headers", [{VERSION: "2025-03-26"}, {VERSION: "2024-11-05"}, {}])
def test_a_call_without_a_session_has_only_text_in_older_versions(
    sessionless: ServedApp, headers: dict[str, str]
) -> None:
    response = sessionless.post(call(1, "add", x=2, y=3), headers)

    assert response.frame["result"]["content"] == [
        {"type": "text", "text": '{"total":5,"terms":[2,3]}'}
    ]
    assert "structuredContent" not in response.frame["result"]


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("logging/setLevel", {"level": "debug"}),
        ("resources/subscribe", {"uri": "test://note"}),
        ("resources/unsubscribe", {"uri": "test://note"}),
    ],
)
def test_a_method_that_needs_a_session_is_not_found(
    sessionless: ServedApp, method: str, params: dict[str, str]
) -> None:
    response = sessionless.post(request(1, method, params), {VERSION: "2025-11-25"})

    assert (response.status, response.code) == (200, NOT_FOUND)
    assert "needs a session" in response.frame["error"]["message"]


def test_ping_and_cancellations_are_accepted(sessionless: ServedApp) -> None:
    headers = {VERSION: "2025-11-25"}

    assert sessionless.post(request(1, "ping"), headers).frame["result"] == {}
    assert sessionless.post(cancel(1), headers).status == 202


@pytest.mark.parametrize("tool", ["greet", "welcome"])
def test_a_question_is_refused_and_the_hint_says_who_can_be_asked(
    sessionless: ServedApp, tool: str
) -> None:
    response = sessionless.post(call(1, tool), {VERSION: "2025-11-25"})

    result = response.frame["result"]
    assert result["isError"] is True
    assert "elicitation" in result["content"][0]["text"]
    assert "only a client with a session" in result["content"][0]["text"]


@pytest.mark.parametrize("method", ["GET", "DELETE"])
@pytest.mark.parametrize("headers", [{}, {"Mcp-Session-Id": session_id().sign(OURS)}])
def test_get_and_delete_are_not_allowed(
    sessionless: ServedApp, method: str, headers: dict[str, str]
) -> None:
    response = sessionless.send(headers={VERSION: "2025-11-25", **headers}, method=method)

    assert (response.status, response.headers["allow"]) == (405, "POST")


def test_a_session_id_of_another_server_is_unknown_so_that_its_client_initializes_anew(
    sessionless: ServedApp,
) -> None:
    headers = {"Mcp-Session-Id": session_id().sign(OURS)}

    assert sessionless.post(call(1, "add", x=2, y=3), headers).status == 404


def test_the_stateless_era_is_served_as_ever(sessionless: ServedApp) -> None:
    frame = stateless_call(1, "greet")
    response = sessionless.post(frame, mirrored_headers(frame))

    assert response.frame["result"]["resultType"] == "input_required"


def test_an_app_without_sessions_sends_progress_and_no_log_messages() -> None:
    app = App("quiet", access=Access(sessions=False))

    @app.tool
    def work(ctx: Context) -> str:
        ctx.log("a note", "error")
        ctx.progress(1, 2)
        return "done"

    frame = call(1, "work")
    frame["params"]["_meta"] = {"progressToken": "t"}
    text = asyncio.run(_post(app, frame))

    assert "notifications/progress" in text
    assert "notifications/message" not in text
    assert '"structuredContent":{"result":"done"}' in text


async def _post(app: App, frame: Any) -> str:
    transport = httpx.ASGITransport(app.asgi())
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        opened = await client.post("/mcp", json=request(0, "initialize", INITIALIZE))
        assert "mcp-session-id" not in opened.headers
        answered = await client.post("/mcp", json=frame, headers={VERSION: "2025-11-25"})
        return answered.text


def test_a_task_of_2025_11_25_is_started_and_read_without_a_session() -> None:
    app = App("tasks", access=Access(sessions=False))

    @app.tool(task="optional")
    async def work() -> int:
        return 7

    result = asyncio.run(_task_result(app))

    assert result["structuredContent"] == {"result": 7}


async def _task_result(app: App) -> Any:
    headers = {VERSION: "2025-11-25"}
    transport = httpx.ASGITransport(app.asgi())
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        frame = call(1, "work")
        frame["params"]["task"] = {}
        started = await client.post("/mcp", json=frame, headers=headers)
        asked = {"taskId": started.json()["result"]["task"]["taskId"]}
        found = await client.post("/mcp", json=request(2, "tasks/result", asked), headers=headers)
        return found.json()["result"]
