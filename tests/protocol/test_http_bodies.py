"""Request bodies over HTTP: incomplete, slow, too large, or not HTTP at all."""

from __future__ import annotations

import json

import pytest
from tests.fuzz.http_client import ServedApp, raw_post, read_to_end
from tests.fuzz.stdio_client import call

KILOBYTE = 1024


def test_clients_that_disconnect_within_their_body_do_not_stop_the_server(
    served: ServedApp,
) -> None:
    whole = raw_post(json.dumps(call(1, "add", x=1, y=2)).encode(), {})
    for end in (10, 40, len(whole) // 2, len(whole) - 1):
        connection = served.connect()
        connection.sendall(whole[:end])
        connection.close()

    assert served.still_serves()


def test_a_body_that_arrives_byte_by_byte_is_read(served: ServedApp) -> None:
    connection = served.connect()
    for byte in raw_post(json.dumps(call(1, "add", x=1, y=2)).encode(), {"Connection": "close"}):
        connection.send(bytes([byte]))

    assert b'"id":1' in read_to_end(connection)


def test_clients_that_delay_the_end_of_their_body_do_not_delay_others(served: ServedApp) -> None:
    whole = raw_post(json.dumps(call(1, "add", x=1, y=2)).encode(), {})
    connections = [served.connect() for _ in range(100)]
    for connection in connections:
        connection.sendall(whole[:-5])

    assert served.still_serves()

    for connection in connections:
        connection.sendall(whole[-5:])
        assert b" 200 " in connection.recv(65536)
        connection.close()


def test_a_body_beyond_the_limit_is_refused_with_413_that_the_client_can_read(
    served: ServedApp,
) -> None:
    before = served.status("VmHWM")

    response = served.send(b"[" + b" " * (32 * 1024 * KILOBYTE) + b"]")

    assert response.status == 413
    assert served.status("VmHWM") - before < 30 * KILOBYTE


@pytest.mark.parametrize(
    "head",
    [
        b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n{}",
        b"POST /mcp HTTP/9.9\r\n\r\n",
        b"\x16\x03\x01\x02\x00",
        b"\0" * 100,
    ],
)
def test_malformed_http_closes_its_connection_without_a_500(served: ServedApp, head: bytes) -> None:
    connection = served.connect()
    connection.sendall(head)

    response = read_to_end(connection)

    assert b" 500 " not in response.partition(b"\r\n")[0]
