"""Seed 000's middleware, in front of FastAPI and of Flask."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from examples import guarded_fastapi, guarded_flask
from fastapi import FastAPI
from flask import Flask
from starlette.responses import PlainTextResponse, Response, StreamingResponse

from answerback.middleware import asgi, wsgi
from answerback.records import JSONL, Records
from answerback.records.reading import Kept, decode, read

GOOD = {
    "success": True,
    "timestamp": "2026-01-31T12:00:00Z",
    "content": [{"type": "text", "text": "started"}],
}
Ask = Callable[..., httpx.Response]


def over_asgi(body: bytes, media: str = "application/json", **options: Any) -> httpx.Response:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await Response(body, media_type=media)(scope, receive, send)

    return ask(asgi.ValidReplies(app, **options))


def over_wsgi(body: bytes, media: str = "application/json", **options: Any) -> httpx.Response:
    app = Flask("test")
    app.add_url_rule(
        "/tools/x", "x", lambda: (body, 200, {"Content-Type": media}), methods=["POST"]
    )
    app.wsgi_app = wsgi.ValidReplies(app.wsgi_app, **options)  # type: ignore[method-assign]
    with httpx.Client(transport=httpx.WSGITransport(app), base_url="http://here") as client:
        return client.post("/tools/x")


def ask(app: Any, path: str = "/tools/x", method: str = "POST") -> httpx.Response:
    async def send() -> httpx.Response:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://here") as client:
            return await client.request(method, path)

    return asyncio.run(asyncio.wait_for(send(), 20))


@pytest.fixture(params=[over_asgi, over_wsgi], ids=["asgi", "wsgi"])
def answer(request: pytest.FixtureRequest) -> Ask:
    found: Ask = request.param
    return found


def test_a_valid_envelope_goes_out_byte_for_byte(answer: Ask) -> None:
    body = json.dumps(GOOD, indent=1).encode()

    response = answer(body)

    assert (response.status_code, response.content) == (200, body)


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ({"ok": True, "data": {}}, "Missing success field"),
        ({"success": True, "timestamp": "2026-01-31T12:00:00Z"}, "Missing content array"),
    ],
)
def test_an_invalid_envelope_is_answered_in_the_words_of_the_seed(
    answer: Ask, found: Any, message: str
) -> None:
    response = answer(json.dumps(found).encode())

    told = response.json()
    assert response.status_code == 500
    assert response.headers["content-type"] == "application/json"
    assert told.pop("timestamp")
    assert told == {
        "success": False,
        "content": [{"type": "text", "text": "Internal server error: Invalid response format"}],
        "error": {"code": "INVALID_RESPONSE_FORMAT", "message": message},
    }


@pytest.mark.parametrize("body", [b"stopped", b"", b"\xff\xfe", b'{"success": tru'])
def test_a_body_that_is_no_json_is_answered_in_the_words_of_the_seed(
    answer: Ask, body: bytes
) -> None:
    response = answer(body, "text/plain")

    told = response.json()
    assert response.status_code == 500
    assert told["error"]["code"] == "RESPONSE_VALIDATION_ERROR"
    assert told["content"][0]["text"] == "Internal server error: Response validation failed"


def test_a_missing_timestamp_is_filled_in(answer: Ask) -> None:
    response = answer(json.dumps({**GOOD, "timestamp": None}).encode())

    assert response.status_code == 200
    assert response.json()["timestamp"].endswith("Z")


def test_an_mcp_result_is_told_from_an_envelope(answer: Ask) -> None:
    good = b'{"content":[{"type":"text","text":"ok"}],"isError":false}'

    assert answer(good).content == good
    assert answer(good, dialect="envelope").json()["error"]["message"] == "Missing success field"


def test_a_bad_result_in_a_json_rpc_frame_stays_a_result_of_that_frame(answer: Ask) -> None:
    frame = {"jsonrpc": "2.0", "id": 7, "result": {"content": [{"text": "no type"}]}}

    response = answer(json.dumps(frame).encode())

    told = response.json()
    assert (response.status_code, told["id"]) == (200, 7)
    assert told["result"]["isError"] is True
    assert told["result"]["_meta"]["answerback/error"]["code"] == "INVALID_RESPONSE_FORMAT"


def test_frames_that_answer_no_call_are_left_alone(answer: Ask) -> None:
    frame = b'{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}'

    assert answer(frame).content == frame


def test_paths_that_are_not_asked_for_are_left_alone(answer: Ask) -> None:
    assert answer(b"hello", "text/plain", only=("/api/",)).text == "hello"
    assert answer(b"hello", "text/plain", skip=("/tools/",)).text == "hello"


def test_each_reply_is_recorded_with_what_the_rules_found(answer: Ask, tmp_path: Path) -> None:
    file = tmp_path / "audit.jsonl"
    records = Records(JSONL(file))

    answer(json.dumps(GOOD).encode(), records=records)
    answer(b'{"success": true}', records=records)
    records.close()

    events = [decode(kept) for kept in read(str(file)) if isinstance(kept, Kept)]
    replies = [event for event in events if event is not None and event.is_reply]
    assert [event.event for event in replies] == ["mcp_response", "mcp_response_format_issue"]
    assert [event.code for event in replies] == ["", "INVALID_RESPONSE_FORMAT"]
    assert replies[0].tool == "/tools/x"


def test_a_stream_is_not_held_back() -> None:
    async def chunks() -> Any:
        yield b"data: 1\n\n"

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await StreamingResponse(chunks(), media_type="text/event-stream")(scope, receive, send)

    assert ask(asgi.ValidReplies(app)).text == "data: 1\n\n"


def test_a_body_in_many_parts_is_judged_as_one() -> None:
    def chunks() -> Iterator[bytes]:
        for byte in json.dumps(GOOD):
            yield byte.encode()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await StreamingResponse(chunks(), media_type="application/json")(scope, receive, send)

    assert ask(asgi.ValidReplies(app)).json() == GOOD


def test_headers_of_the_app_survive_and_those_of_the_lost_body_do_not() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        headers = {"x-own": "1", "etag": "abc"}
        await PlainTextResponse("no", headers=headers)(scope, receive, send)

    headers = ask(asgi.ValidReplies(app)).headers

    assert headers["x-own"] == "1"
    assert "etag" not in headers


def test_the_pages_of_fastapi_are_no_replies() -> None:
    app = FastAPI()
    app.add_middleware(asgi.ValidReplies)

    assert ask(app, "/openapi.json", "GET").json()["openapi"]
    assert ask(app, "/docs", "GET").status_code == 200


@pytest.mark.parametrize(("path", "code"), [("start", None), ("stop", "INVALID_RESPONSE_FORMAT")])
def test_the_fastapi_example_lets_only_valid_replies_out(path: str, code: str | None) -> None:
    told = ask(guarded_fastapi.app, f"/tools/{path}").json()

    assert told.get("error", {}).get("code") == code


@pytest.mark.parametrize(("path", "code"), [("start", None), ("stop", "RESPONSE_VALIDATION_ERROR")])
def test_the_flask_example_lets_only_valid_replies_out(path: str, code: str | None) -> None:
    response = guarded_flask.app.test_client().post(f"/tools/{path}")

    assert (response.get_json().get("error") or {}).get("code") == code
    assert response.status_code == (500 if code else 200)
