"""Each line on stdio, valid or malformed, gets the right response, and the server continues."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from tests.fuzz.frames import (
    STATEFUL,
    VERSIONS,
    corrupted_texts,
    encoded,
    malformed_frames,
    parse_with_json_module,
    readable_id,
    valid_frames,
)
from tests.fuzz.stdio_client import Json, StdioClient, cancel, stdio_client
from tests.fuzz.timed import examples, holds

ERRORS = {-32700, -32600, -32601, -32602, -32002, -32021, -32022}
"""The error codes for a client's mistakes; -32603 would be a bug of the server."""


@pytest.fixture(scope="module")
def client() -> Iterator[StdioClient]:
    with stdio_client() as client:
        yield client
        assert client.still_serves()
        assert "internal error" not in client.stderr()
        assert client.close_and_wait() == 0


def check(client: StdioClient, text: bytes) -> None:
    """Send a line; the server sends the right response for it and nothing else."""
    line = text.replace(b"\n", b" ")
    client.write(line + b"\n")
    message = parse_with_json_module(line)
    id = readable_id(message)
    if id is not None and "method" in message:
        _check_response(client, id)
    received = client.drain()
    responses = [frame for frame in received if isinstance(frame, list) or "method" not in frame]
    if message is None:
        assert len(responses) == (1 if line.strip() else 0)
    for response in responses:
        _check_error(response, id)
    assert len(responses) <= 1


def _check_response(client: StdioClient, id: Json) -> None:
    """Receive the one response to a request, or the acknowledgement of a subscription."""
    while True:
        message = client.receive()
        if message.get("method") == "notifications/subscriptions/acknowledged":
            client.send(cancel(id))
            return
        if "method" in message and "id" in message:
            # A call without a version is a stateful one, so the server may ask its client.
            client.send({"jsonrpc": "2.0", "id": message["id"], "result": {"action": "decline"}})
        if "method" not in message:
            assert message.get("id", id) == id
            if "error" in message:
                _check_error(message, id)
            else:
                assert "id" in message
            return


def _check_error(response: Json, id: Json) -> None:
    assert response["error"]["code"] in ERRORS, response["error"]
    assert response.get("id", id) == id


@pytest.mark.parametrize("version", VERSIONS)
def test_a_valid_request_of_every_method_gets_a_result(client: StdioClient, version: str) -> None:
    _initialize(client, version)

    for frame in valid_frames(version):
        if "method" in frame and "id" in frame and frame["method"] != "subscriptions/listen":
            client.send(frame)
            response = client.receive_response(frame["id"])
            assert "result" in response or "requestState" in frame["params"], frame["method"]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_malformed_message_gets_one_response_with_its_id(
    client: StdioClient, version: str
) -> None:
    @examples(200)
    @given(malformed_frames(version))
    def property(frame: Json) -> None:
        _initialize(client, version)
        check(client, encoded(frame).encode("utf-8", "surrogatepass"))

    assert holds(property)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_corrupted_line_gets_one_response_with_its_id(client: StdioClient, version: str) -> None:
    @examples(200)
    @given(corrupted_texts(version))
    def property(text: bytes) -> None:
        _initialize(client, version)
        check(client, text)

    assert holds(property)


def _initialize(client: StdioClient, version: str) -> None:
    if version in STATEFUL:
        client.initialize(version, elicitation={})
    client.other_messages.clear()
