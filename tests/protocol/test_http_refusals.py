"""Requests to `/mcp` that are refused: foreign hosts, wrong methods, malformed messages."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

import pytest
from tests.fuzz.http_client import (
    JSON,
    ServedApp,
    mirrored_headers,
    read_to_end,
    stateless_call,
    stateless_request,
    status_of,
)
from tests.fuzz.stdio_client import call, request


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Host": "evil.example:80"}, 421),
        ({"Host": "localhost.evil.example"}, 421),
        ({"Host": "127.0.0.1.evil.example"}, 421),
        ({"Host": "169.254.169.254"}, 421),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://localhost.evil.example"}, 403),
        ({"Origin": "https://127.0.0.1:1"}, 403),
        ({"Host": "evil.example", "Origin": "http://evil.example"}, 421),
    ],
)
@pytest.mark.parametrize("path", ["/mcp", "/message"])
def test_a_foreign_host_or_origin_is_refused_with_421_or_403(
    served: ServedApp, headers: dict[str, str], status: int, path: str
) -> None:
    for method in ("POST", "GET", "DELETE", "OPTIONS"):
        body = json.dumps(call(1, "add", x=1, y=2)).encode() if method == "POST" else b""
        assert served.send(body, headers, method=method, path=path).status == status


@pytest.mark.parametrize("name", ["Host", "Origin"])
@pytest.mark.parametrize("order", [1, -1])
def test_a_foreign_host_or_origin_is_refused_beside_a_valid_one(
    served: ServedApp, name: str, order: int
) -> None:
    own = f"127.0.0.1:{served.port}"
    good, bad = (own, "evil.example") if name == "Host" else (f"http://{own}", "http://evil")
    first, second = (good, bad)[::order]
    body = json.dumps(call(1, "add", x=1, y=2)).encode()
    host = "" if name == "Host" else f"Host: {own}\r\n"
    connection = served.connect()
    connection.sendall(
        f"POST /mcp HTTP/1.1\r\n{host}{name}: {first}\r\n{name}: {second}\r\n"
        f"Content-Length: {len(body)}\r\nContent-Type: {JSON}\r\n"
        "Connection: close\r\n\r\n".encode()
        + body
    )

    assert status_of(read_to_end(connection)) in (400, 403, 421)


@pytest.mark.parametrize(
    ("method", "headers", "status"),
    [
        ("POST", {"Accept": "text/html"}, 406),
        ("POST", {"Accept": "image/png, text/plain"}, 406),
        ("POST", {"Content-Type": "text/plain"}, 415),
        ("POST", {"Content-Type": "application/x-www-form-urlencoded"}, 415),
        ("POST", {"Content-Type": "multipart/form-data; boundary=x"}, 415),
        ("PUT", {}, 405),
        ("PATCH", {}, 405),
        ("OPTIONS", {}, 405),
        ("BREW", {}, 400),
        ("GET", {}, 405),
        ("DELETE", {}, 400),
        ("GET", {"Mcp-Protocol-Version": "2026-07-28"}, 405),
        ("DELETE", {"Mcp-Protocol-Version": "2026-07-28"}, 405),
        ("GET", {"Mcp-Protocol-Version": "2099-01-01"}, 405),
    ],
)
def test_a_wrong_method_or_media_type_is_refused(
    served: ServedApp, method: str, headers: dict[str, str], status: int
) -> None:
    body = json.dumps(call(1, "add", x=1, y=2)).encode() if method == "POST" else b""

    if method == "BREW":
        connection = served.connect()
        connection.sendall(b"BREW /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert status_of(read_to_end(connection)) in (400, 405)
        return
    response = served.send(body, headers, method=method)

    assert response.status == status
    assert "error" in response.frame
    assert ("allow" in response.headers) == (status == 405)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", -32700),
        (b"{", -32700),
        (b"\xff", -32700),
        (b"[" * 100_000, -32700),
        (b'{"a":' * 100_000, -32700),
        (b"\xef\xbb\xbf{}", -32700),
        (b"null", -32600),
        (b"5", -32600),
        (b"{}", -32600),
        (b"[]", -32600),
    ],
)
@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28", ""])
def test_a_malformed_message_is_refused_with_400_and_no_id(
    served: ServedApp, body: bytes, code: int, version: str
) -> None:
    response = served.send(body, {"Mcp-Protocol-Version": version})

    assert (response.status, response.code) == (400, code)
    assert "id" not in response.frame


@pytest.mark.parametrize("accept", ["Application/JSON", "TEXT/Event-Stream"])
def test_the_accept_header_may_be_in_capitals(served: ServedApp, accept: str) -> None:
    assert served.post(call(1, "add", x=1, y=2), {"Accept": accept}).status == 200


def test_an_unknown_version_is_refused_with_the_supported_versions(served: ServedApp) -> None:
    frame = stateless_call(1, "add", x=1, y=2)
    frame["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = "2099-01-01"

    response = served.post_stateless(frame)

    assert (response.status, response.code) == (400, -32022)
    assert response.frame["error"]["data"] == {
        "supported": ["2026-07-28"],
        "requested": "2099-01-01",
    }


@pytest.mark.parametrize("missing", ["_meta", "protocolVersion", "clientCapabilities"])
def test_a_stateless_request_without_its_meta_is_refused_with_400_and_its_id(
    served: ServedApp, missing: str
) -> None:
    frame = stateless_call(1, "add", x=1, y=2)
    headers = mirrored_headers(frame)
    if missing == "_meta":
        del frame["params"]["_meta"]
    else:
        del frame["params"]["_meta"][f"io.modelcontextprotocol/{missing}"]

    response = served.post(frame, headers)

    assert (response.status, response.code) == (400, -32602)
    assert response.frame["id"] == 1


@pytest.mark.parametrize("method", ["tools/call", "tools/list"])
@pytest.mark.parametrize("headers", [{}, {"Mcp-Protocol-Version": "2026-07-28"}])
@pytest.mark.parametrize("meta", [None, 5, [], {"progressToken": {}}])
def test_a_malformed_meta_is_refused_with_400_and_the_id_of_its_request(
    served: ServedApp, method: str, headers: dict[str, str], meta: Any
) -> None:
    response = served.post(request(7, method, {"name": "add", "_meta": meta}), headers)

    assert (response.status, response.code) == (400, -32602)
    assert response.frame["id"] == 7


@pytest.mark.parametrize("method", ["initialize", "ping", "logging/setLevel", "no/such", ""])
def test_a_method_that_the_stateless_era_lacks_is_refused_with_404(
    served: ServedApp, method: str
) -> None:
    response = served.post_stateless(
        stateless_request(1, method, protocolVersion="2025-11-25", level="debug")
    )

    assert (response.status, response.code) == (404, -32601)
    assert "mcp-session-id" not in response.headers


def test_a_forged_cursor_is_refused_with_400(served: ServedApp) -> None:
    for cursor in ("x", "\u2603", b64encode(b"from " + b"9" * 5000).decode()):
        response = served.post_stateless(stateless_request(1, "tools/list", cursor=cursor))
        assert (response.status, response.code) == (400, -32602)
