"""The ASGI and the WSGI middleware in FastAPI, Starlette and Flask apps."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import httpx
import pytest
from examples import guarded_fastapi, guarded_flask
from fastapi import FastAPI, Header, HTTPException
from flask import Flask, abort, request
from flask import Response as FlaskResponse
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import FileResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from tests.records.support import MemorySink

from answerback import validate
from answerback.middleware import asgi, wsgi
from answerback.records import JSONL, Records
from answerback.records.reader import StoredRecord, decode, read

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

    return asyncio.run(asyncio.wait_for(send(), 60))


@pytest.fixture(params=[over_asgi, over_wsgi], ids=["asgi", "wsgi"])
def answer(request: pytest.FixtureRequest) -> Ask:
    found: Ask = request.param
    return found


def test_a_valid_envelope_is_sent_byte_for_byte(answer: Ask) -> None:
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
def test_an_invalid_envelope_is_refused_with_500_and_the_texts_of_the_seed(
    answer: Ask, found: Any, message: str
) -> None:
    response = answer(json.dumps(found).encode())

    sent = response.json()
    assert response.status_code == 500
    assert response.headers["content-type"] == "application/json"
    assert sent.pop("timestamp")
    assert sent == {
        "success": False,
        "content": [{"type": "text", "text": "Internal server error: Invalid response format"}],
        "error": {"code": "INVALID_RESPONSE_FORMAT", "message": message},
    }


@pytest.mark.parametrize("body", [b"stopped", b"", b"\xff\xfe", b'{"success": tru'])
def test_a_body_that_is_not_json_is_refused_with_500_and_the_texts_of_the_seed(
    answer: Ask, body: bytes
) -> None:
    response = answer(body, "text/plain")

    sent = response.json()
    assert response.status_code == 500
    assert sent["error"]["code"] == "RESPONSE_VALIDATION_ERROR"
    assert sent["content"][0]["text"] == "Internal server error: Response validation failed"


def test_the_parser_message_is_logged_in_one_line_and_not_sent(
    answer: Ask, caplog: pytest.LogCaptureFixture
) -> None:
    sent = answer(b'{"success": tru').json()

    assert sent["error"]["message"] == "the response is not JSON"
    (record,) = caplog.records
    assert record.exc_info is None
    assert "\n" not in record.getMessage()
    assert "not JSON" in record.getMessage()


def fastapi_app(**options: Any) -> Any:
    app = FastAPI()
    app.add_middleware(asgi.ValidReplies, **options)

    @app.post("/tools/{count}")
    def stop(count: int, authorization: Annotated[str | None, Header()] = None) -> Any:
        if authorization is None:
            raise HTTPException(401, "log in first", {"WWW-Authenticate": "Bearer"})
        return GOOD

    return httpx.ASGITransport(app)


def flask_app(**options: Any) -> Any:
    app = Flask("test")
    app.wsgi_app = wsgi.ValidReplies(app.wsgi_app, **options)  # type: ignore[method-assign]

    @app.post("/tools/<int:count>")
    def stop(count: int) -> Any:
        if "Authorization" not in request.headers:
            unauthorized = {"WWW-Authenticate": "Bearer"}
            abort(FlaskResponse("<h1>log in first</h1>", 401, unauthorized))
        return GOOD

    return httpx.WSGITransport(app)


def starlette_app(**options: Any) -> Any:
    def stop(_: Any) -> Any:
        raise HTTPException(401, "log in first", {"WWW-Authenticate": "Bearer"})

    route = Route("/tools/{count:int}", stop, methods=["POST"])
    middleware = [Middleware(asgi.ValidReplies, **options)]
    return httpx.ASGITransport(Starlette(routes=[route], middleware=middleware))


Framework = Callable[..., Any]
ERRORS = [("GET", "/nowhere", 404), ("GET", "/tools/1", 405), ("POST", "/tools/1", 401)]


def ask_over(transport: Any, method: str, path: str) -> httpx.Response:
    if isinstance(transport, httpx.WSGITransport):
        with httpx.Client(transport=transport, base_url="http://here") as client:
            return client.request(method, path)

    async def send() -> httpx.Response:
        async with httpx.AsyncClient(transport=transport, base_url="http://here") as client:
            return await client.request(method, path)

    return asyncio.run(asyncio.wait_for(send(), 60))


@pytest.mark.parametrize("framework", [fastapi_app, flask_app, starlette_app])
@pytest.mark.parametrize(("method", "path", "status"), ERRORS)
def test_an_error_of_the_framework_is_sent_unchanged(
    framework: Framework,
    method: str,
    path: str,
    status: int,
    caplog: pytest.LogCaptureFixture,
) -> None:
    as_without = ask_over(framework(only=("/none",)), method, path)

    response = ask_over(framework(), method, path)

    assert (response.status_code, response.content) == (status, as_without.content)
    assert response.headers == as_without.headers
    assert caplog.records == []


@pytest.mark.parametrize("framework", [fastapi_app, flask_app, starlette_app])
@pytest.mark.parametrize(("method", "path", "status"), ERRORS)
def test_with_the_envelope_dialect_an_error_of_the_framework_becomes_an_envelope(
    framework: Framework, method: str, path: str, status: int
) -> None:
    response = ask_over(framework(dialect="envelope"), method, path)

    assert response.status_code == status
    assert validate(response.content, "envelope") == ()
    assert response.json()["success"] is False
    assert status != 401 or response.headers["www-authenticate"] == "Bearer"


def test_an_envelope_keeps_the_details_of_a_fastapi_validation_error() -> None:
    response = ask_over(fastapi_app(dialect="envelope"), "POST", "/tools/many")

    error = response.json()["error"]
    assert response.status_code == 422
    assert error["code"] == "HTTP_422"
    assert error["details"]["detail"][0]["loc"] == ["path", "count"]


def test_an_invalid_envelope_with_an_error_status_is_refused() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await Response(b'{"success": false}', 404, media_type="application/json")(
            scope, receive, send
        )

    response = ask(asgi.ValidReplies(app))

    assert response.status_code == 500
    assert response.json()["error"]["code"] == "INVALID_RESPONSE_FORMAT"


def test_an_error_of_the_framework_is_recorded_with_the_code_of_its_status() -> None:
    sink = MemorySink()
    records = Records(sink)

    ask_over(fastapi_app(records=records), "GET", "/nowhere")
    ask_over(flask_app(records=records), "POST", "/tools/1")
    records.close()

    assert [event.code for event in sink.replies] == ["NOT_FOUND", "UNAUTHENTICATED"]
    assert [event.findings for event in sink.replies] == [(), ()]
    assert all(event.size for event in sink.replies)


def test_a_pathsend_response_is_passed_on(tmp_path: Path) -> None:
    (tmp_path / "file.bin").write_bytes(b"bytes")
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request"}

    async def send(message: Any) -> None:
        sent.append(message["type"])

    scope = {
        "type": "http",
        "method": "GET",
        "path": "/file.bin",
        "headers": [],
        "extensions": {"http.response.pathsend": {}},
    }

    asyncio.run(asgi.ValidReplies(FileResponse(tmp_path / "file.bin"))(scope, receive, send))

    assert sent == ["http.response.start", "http.response.pathsend"]


def test_a_wsgi_app_may_start_its_response_late_or_use_write() -> None:
    body = json.dumps(GOOD).encode()
    headers = [("Content-Type", "application/json")]

    def late(environ: Any, start_response: Any) -> Iterator[bytes]:
        start_response("200 OK", headers)
        yield body

    def writes(environ: Any, start_response: Any) -> list[bytes]:
        start_response("200 OK", headers)(body)
        return []

    for app in (late, writes):
        transport = httpx.WSGITransport(wsgi.ValidReplies(app))
        response = ask_over(transport, "POST", "/tools/x")
        assert (response.status_code, response.content) == (200, body)


def test_a_missing_timestamp_is_filled_in(answer: Ask) -> None:
    response = answer(json.dumps({**GOOD, "timestamp": None}).encode())

    assert response.status_code == 200
    assert response.json()["timestamp"].endswith("Z")


def test_an_mcp_result_is_accepted_unless_the_dialect_is_envelope(answer: Ask) -> None:
    good = b'{"content":[{"type":"text","text":"ok"}],"isError":false}'

    assert answer(good).content == good
    assert answer(good, dialect="envelope").json()["error"]["message"] == "Missing success field"


def test_an_invalid_result_in_a_jsonrpc_response_becomes_an_error_result(answer: Ask) -> None:
    frame = {"jsonrpc": "2.0", "id": 7, "result": {"content": [{"text": "no type"}]}}

    response = answer(json.dumps(frame).encode())

    sent = response.json()
    assert (response.status_code, sent["id"]) == (200, 7)
    assert sent["result"]["isError"] is True
    assert sent["result"]["_meta"]["answerback/error"]["code"] == "INVALID_RESPONSE_FORMAT"


def test_jsonrpc_responses_of_other_methods_are_sent_unchanged(answer: Ask) -> None:
    frame = b'{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}'

    assert answer(frame).content == frame


def test_responses_outside_only_or_below_skip_are_sent_unchanged(answer: Ask) -> None:
    assert answer(b"hello", "text/plain", only=("/api/",)).text == "hello"
    assert answer(b"hello", "text/plain", skip=("/tools/",)).text == "hello"


def test_each_reply_is_recorded_with_its_findings(answer: Ask, tmp_path: Path) -> None:
    file = tmp_path / "audit.jsonl"
    records = Records(JSONL(file))

    answer(json.dumps(GOOD).encode(), records=records)
    answer(b'{"success": true}', records=records)
    records.close()

    events = [decode(kept) for kept in read(str(file)) if isinstance(kept, StoredRecord)]
    replies = [event for event in events if event is not None and event.is_reply]
    assert [event.event for event in replies] == ["mcp_response", "mcp_response_format_issue"]
    assert [event.code for event in replies] == ["", "INVALID_RESPONSE_FORMAT"]
    assert replies[0].tool == "/tools/x"


def test_an_event_stream_is_passed_on() -> None:
    async def chunks() -> Any:
        yield b"data: 1\n\n"

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await StreamingResponse(chunks(), media_type="text/event-stream")(scope, receive, send)

    assert ask(asgi.ValidReplies(app)).text == "data: 1\n\n"


def test_a_body_in_many_chunks_is_checked_as_one() -> None:
    def chunks() -> Iterator[bytes]:
        for byte in json.dumps(GOOD):
            yield byte.encode()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await StreamingResponse(chunks(), media_type="application/json")(scope, receive, send)

    assert ask(asgi.ValidReplies(app)).json() == GOOD


def test_a_refusal_keeps_the_headers_of_the_app_but_not_those_of_the_old_body() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        headers = {"x-own": "1", "etag": "abc"}
        await PlainTextResponse("no", headers=headers)(scope, receive, send)

    headers = ask(asgi.ValidReplies(app)).headers

    assert headers["x-own"] == "1"
    assert "etag" not in headers


def test_the_pages_of_fastapi_are_not_checked() -> None:
    app = FastAPI()
    app.add_middleware(asgi.ValidReplies)

    assert ask(app, "/openapi.json", "GET").json()["openapi"]
    assert ask(app, "/docs", "GET").status_code == 200


@pytest.mark.parametrize(("path", "code"), [("start", None), ("stop", "INVALID_RESPONSE_FORMAT")])
def test_the_fastapi_example_refuses_only_invalid_replies(path: str, code: str | None) -> None:
    sent = ask(guarded_fastapi.app, f"/tools/{path}").json()

    assert sent.get("error", {}).get("code") == code


@pytest.mark.parametrize(("path", "code"), [("start", None), ("stop", "RESPONSE_VALIDATION_ERROR")])
def test_the_flask_example_refuses_only_invalid_replies(path: str, code: str | None) -> None:
    response = guarded_flask.app.test_client().post(f"/tools/{path}")

    assert (response.get_json().get("error") or {}).get("code") == code
    assert response.status_code == (500 if code else 200)


MEBIBYTE = 1024 * 1024


@pytest.mark.parametrize(
    ("status", "found"), [(None, "did not call start_response"), ("abc", "'abc'")]
)
def test_a_wsgi_app_without_a_status_is_an_error_that_says_so(
    status: str | None, found: str
) -> None:
    def app(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        if status is not None:
            start_response(status, [])
        return [b"{}"]

    with pytest.raises(ValueError, match=f"a status such as '200 OK': .*{found}"):
        wsgi.ValidReplies(app)({"REQUEST_METHOD": "GET", "PATH_INFO": "/"}, print)


def test_a_large_download_through_wsgi_is_passed_on_while_it_is_read() -> None:
    read: list[int] = []
    closed: list[bool] = []

    class Download:
        def __iter__(self) -> Iterator[bytes]:
            for number in range(40):
                read.append(number)
                yield b"x" * MEBIBYTE

        def close(self) -> None:
            closed.append(True)

    def app(environ: Any, start_response: Any) -> Any:
        start_response("200 OK", [("Content-Type", "application/octet-stream")])
        return Download()

    statuses: list[str] = []
    environ = {"PATH_INFO": "/download", "REQUEST_METHOD": "GET"}
    body = wsgi.ValidReplies(app)(environ, lambda status, headers: statuses.append(status))
    held = len(read)
    size = sum(map(len, body))
    body.close()  # type: ignore[attr-defined]  # a WSGI server calls it if there is one

    assert statuses == ["200 OK"]
    assert held <= 17
    assert size == 40 * MEBIBYTE
    assert closed == [True]


def test_a_body_above_16_mebibytes_in_one_piece_is_passed_on(answer: Ask) -> None:
    response = answer(b"x" * (17 * MEBIBYTE), "application/octet-stream")

    assert response.status_code == 200
    assert len(response.content) == 17 * MEBIBYTE
