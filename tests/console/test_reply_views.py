"""`POST console/views`: one result, as every dialect writes it and as every model sees it."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from answerback import App, Image, failure, success
from answerback.auth import ApiKeys
from answerback.contract import ENVELOPE

RESULT: dict[str, Any] = {
    "content": [{"type": "text", "text": "Found one city."}],
    "structuredContent": {"name": "Oslo"},
    "isError": False,
}
SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
TOOL = {"name": "city", "outputSchema": SCHEMA}


def post(
    body: Any, app: App | None = None, *, console: bool = True, **options: Any
) -> httpx.Response:
    transport = httpx.ASGITransport((app or App("cities")).asgi(console=console))

    async def send() -> httpx.Response:
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return await client.post("/console/views", json=body, **options)

    return asyncio.run(send())


def views(
    result: dict[str, Any] = RESULT, tool: dict[str, Any] = TOOL, app: App | None = None
) -> dict[str, Any]:
    response = post({"result": result, "tool": tool, "version": "2025-11-25"}, app)
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


def test_the_reply_is_written_in_each_dialect() -> None:
    found = {each["dialect"]: each for each in views()["dialects"]}

    assert list(found) == ["mcp", "rest", "envelope", "problem"]
    assert found["rest"]["body"] == '{"name":"Oslo"}'
    assert found["rest"]["accept"] == ""
    assert '"success":true' in found["envelope"]["body"]
    assert found["envelope"]["accept"] == "application/vnd.answerback.envelope+json"


def test_a_failure_has_the_status_and_the_headers_of_its_code() -> None:
    result = failure("no city Osl", code="NOT_FOUND").to("mcp")

    found = {each["dialect"]: each for each in views(result)["dialects"]}

    assert {each["status"] for each in found.values()} == {404}
    assert found["problem"]["media_type"] == "application/problem+json"
    assert found["rest"]["headers"] == {"X-Error-Code": "NOT_FOUND"}


def test_the_dialects_are_written_with_the_contract_of_the_app() -> None:
    app = App("cities", contract=ENVELOPE)

    found = {each["dialect"]: each for each in views(app=app)["dialects"]}

    assert found["envelope"]["accept"] == ""


def test_an_image_is_not_sent_as_text() -> None:
    result = success(content=[Image(b"GIF89a", "image/gif")]).to("mcp")

    found = {each["dialect"]: each for each in views(result)["dialects"]}

    assert found["rest"]["media_type"] == "image/gif"
    assert found["rest"]["body"] == ""
    assert found["rest"]["size"] == 6


def test_each_host_and_framework_says_which_part_a_model_sees_and_how_many_tokens() -> None:
    found = {each["id"]: each for each in views()["models"]}

    assert found["claude-code"]["part"] == "structuredContent"
    assert found["claude-code"]["text"] == '{"name":"Oslo"}'
    assert found["claude-code"]["tokens"] == 4
    assert found["claude-code"]["lost"] == ["text"]
    assert found["cursor"]["lost"] == ["data"]
    assert found["langchain"]["is_host"] is False
    assert found["langchain"]["text"] == "Found one city."


def test_findings_have_the_page_of_their_rule() -> None:
    result = RESULT | {"structuredContent": {"name": 5}}

    found = {each["rule"]: each for each in views(result)["findings"]}

    assert found["AB320"]["pointer"] == "/structuredContent/name"
    assert found["AB320"]["severity"] == "error"
    assert found["AB320"]["page"].startswith("AB320 output-schema-violated (error")


def test_a_result_of_an_unknown_form_has_views_too() -> None:
    found = views({"content": [{"type": "hologram"}], "isError": "maybe"})

    assert len(found["dialects"]) == 4
    assert found["findings"]


@pytest.mark.parametrize("body", [{}, {"result": 5, "tool": TOOL}, {"result": RESULT}, []])
def test_a_request_without_a_result_is_refused_with_the_reason(body: Any) -> None:
    response = post(body)

    assert response.status_code == 400
    assert "the views of a reply need its result and its tool" in response.text


def test_a_foreign_page_is_refused() -> None:
    response = post({}, headers={"Origin": "https://evil.example"})

    assert response.status_code == 403


def test_only_users_who_may_call_tools_get_views() -> None:
    new = ApiKeys.new()
    app = App("cities", auth=ApiKeys({new.digest: "ci"}))
    body = {"result": RESULT, "tool": TOOL}

    refused = post(body, app)
    headers = {"Authorization": f"Bearer {new.key}"}
    allowed = post(body, app, headers=headers)

    assert refused.status_code == 401
    assert allowed.status_code == 200


def test_a_server_without_a_console_has_no_views() -> None:
    response = post({"result": RESULT, "tool": TOOL}, console=False)

    assert response.status_code == 404
