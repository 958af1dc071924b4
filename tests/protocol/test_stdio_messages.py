"""Messages on stdio: malformed ones, odd ids, long lines, batches, notifications."""

from __future__ import annotations

import base64
import json
import os
from typing import Any

import pytest
from tests.fuzz.stdio_client import (
    HOSTILE,
    StdioClient,
    call,
    checked_message,
    notification,
    request,
    stdio_client,
)

MEGABYTE = 1024 * 1024
HUGE_CURSOR = base64.b64encode(b"from " + b"9" * 5000).decode()
PING = b'{"jsonrpc":"2.0","id":7,"method":"ping"}'


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"{", -32700),
        (b"nonsense", -32700),
        (PING[:-1], -32700),
        (PING + b"}", -32700),
        (PING + PING, -32700),
        (b"\xef\xbb\xbf" + PING, -32700),
        (PING + b"\0", -32700),
        (b"\0" + PING, -32700),
        (PING.replace(b"ping", b"p\0ng"), -32700),
        (PING.replace(b"ping", b"p\xffng"), -32700),
        (b'{"jsonrpc":"2.0","id":7,"method":"ping","params":{"a":"\xc3("}}', -32700),
        (b'{"jsonrpc":"2.0","id":7,"method":"ping","params":{"a":"\xed\xa0\x80"}}', -32700),
        (b'{"jsonrpc":"2.0","id":7,"method":"ping","params":{"a":NaN}}', -32700),
        (b'{"jsonrpc":"2.0","id":7,"method":"ping","params":' + b"[" * 100_000, -32700),
        (b"[" * 100_000 + b"]" * 100_000, -32700),
        (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, -32700),
        (b"null", -32600),
        (b"true", -32600),
        (b'"ping"', -32600),
        (b"{}", -32600),
        (b'{"jsonrpc":"2.0"}', -32600),
        (b'{"id":null,"jsonrpc":"2.0","method":"ping"}', -32600),
        (b'{"id":true,"jsonrpc":"2.0","method":"ping"}', -32600),
        (b'{"id":1.5,"jsonrpc":"2.0","method":"ping"}', -32600),
        (b'{"id":[1],"jsonrpc":"2.0","method":"ping"}', -32600),
        (b'{"id":{},"jsonrpc":"2.0","method":"ping"}', -32600),
    ],
)
def test_a_malformed_message_is_refused_without_an_id(
    client: StdioClient, line: bytes, code: int
) -> None:
    client.write(line + b"\n")

    response = client.receive()

    assert response["error"]["code"] == code
    assert "id" not in response


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        ({"method": "no/such"}, -32601),
        ({"method": ""}, -32601),
        ({"method": "__init__"}, -32601),
        ({"method": "tools/call/"}, -32601),
        ({"method": "server/discover"}, -32601),
        ({"method": "subscriptions/listen", "params": {"notifications": {}}}, -32601),
        ({"method": 5}, -32600),
        ({"method": None}, -32600),
        ({"method": "ping", "jsonrpc": "1.0"}, -32600),
        ({"method": "ping", "jsonrpc": 2.0}, -32600),
        ({"method": "ping", "params": [1]}, -32600),
        ({"method": "ping", "params": "x"}, -32600),
        ({"method": "tools/call", "params": {}}, -32602),
        ({"method": "tools/call", "params": {"name": None}}, -32602),
        ({"method": "tools/call", "params": {"name": "no such"}}, -32602),
        ({"method": "tools/call", "params": {"name": "add", "arguments": [1, 2]}}, -32602),
        ({"method": "tools/call", "params": {"name": "add", "_meta": 5}}, -32602),
        ({"method": "tools/list", "params": {"cursor": 5}}, -32602),
        ({"method": "tools/list", "params": {"cursor": "forged"}}, -32602),
        ({"method": "tools/list", "params": {"cursor": HUGE_CURSOR}}, -32602),
        ({"method": "resources/read", "params": {"uri": "file:///etc/passwd"}}, -32002),
        ({"method": "prompts/get", "params": {"name": "no such"}}, -32602),
        ({"method": "logging/setLevel", "params": {"level": "loud"}}, -32602),
        ({"method": "completion/complete", "params": {"ref": {"type": "ref/x"}}}, -32602),
    ],
)
def test_an_invalid_request_is_refused_with_its_id(
    client: StdioClient, frame: dict[str, Any], code: int
) -> None:
    client.send({"jsonrpc": "2.0", "id": "invalid", **frame})

    assert client.receive_response("invalid")["error"]["code"] == code


@pytest.mark.parametrize(
    "id", ["", "0", 0, -1, 2**53, 2**64, 10**40, "\u2603", "x" * 10_000, "\0", "__proto__"]
)
def test_an_unusual_id_is_returned_unchanged(client: StdioClient, id: Any) -> None:
    client.send(call(id, "add_in_thread", x=1, y=2))

    response = client.receive()

    assert response["id"] == id
    assert type(response["id"]) is type(id)
    assert response["result"]["isError"] is False


@pytest.mark.parametrize(
    "escape", [r"\ud800", r"\ud800 and more of it", r"\udc00\ud800", r"\ud800\u0041"]
)
@pytest.mark.parametrize("where", ["method", "name", "argument", "meta", "id"])
def test_an_unpaired_surrogate_is_refused_or_ignored(
    client: StdioClient, where: str, escape: str
) -> None:
    texts = {
        "method": r'{"jsonrpc":"2.0","id":8,"method":"%s"}',
        "name": r'{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"%s"}}',
        "argument": r'{"jsonrpc":"2.0","id":8,"method":"tools/call","params":'
        r'{"name":"poll_cancelled","arguments":{"state_file":"%s"}}}',
        "meta": r'{"jsonrpc":"2.0","id":8,"method":"tools/list","params":{"_meta":{"x":"%s"}}}',
        "id": r'{"jsonrpc":"2.0","id":"%s","method":"tools/list"}',
    }
    client.write((texts[where] % escape).encode() + b"\n")

    response = client.receive()

    if "error" in response:
        assert response["error"]["code"] in (-32700, -32602)
    else:
        assert response["result"].get("isError") is True or where == "meta"


def test_a_number_beyond_all_limits_is_refused_as_an_argument_and_as_an_id(
    client: StdioClient,
) -> None:
    for number in (b"1e999", b"-1e999", b"9" * 5000):
        client.write(
            b'{"jsonrpc":"2.0","id":8,"method":"tools/call","params":'
            b'{"name":"add","arguments":{"x":%b,"y":1}}}\n' % number
        )
        assert client.receive_response(8)["result"]["isError"] is True
        client.write(b'{"jsonrpc":"2.0","id":%b,"method":"ping"}\n' % number)
        assert client.receive()["error"]["code"] in (-32700, -32600)


def test_a_line_of_a_hundred_megabytes_is_refused_and_not_kept_in_memory() -> None:
    with stdio_client() as client:
        assert client.still_serves()
        before = client.status("VmHWM")
        block = b"x" * MEGABYTE
        client.write(b'{"jsonrpc":"2.0","id":7,"method":"')
        for _ in range(100):
            client.write(block)
        client.write(b'"}\n')

        response = client.receive()

        assert response["error"]["code"] == -32600
        assert client.status("VmHWM") - before < 40 * 1024
        assert client.still_serves()


def test_a_line_just_below_the_limit_is_read(client: StdioClient) -> None:
    client.send(call(7, "sleep_async", state_file="x" * (9 * MEGABYTE), progress="no"))

    assert client.receive_response(7)["result"]["isError"] is True


def test_a_huge_line_without_a_newline_is_refused_at_the_end_of_the_input() -> None:
    with stdio_client() as client:
        client.write(b"y" * (11 * MEGABYTE))

        assert client.close_and_wait() == 0
        assert client.receive()["error"]["code"] == -32600


def test_carriage_returns_and_blank_lines_are_ignored(client: StdioClient) -> None:
    client.write(b"\r\n\n  \t\r\n" + PING + b"\r\n\r\n")

    assert client.receive() == {"jsonrpc": "2.0", "id": 7, "result": {}}
    assert client.drain() == []


def test_a_message_may_arrive_byte_by_byte(client: StdioClient) -> None:
    for byte in json.dumps(call(7, "add", x=1, y=2)).encode() + b"\n":
        client.write(bytes([byte]))

    assert client.receive_response(7)["result"]["isError"] is False


def test_many_messages_may_arrive_at_once(client: StdioClient) -> None:
    client.send(*(call(number, "add_in_thread", x=number, y=1) for number in range(500)))

    responses = [client.receive() for _ in range(500)]

    assert sorted(frame["id"] for frame in responses) == list(range(500))


def test_the_last_line_may_lack_its_newline() -> None:
    with stdio_client() as client:
        client.write(PING)

        assert client.close_and_wait() == 0
        assert client.read_to_end() == [{"jsonrpc": "2.0", "id": 7, "result": {}}]


@pytest.mark.parametrize("version", ["2024-11-05", "2025-06-18", "2025-11-25"])
def test_a_batch_is_refused_in_a_version_without_batches(client: StdioClient, version: str) -> None:
    client.initialize(version)

    client.send([request(1, "ping"), request(2, "ping")])

    assert client.receive()["error"]["code"] == -32600


def test_each_message_of_a_batch_gets_its_own_response(client: StdioClient) -> None:
    client.initialize("2025-03-26")

    client.send(
        [
            request(1, "ping"),
            5,
            {},
            [],
            notification("notifications/initialized"),
            request(2, "no/such"),
            request(3, "initialize", {"protocolVersion": "2025-03-26"}),
            call(4, "add", x=1, y="two"),
            {"jsonrpc": "2.0", "id": 5, "result": {}},
        ]
    )

    responses = client.receive()
    assert [frame.get("id") for frame in responses] == [1, None, None, None, 2, 3, 4]
    codes = [frame["error"]["code"] for frame in responses if "error" in frame]
    assert codes == [-32600, -32600, -32600, -32601, -32600]


def test_an_empty_batch_is_refused_and_one_without_requests_gets_no_response(
    client: StdioClient,
) -> None:
    client.initialize("2025-03-26")

    client.send([])
    client.send([notification("notifications/initialized")])

    assert client.receive()["error"]["code"] == -32600
    assert client.drain() == []


def test_a_batch_of_millions_of_messages_is_refused() -> None:
    with stdio_client() as client:
        client.initialize("2025-03-26")
        before = client.status("VmHWM")

        client.write(b"[" + b"1," * (4 * MEGABYTE) + b"1]\n")

        assert client.receive()["error"]["code"] == -32600
        assert client.status("VmHWM") - before < 400 * 1024
        assert client.still_serves()


def test_requests_are_served_before_and_after_a_second_initialize() -> None:
    with stdio_client() as client:
        assert client.still_serves()
        client.initialize("2024-11-05")
        listed = client.request("tools/list")["result"]["tools"]
        assert all("outputSchema" not in tool for tool in listed)

        client.initialize("2025-11-25")

        assert any(
            "outputSchema" in tool for tool in client.request("tools/list")["result"]["tools"]
        )


def test_a_notification_gets_no_response_whatever_its_parameters(client: StdioClient) -> None:
    for method in ("notifications/cancelled", "notifications/progress", "no/such", "tools/call"):
        for id in ("0", "[]", "null", "1.5", "{}"):
            client.send(notification(method, requestId=json.loads(id)))

    assert client.drain() == []


def test_a_response_without_a_request_is_ignored(client: StdioClient) -> None:
    for id in ("ask-1", "ask-999999", 1, ""):
        client.send({"jsonrpc": "2.0", "id": id, "result": {"action": "accept"}})
        client.send({"jsonrpc": "2.0", "id": id, "error": {"code": 1, "message": "no"}})

    assert client.drain() == []


def test_a_line_of_any_byte_gets_its_own_error(client: StdioClient) -> None:
    noise = [bytes([byte]) * 3 for byte in range(256) if byte not in b"\n"]
    blank = [line for line in noise if not line.strip()]
    client.write(b"\n".join(noise) + b"\n")

    responses = [client.receive() for _ in range(len(noise) - len(blank))]

    assert {frame["error"]["code"] for frame in responses} <= {-32700, -32600}
    assert client.drain() == []


def test_the_client_of_these_tests_detects_secrets_and_malformed_messages() -> None:
    for bad in (
        b'{"jsonrpc":"2.0","id":1,"result":{"a":"hunter2"}}',
        b'{"jsonrpc":"2.0","id":null,"result":{}}',
        b'{"jsonrpc":"2.0","id":1,"result":NaN}',
        b'{"jsonrpc":"2.0","id":1,"result":{},"error":{}}',
        b'{"id":1,"result":{}}',
        b'{"jsonrpc":"2.0","id":1,"result":{"a":"%b"}}' % os.fsencode(HOSTILE),
    ):
        with pytest.raises((AssertionError, ValueError, KeyError)):
            checked_message(bad)
