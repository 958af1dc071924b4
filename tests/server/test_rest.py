"""REST: calls, methods, paths and pages, and headers that a tool cannot break."""

from __future__ import annotations

import gzip
import http.client
import json
from collections.abc import Callable
from typing import Any

import pytest

from answerback import App, Audio, Image, Link, NotFound, Reply, ToolError, success
from answerback.contract import DIRECT

SendRequest = Callable[..., Any]


def test_a_success_is_compact_json_without_further_headers(
    everything: App, send_request: SendRequest
) -> None:
    response = send_request(everything, "POST", "/functions/add", b'{"x":7,"y":3}')

    assert response.status == 200
    assert response.body == b'{"result":10}'
    assert response.headers == {"content-type": "application/json", "content-length": "13"}


def test_an_error_is_its_message_with_the_code_in_a_header(
    everything: App, send_request: SendRequest
) -> None:
    response = send_request(everything, "POST", "/functions/missing_city", b'{"city":"Atlantis"}')

    assert response.status == 404
    assert response.body == b'{"error":"no city \'Atlantis\'"}'
    assert response.headers["content-type"] == "application/json"
    assert response.headers["x-error-code"] == "CITY_UNKNOWN"


def test_an_unknown_function_is_answered_with_404(
    everything: App, send_request: SendRequest
) -> None:
    response = send_request(everything, "POST", "/functions/nope", b"{}")

    assert (response.status, response.error) == (404, "TOOL_NOT_FOUND")
    assert response.body == b'{"error":"Function not found: nope"}'


def test_a_request_without_a_body_is_a_call_without_arguments(
    everything: App, send_request: SendRequest
) -> None:
    response = send_request(everything, "POST", "/functions/greet")

    assert response.json == {"result": "Hello, world! ☀"}


def test_one_response_lists_all_invalid_arguments(
    everything: App, send_request: SendRequest
) -> None:
    response = send_request(everything, "POST", "/functions/add", b'{"x":"seven","y":null,"z":1}')

    assert (response.status, response.error) == (400, "INVALID_ARGUMENTS")
    assert all(name in response.json["error"] for name in ("x:", "y:", "z:"))


def test_an_image_is_sent_as_its_bytes_with_its_media_type(
    everything: App, send_request: SendRequest
) -> None:
    response = send_request(everything, "POST", "/functions/picture")

    assert response.headers["content-type"] == "image/png"
    assert response.body.startswith(b"\x89PNG")


def test_a_response_of_five_megabytes_arrives_complete(still_served: Any) -> None:
    client = http.client.HTTPConnection("127.0.0.1", still_served.port, timeout=60)
    client.request("POST", "/functions/large")
    response = client.getresponse()
    body = response.read()
    client.close()

    assert response.headers["Content-Length"] == str(len(body))
    assert len(json.loads(body)["result"]) == 5_000_000


@pytest.mark.parametrize(
    "media", ["application/json", "application/json; charset=utf-8", "APPLICATION/JSON",
              "application/vnd.x+json", ""],
)  # fmt: skip
def test_every_media_type_of_json_is_accepted(
    everything: App, send_request: SendRequest, media: str
) -> None:
    response = send_request(
        everything, "POST", "/functions/add", b'{"x":7,"y":3}', {"Content-Type": media}
    )

    assert response.body == b'{"result":10}'


@pytest.mark.parametrize(
    "media",
    [
        "application/x-www-form-urlencoded",
        "text/plain",
        "text/plain; x=application/json",
        "multipart/form-data; boundary=x",
        "application/json, text/plain",
        "text/plain, application/json",
    ],
)
def test_a_media_type_that_needs_no_cors_preflight_is_refused_with_415(
    everything: App, send_request: SendRequest, media: str
) -> None:
    response = send_request(
        everything, "POST", "/functions/add", b'{"x":7,"y":3}', {"Content-Type": media}
    )

    assert (response.status, response.error) == (415, "UNSUPPORTED_MEDIA_TYPE")
    assert "Content-Type: application/json" in response.json["error"]


@pytest.mark.parametrize("accept", ["", "application/vnd.answerback.mcp+json"])
def test_the_data_has_no_message_in_any_dialect_of_rest(
    send_request: SendRequest, accept: str
) -> None:
    """Contract: the data is what OpenAPI says."""
    app = App("test")

    @app.tool
    def count() -> Reply[int]:
        return success("There are five.", 5)

    response = send_request(app, "POST", "/functions/count", b"{}", {"Accept": accept})

    assert response.json.get("structuredContent", response.json) == {"result": 5}
    assert "_meta" not in response.json


def test_the_content_has_no_lines_about_links_in_the_mcp_dialect_of_rest(
    send_request: SendRequest,
) -> None:
    app = App("test")
    link = Link("https://example.com/notes", "notes")
    app.add_tool(lambda: success("Look:", [1], content=[link]), name="tool")
    accept = {"Accept": "application/vnd.answerback.mcp+json"}

    response = send_request(app, "POST", "/functions/tool", b"{}", accept)

    types = [each["type"] for each in response.json["content"]]
    assert types == ["text", "resource_link", "text"]


@pytest.mark.parametrize(
    ("accept", "media"),
    [
        ("", "application/json"),
        ("*/*", "application/json"),
        ("text/html", "application/json"),
        ("application/problem+json", "application/problem+json"),
        ("application/vnd.answerback.mcp+json", "application/vnd.answerback.mcp+json"),
        (
            "application/json;q=0.5, application/vnd.answerback.envelope+json",
            "application/vnd.answerback.envelope+json",
        ),
    ],
)
def test_the_accept_header_selects_the_dialect_of_an_error(
    everything: App, send_request: SendRequest, accept: str, media: str
) -> None:
    response = send_request(everything, "POST", "/functions/add", b"{}", {"Accept": accept})

    assert (response.status, response.headers["content-type"]) == (400, media)


@pytest.mark.parametrize(
    "method", ["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE", "PATCH", "FROB"]
)
def test_a_method_other_than_post_is_refused_with_405(
    everything: App, send_request: SendRequest, method: str
) -> None:
    response = send_request(everything, method, "/functions/add")

    assert (response.status, response.error) == (405, "METHOD_NOT_ALLOWED")
    assert response.headers["allow"] == "POST"


@pytest.mark.parametrize("method", ["OPTIONS", "TRACE", "CONNECT", "PURGE", "DELETE"])
def test_the_server_refuses_other_methods_with_405(
    still_served: Any, connect: Any, request_bytes: Any, method: str
) -> None:
    connection = connect(still_served.port)
    connection.send(request_bytes(body=None, method=method))
    response = connection.read_response()

    assert (response.status, response.headers["allow"]) == (405, "POST")
    assert response.json == {"error": f"Method not allowed: {method}; use POST"}


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/functions/add//", "Function not found: add/"),
        ("/functions//add", "Function not found: /add"),
        ("/functions/..%2f..%2fetc%2fpasswd", "Function not found: ../../etc/passwd"),
        ("/functions/caf%C3%A9", "Function not found: café"),
        ("/functions/%E2%82%AC%0d%0aX-Evil:%201", "Function not found: €\r\nX-Evil: 1"),
        ("/functions/%00", "Function not found: \x00"),
        ("/functions/%ff", "Function not found: \ufffd"),
        ("/functions/add%3Fx=1", "Function not found: add?x=1"),
        ("//functions/add", "Not found: //functions/add"),
        ("/functions//", "Not found: /functions/"),
        ("/add", "Not found: /add"),
        ("/", "Not found: /; MCP is at /mcp; see /functions and /openapi.json"),
    ],
)
def test_an_unknown_path_is_answered_with_404(
    still_served: Any, connect: Any, request_bytes: Any, path: str, message: str
) -> None:
    connection = connect(still_served.port)
    connection.send(request_bytes(path))
    response = connection.read_response()

    assert response.status == 404
    assert response.json == {"error": message}
    assert "x-evil" not in response.headers


@pytest.mark.parametrize(
    "path", ["/functions/%61dd", "/functions/add?x=1&y=2", "/functions/add?", "/functions/add#a"]
)
def test_another_spelling_of_a_path_reaches_the_same_tool(
    still_served: Any, connect: Any, request_bytes: Any, path: str
) -> None:
    connection = connect(still_served.port)
    connection.send(request_bytes(path))

    assert connection.read_response().body == b'{"result":10}'


@pytest.mark.parametrize("path", ["/functions", "/openapi.json", "/healthz", "/readyz"])
def test_a_page_is_json_and_head_has_its_length(
    still_served: Any, connect: Any, request_bytes: Any, path: str
) -> None:
    connection = connect(still_served.port)
    connection.send(request_bytes(path, None, method="GET"))
    whole = connection.read_response()
    connection.send(request_bytes(path, None, method="HEAD"))
    head = connection.read_response(head=True)

    assert (whole.status, whole.headers["content-type"]) == (200, "application/json")
    assert json.dumps(whole.json, separators=(",", ":"), ensure_ascii=False) == whole.body.decode()
    assert (head.status, head.headers["content-length"]) == (200, str(len(whole.body)))


@pytest.mark.parametrize("path", ["/functions", "/openapi.json", "/healthz", "/readyz"])
@pytest.mark.parametrize("method", ["POST", "DELETE", "OPTIONS", "FROB"])
def test_a_page_refuses_methods_other_than_get_and_head(
    everything: App, send_request: SendRequest, path: str, method: str
) -> None:
    response = send_request(everything, method, path)

    assert (response.status, response.headers["allow"]) == (405, "GET, HEAD")
    assert response.json == {"error": f"Method not allowed: {method}; use GET, HEAD"}


def test_every_tool_is_listed_with_its_schemas(everything: App, send_request: SendRequest) -> None:
    listed = send_request(everything, "GET", "/functions").json

    assert [tool["name"] for tool in listed] == list(everything.tools)
    assert listed[0]["inputSchema"]["required"] == ["x", "y"]


def test_health_names_the_app(everything: App, send_request: SendRequest) -> None:
    response = send_request(everything, "GET", "/healthz")

    assert response.json.pop("checks").keys() == {"threads", "shutdown"}
    assert response.body.startswith(b'{"status":"ok","name":"everything","version":"2.1.0",')


@pytest.mark.parametrize("path", ["/healthz/", "/functions/", "/openapi.json/"])
def test_a_trailing_slash_is_not_redirected(
    everything: App, send_request: SendRequest, path: str
) -> None:
    response = send_request(everything, "GET", path, None, {"Host": "evil.com"})

    assert response.status == 421
    assert "location" not in response.headers


@pytest.mark.parametrize(
    ("contract", "member"), [("standard", "error"), ("envelope", "success"), ("apps", "isError")]
)
def test_a_404_is_written_in_the_dialect_of_the_contract(
    send_request: SendRequest, contract: str, member: str
) -> None:
    app = App("plain", contract=contract)

    for path in ("/nowhere", "/functions/nothing"):
        response = send_request(app, "POST", path)
        assert (response.status, response.headers["content-type"]) == (404, "application/json")
        assert member in response.json


def test_a_page_that_fails_is_a_500_in_json(send_request: SendRequest) -> None:
    app = App("late")

    @app.tool
    def late(x: Unwritten) -> int:  # type: ignore[name-defined] # noqa: F821
        return 1

    response = send_request(app, "GET", "/functions")

    assert response.status == 500
    assert response.json == {"error": "Internal server error"}


@pytest.mark.parametrize("code", ["A\r\nX-Evil: 1", "Ä", "", "A B", "A" * 1000])
def test_an_error_code_cannot_inject_a_header(send_request: SendRequest, code: str) -> None:
    app = App("codes")

    @app.tool
    def fail() -> None:
        raise ToolError("it did not work", code=code)

    response = send_request(app, "POST", "/functions/fail")

    assert (response.status, response.json) == (500, {"error": "it did not work"})
    assert "x-evil" not in response.headers
    assert response.headers["x-error-code"].isascii()


@pytest.mark.parametrize("kind", [Image, Audio])
@pytest.mark.parametrize("mime", ["image/png\r\nX-Evil: 1", "text/html", "image/ä", "", "image/"])
def test_a_media_type_cannot_inject_a_header_or_be_html(
    send_request: SendRequest, kind: Any, mime: str
) -> None:
    app = App("mimes")
    app.add_tool(lambda: kind(b"<script>", mime), name="media")

    response = send_request(app, "POST", "/functions/media")

    assert "x-evil" not in response.headers
    assert response.headers["content-type"] in ("application/octet-stream", "application/json")


@pytest.mark.parametrize("name", ["leak", "leak_async", "leave", "wrong_shape", "undeclared_key"])
@pytest.mark.parametrize(
    "accept",
    ["application/json", "application/problem+json", "application/vnd.answerback.mcp+json",
     "application/vnd.answerback.envelope+json"],
)  # fmt: skip
def test_no_dialect_shows_a_secret_of_a_failed_call(
    everything: App, send_request: SendRequest, name: str, accept: str
) -> None:
    response = send_request(everything, "POST", f"/functions/{name}", b"{}", {"Accept": accept})

    sent = response.body + repr(response.headers).encode()
    assert all(secret not in sent for secret in (b"hunter2", b"postgres", b"Traceback", b".py"))


def test_only_the_beginning_of_a_long_accept_header_is_parsed(
    everything: App, send_request: SendRequest
) -> None:
    accept = "a/b;q=0.1," * 1000 + "application/vnd.answerback.mcp+json"

    response = send_request(
        everything, "POST", "/functions/add", b'{"x":7,"y":3}', {"Accept": accept}
    )

    assert response.headers["content-type"] == "application/json"


@pytest.mark.parametrize("encoding", ["gzip", "br", "GZIP", "identity, gzip"])
@pytest.mark.parametrize("path", ["/functions/add", "/mcp"])
def test_a_compressed_body_is_refused_with_415(
    everything: App, send_request: Any, path: str, encoding: str
) -> None:
    headers = {"Content-Type": "application/json", "Content-Encoding": encoding}

    response = send_request(everything, "POST", path, gzip.compress(b"{}"), headers)

    assert response.status == 415
    assert f"Unsupported content encoding: {encoding.lower()}" in response.body.decode()


def test_the_encoding_identity_is_accepted(everything: App, send_request: Any) -> None:
    headers = {"Content-Type": "application/json", "Content-Encoding": "identity"}

    response = send_request(everything, "POST", "/functions/add", b'{"x":7,"y":3}', headers)

    assert response.json == {"result": 10}


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/functions/add", b'{"x":7,"y":3}'),
        ("GET", "/functions", None),
        ("GET", "/healthz", None),
        ("POST", "/mcp", b'{"jsonrpc":"2.0","id":1,"method":"ping"}'),
        ("POST", "/message", b'{"jsonrpc":"2.0","id":1,"method":"ping"}'),
    ],
)
def test_a_slash_at_the_end_of_a_path_is_ignored(
    everything: App, send_request: Any, method: str, path: str, body: bytes | None
) -> None:
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}

    plain = send_request(everything, method, path, body, headers)
    with_slash = send_request(everything, method, path + "/", body, headers)

    assert plain.status == 200
    assert (with_slash.status, with_slash.body) == (200, plain.body)


def test_a_contract_may_answer_every_call_of_a_tool_with_200(send_request: SendRequest) -> None:
    app = App("test", contract=DIRECT.derive(name="always", always_200=True))

    @app.tool
    def weather(city: str) -> int:
        raise NotFound(f"no {city}")

    failed = send_request(app, "POST", "/weather", b'{"city":"Atlantis"}')
    unknown = send_request(app, "POST", "/nowhere", b"{}")
    responses = app.openapi()["paths"]["/weather"]["post"]["responses"]

    assert (failed.status, failed.json["isError"]) == (200, True)
    assert failed.headers["x-error-code"] == "NOT_FOUND"
    assert unknown.status == 404
    assert responses.keys() == {"200", "400", "413", "415", "default"}
    schema = responses["200"]["content"]["application/json"]["schema"]
    assert len(schema["anyOf"]) == 2
