"""HTTP/1.1 as `serve` speaks it: pipelining, trailers, `Upgrade`, and malformed requests."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from answerback import App
from answerback.server.uvicorn.uvicorn_protocol import UvicornProtocol

EVERYTHING = Path(__file__).parent.parent / "apps" / "everything.py"
CALL = b'{"x":7,"y":3}'
ORIGIN = "https://app.example.com"


@pytest.fixture(scope="module")
def cors_port(serve: Any) -> Iterator[int]:
    with serve(EVERYTHING, "--allow-origin", ORIGIN) as server:
        yield server.port


@pytest.fixture(scope="module")
def plain_port(serve: Any) -> Iterator[int]:
    """The port of a server without CORS middleware."""
    with serve(EVERYTHING) as server:
        yield server.port


def exchange(port: int, sent: bytes, *, half_close: bool = False) -> tuple[bytes, bytes]:
    """The headers and the rest of all that is received until the server closes the connection."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(sent)
        if half_close:
            connection.shutdown(socket.SHUT_WR)
        received = b"".join(iter(lambda: connection.recv(65536), b""))
    head, _, body = received.partition(b"\r\n\r\n")
    return head.lower(), body


def test_a_response_has_a_date_and_a_content_type(
    plain_port: int, connect: Any, request_bytes: Any
) -> None:
    connection = connect(plain_port)
    connection.send(request_bytes())
    response = connection.read_response()

    assert (response.status, response.json) == (200, {"result": 10})
    assert parsedate_to_datetime(response.headers["date"]).year >= 2026
    assert response.headers["content-type"] == "application/json"


def test_a_layer_around_the_application_sees_the_messages_that_pass_it(
    connect: Any, request_bytes: Any
) -> None:
    app = App("sums")
    app.add_tool(lambda: 10, name="add")
    application = app.asgi()
    seen: list[str] = []

    async def layer(scope: Any, receive: Any, send: Any) -> None:
        async def watched(message: Any) -> None:
            seen.append(message["type"])
            await send(message)

        await application(scope, receive, watched)

    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(
        layer, http=UvicornProtocol, log_level="warning", access_log=False, lifespan="off"
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        connection = connect(listener.getsockname()[1])
        connection.send(request_bytes("/functions/add", b"{}"))
        response = connection.read_response()
    finally:
        server.should_exit = True
        thread.join(60)

    assert response.json == {"result": 10}
    assert seen == ["http.response.start", "http.response.body"]


@pytest.mark.parametrize("version", [b"1.1", b"1.0"])
def test_a_client_that_closes_its_sending_half_gets_its_response(
    plain_port: int, request_bytes: Any, version: bytes
) -> None:
    sent = request_bytes("/functions/add", CALL).replace(b"HTTP/1.1", b"HTTP/" + version)

    head, body = exchange(plain_port, sent, half_close=True)

    assert head.startswith(b"http/1.1 200")
    assert body == b'{"result":10}'


def test_a_client_that_closes_its_sending_half_gets_all_pipelined_responses(
    plain_port: int, request_bytes: Any
) -> None:
    sent = request_bytes("/functions/add", CALL)

    _, responses = exchange(plain_port, sent * 3 + sent[:-4], half_close=True)

    assert responses.count(b'{"result":10}') == 3


def test_connection_close_is_honoured_after_the_response(
    plain_port: int, request_bytes: Any
) -> None:
    head, body = exchange(plain_port, request_bytes("/functions/add", CALL, "Connection: close"))

    assert b"connection: close" in head
    assert body == b'{"result":10}'


def test_the_response_to_head_has_no_body(plain_port: int, request_bytes: Any) -> None:
    sent = request_bytes("/functions/add", None, "Connection: close", method="HEAD")

    head, body = exchange(plain_port, sent)

    assert head.startswith(b"http/1.1 405")
    assert body == b""


def test_pipelined_requests_are_answered_in_order(
    plain_port: int, connect: Any, request_bytes: Any
) -> None:
    connection = connect(plain_port)
    bodies = [json.dumps({"x": number, "y": 0}).encode() for number in range(20)]
    connection.send(b"".join(request_bytes("/functions/add", body) for body in bodies))

    assert [connection.read_response().json["result"] for _ in bodies] == list(range(20))


def test_others_are_served_while_a_body_arrives_in_two_parts(
    plain_port: int, connect: Any, request_bytes: Any
) -> None:
    connection = connect(plain_port)
    whole = request_bytes()
    connection.send(whole[:-5])
    other = connect(plain_port)
    other.send(whole)
    assert other.read_response().status == 200
    connection.send(whole[-5:])

    assert connection.read_response().json == {"result": 10}


def test_a_client_that_expects_100_continue_gets_it(
    plain_port: int, connect: Any, request_bytes: Any
) -> None:
    connection = connect(plain_port)
    whole = request_bytes("/functions/add", CALL, "Expect: 100-continue")
    connection.send(whole[: -len(CALL)])
    interim = connection.read_response()
    connection.send(CALL)

    assert interim.status == 100
    assert connection.read_response().json == {"result": 10}


def test_every_response_to_an_allowed_origin_has_the_cors_header(
    cors_port: int, connect: Any, request_bytes: Any
) -> None:
    connection = connect(cors_port)
    connection.send(request_bytes("/functions/add", CALL, f"Origin: {ORIGIN}"))
    called = connection.read_response()
    message = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
    connection.send(
        request_bytes("/mcp", message, f"Origin: {ORIGIN}", "Content-Type: application/json")
    )
    listed = connection.read_response()

    assert (called.status, listed.status) == (200, 200)
    for response in (called, listed):
        assert response.headers["access-control-allow-origin"] == ORIGIN


def test_the_204_of_an_ended_session_has_no_content_length(
    plain_port: int, connect: Any, request_bytes: Any
) -> None:
    connection = connect(plain_port)
    initialize = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
        },
    }
    body = json.dumps(initialize).encode()
    connection.send(request_bytes("/mcp", body, "Content-Type: application/json"))
    id = connection.read_response().headers["mcp-session-id"]
    connection.send(request_bytes("/mcp", None, f"Mcp-Session-Id: {id}", method="DELETE"))
    ended = connection.read_response()

    assert ended.status == 204
    assert "content-length" not in ended.headers


def test_thousands_of_pipelined_requests_with_an_upgrade_header_are_served(
    plain_port: int, connect: Any, request_bytes: Any
) -> None:
    connection = connect(plain_port)
    sent = request_bytes("/functions/add", CALL, "Connection: Upgrade", "Upgrade: h2c") * 5000
    threading.Thread(target=connection.send, args=(sent,)).start()

    assert {connection.read_response().status for _ in range(5000)} == {200}


def test_a_request_before_malformed_bytes_is_still_answered(
    plain_port: int, request_bytes: Any
) -> None:
    head, body = exchange(plain_port, request_bytes() + b"\0\0garbage\r\n\r\n")

    assert head.startswith(b"http/1.1 200")
    assert b"connection: close" in head
    assert body == b'{"result":10}'


@pytest.mark.parametrize("before", [1, 3])
def test_requests_before_a_malformed_body_are_still_answered(
    plain_port: int, connect: Any, request_bytes: Any, before: int
) -> None:
    broken = request_bytes("/functions/add", None, "Transfer-Encoding: chunked") + b"what?\r\n"
    connection = connect(plain_port)
    connection.send(request_bytes() * before + broken)

    assert [connection.read_response().json for _ in range(before)] == [{"result": 10}] * before
    assert connection.is_closed_by_server()


CHUNKED = "Transfer-Encoding: chunked"
CHUNKS = b"d\r\n%b\r\n0\r\n" % CALL


def test_trailers_are_not_taken_for_headers(
    plain_port: int, connect: Any, request_bytes: Any
) -> None:
    connection = connect(plain_port)
    trailers = b"Content-Type: text/plain\r\nHost: evil.example\r\n\r\n"
    connection.send(request_bytes("/functions/add", None, CHUNKED) + CHUNKS + trailers)

    assert connection.read_response().json == {"result": 10}


def test_trailers_that_never_end_close_the_connection(
    plain_port: int, connect: Any, request_bytes: Any
) -> None:
    connection = connect(plain_port)
    connection.send(request_bytes("/functions/add", None, CHUNKED) + CHUNKS + b"X: ")

    with pytest.raises(OSError, match=r"reset|pipe"):
        connection.send(b"a" * 30_000_000)


def test_a_body_in_one_byte_chunks_is_read(
    plain_port: int, connect: Any, request_bytes: Any
) -> None:
    connection = connect(plain_port)
    connection.send(request_bytes("/functions/add", None, CHUNKED))
    connection.send(b"1\r\n \r\n" * 100_000 + CHUNKS + b"\r\n")

    assert connection.read_response().json == {"result": 10}


def test_an_http_1_0_request_with_an_upgrade_header_is_served_and_the_connection_closed(
    plain_port: int, request_bytes: Any
) -> None:
    sent = request_bytes("/functions/add", CALL, "Connection: Upgrade", "Upgrade: h2c")

    head, body = exchange(plain_port, sent.replace(b"HTTP/1.1", b"HTTP/1.0"))

    assert b"connection: close" in head
    assert body == b'{"result":10}'


@pytest.mark.parametrize(
    "malformed",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"hello\r\n\r\n",
        b"FROB /functions/add HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"POST /functions/\xc3\xa9 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"POST /functions/add HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"POST /functions/add HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"POST /functions/add HTTP/1.1\r\nContent-Length: 1" + b"0" * 30 + b"\r\n\r\n",
        b"POST /functions/add HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
    ],
    ids=["tls", "words", "method", "http2", "path", "lengths", "negative", "huge", "smuggled"],
)
def test_malformed_http_is_refused_in_json_and_the_connection_closed(
    still_served: Any, connect: Any, malformed: bytes
) -> None:
    connection = connect(still_served.port)
    connection.send(malformed)
    response = connection.read_response()

    assert (response.status, response.headers["content-type"]) == (400, "application/json")
    assert response.json == {"error": "Invalid HTTP request"}
    assert connection.is_closed_by_server()


def test_headers_that_never_end_are_refused(still_served: Any, connect: Any) -> None:
    connection = connect(still_served.port)
    connection.send(b"POST /functions/add HTTP/1.1\r\nHost: localhost\r\nX-Long: " + b"a" * 70_000)

    assert connection.read_response().json == {"error": "Headers too large"}


def test_large_headers_are_accepted_if_they_end(
    still_served: Any, connect: Any, request_bytes: Any
) -> None:
    large = request_bytes("/functions/add", b'{"x":7,"y":3}', "X-Long: " + "a" * 30_000)

    connection = connect(still_served.port)
    connection.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for _ in range(10):
        for at in range(0, len(large), 3000):
            connection.send(large[at : at + 3000])
        assert connection.read_response().body == b'{"result":10}'


@pytest.mark.parametrize("parts", [1, 2, 400])
def test_a_request_with_an_upgrade_header_is_served_without_an_upgrade(
    still_served: Any, connect: Any, request_bytes: Any, parts: int
) -> None:
    """Every Java client sends one, and further requests on the same connection."""
    upgrade = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABk")
    first = request_bytes("/functions/add", b'{"x":7,"y":3}', *upgrade)
    chunked = request_bytes("/functions/add", None, *upgrade, "Transfer-Encoding: chunked")
    pipelined = first + chunked + b"d\r\n" + b'{"x":1,"y":3}' + b"\r\n0\r\n\r\n" + request_bytes()
    step = -(-len(pipelined) // parts)

    connection = connect(still_served.port)
    for at in range(0, len(pipelined), step):
        connection.send(pipelined[at : at + step])

    assert [connection.read_response().json["result"] for _ in range(3)] == [10, 4, 10]


def test_a_websocket_is_refused_with_405(
    still_served: Any, connect: Any, request_bytes: Any
) -> None:
    connection = connect(still_served.port)
    connection.send(
        request_bytes(
            "/functions/add", None, "Connection: Upgrade", "Upgrade: websocket",
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version: 13",
            method="GET",
        )
    )  # fmt: skip

    assert connection.read_response().status == 405
