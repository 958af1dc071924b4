"""Whatever is sent over a pipe, each message gets what it must get, and the server goes on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from tests.fuzz.frames import (
    STATEFUL,
    VERSIONS,
    broken_texts,
    encoded,
    good_frames,
    read_as_python_does,
    readable_id,
    spoiled_frames,
)
from tests.fuzz.pipes import Json, Pipe, cancel, pipe
from tests.fuzz.timed import examples, for_a_while

ERRORS = {-32700, -32600, -32601, -32602, -32002, -32021, -32022}
"""What a client may be told of its own mistakes; -32603 would be a mistake of ours."""


@pytest.fixture(scope="module")
def client() -> Iterator[Pipe]:
    with pipe() as server:
        yield server
        server.still_serves()
        assert "fault of Answerback" not in server.stderr()
        assert server.end() == 0


def send(client: Pipe, text: bytes) -> None:
    """Send a line, and see that what comes back is right for it."""
    line = text.replace(b"\n", b" ")
    client.write(line + b"\n")
    message = read_as_python_does(line)
    id = readable_id(message)
    if id is not None and "method" in message:
        _expect_answer(client, id)
    said = client.settle()
    answers = [frame for frame in said if isinstance(frame, list) or "method" not in frame]
    if message is None:
        assert len(answers) == (1 if line.strip() else 0)
    for answer in answers:
        _check_error(answer, id)
    assert len(answers) <= 1


def _expect_answer(client: Pipe, id: Json) -> None:
    """One answer and no more; or, for a subscription, that it began."""
    while True:
        said = client.receive()
        if said.get("method") == "notifications/subscriptions/acknowledged":
            client.send(cancel(id))
            return
        if "method" in said and "id" in said:
            # Without its version the call is a stateful one, and its client may be asked.
            client.send({"jsonrpc": "2.0", "id": said["id"], "result": {"action": "decline"}})
        if "method" not in said:
            assert said.get("id", id) == id
            if "error" in said:
                _check_error(said, id)
            else:
                assert "id" in said
            return


def _check_error(answer: Json, id: Json) -> None:
    assert answer["error"]["code"] in ERRORS, answer["error"]
    assert answer.get("id", id) == id


@pytest.mark.parametrize("version", VERSIONS)
def test_a_good_message_of_every_method_is_answered_well(client: Pipe, version: str) -> None:
    _open(client, version)

    for frame in good_frames(version):
        if "method" in frame and "id" in frame and frame["method"] != "subscriptions/listen":
            client.send(frame)
            said = client.answer(frame["id"])
            assert "result" in said or "requestState" in frame["params"], frame["method"]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_spoiled_message_is_answered_as_it_deserves(client: Pipe, version: str) -> None:
    @examples(200)
    @given(spoiled_frames(version))
    def holds(frame: Json) -> None:
        _open(client, version)
        send(client, encoded(frame).encode("utf-8", "surrogatepass"))

    for_a_while(holds)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_broken_text_is_answered_as_it_deserves(client: Pipe, version: str) -> None:
    @examples(200)
    @given(broken_texts(version))
    def holds(text: bytes) -> None:
        _open(client, version)
        send(client, text)

    for_a_while(holds)


def _open(client: Pipe, version: str) -> None:
    if version in STATEFUL:
        client.initialize(version, elicitation={})
    client.others.clear()
