"""Event streams over HTTP: resumed, read slowly, shared by a session, ended with the server."""

from __future__ import annotations

import json
import select
import signal
import socket
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest
from tests.fuzz.http_client import (
    EVENTS,
    ServedApp,
    mirrored_headers,
    raw_post,
    read_to_end,
    read_until,
    served_app,
    stateless_call,
    stateless_request,
)
from tests.fuzz.stdio_client import HOSTILE, TIMEOUT, call, file_holds, request, wait_until

KILOBYTE = 1024


def start_get(served: ServedApp, headers: dict[str, str]) -> socket.socket:
    """Request a GET stream on a new connection."""
    lines = [
        "GET /mcp HTTP/1.1",
        "Host: localhost",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    connection = served.connect()
    connection.sendall("\r\n".join([*lines, "", ""]).encode("latin-1"))
    return connection


def test_only_the_session_of_a_stream_can_resume_it(served: ServedApp) -> None:
    mine, theirs = served.initialize(), served.initialize()
    headers = {**mine, "Accept": EVENTS, "Connection": "close"}
    received = read_to_end(served.start_post(call(1, "long_text", size=10), headers))
    id = received.partition(b"id: ")[2].split()[0].decode().rpartition("-")[0]

    resumed = served.send(
        headers={**mine, "Last-Event-ID": f"{id}-0"}, method="GET", first_event_only=True
    )
    assert resumed.frames[0]["id"] == 1

    for session, last in (
        (theirs, f"{id}-0"),
        (mine, f"{id}-\xb2"),
        (mine, f"{id}-{'9' * 5000}"),
        (mine, f"{id}--1"),
        (mine, f"{id}x-0"),
        (mine, "9" * 60_000),
        (mine, "-"),
        (mine, "\xb2.x-\xb2"),
        (mine, "65535.x-0"),
    ):
        stream = start_get(served, {**session, "Last-Event-ID": last})
        response = stream.recv(65536)
        assert b" 500 " not in response.partition(b"\r\n")[0]
        assert b'"id":1' not in response
        stream.close()


@pytest.mark.parametrize("last", ["7.x-0", "9999.x-0"])
def test_resuming_a_stream_of_an_unknown_worker_opens_a_new_stream(
    served: ServedApp, last: str
) -> None:
    session = served.initialize()
    subscribe = request(1, "resources/subscribe", {"uri": "note://one"})
    assert served.post(subscribe, session).status == 200
    stream = start_get(served, {**session, "Last-Event-ID": last})
    read_until(stream, b"\r\n\r\n")

    served.post(call(2, "change_resource"), session)

    assert b"notifications/resources/updated" in read_until(stream, b"resources/updated")


def test_progress_that_a_client_reads_slowly_takes_little_memory() -> None:
    with served_app() as served:
        assert served.still_serves()
        before = served.status("VmRSS")
        frame = stateless_call(1, "flood", count=100_000, size=1000)
        frame["params"]["_meta"]["progressToken"] = 1
        connection = served.start_post(frame, {**mirrored_headers(frame), "Connection": "close"})
        connection.recv(100)

        for _ in range(100):
            assert served.still_serves()

        assert served.status("VmRSS") - before < 30 * KILOBYTE
        assert b'"structuredContent":{"result":100000}' in read_to_end(connection)


def test_a_stream_that_is_never_idle_does_not_delay_other_requests(served: ServedApp) -> None:
    frame = stateless_call(1, "flood", count=1_000_000_000, size=10)
    frame["params"]["_meta"]["progressToken"] = 1
    connection = served.start_post(frame, mirrored_headers(frame))
    reading = threading.Thread(target=_read_and_discard, args=(connection,))
    reading.start()

    for _ in range(10):
        assert served.still_serves()

    assert reading.is_alive(), "the stream ended before the other requests did"
    connection.shutdown(socket.SHUT_RDWR)
    reading.join(TIMEOUT)


def _read_and_discard(connection: socket.socket) -> None:
    with suppress(OSError):
        while connection.recv(1 << 20):
            pass


def test_the_stream_of_a_subscriber_that_does_not_read_is_ended() -> None:
    with served_app() as served:
        frame = stateless_request(
            1, "subscriptions/listen", notifications={"resourceSubscriptions": ["note://one"]}
        )
        connection = served.connect()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        connection.sendall(raw_post(json.dumps(frame).encode(), mirrored_headers(frame)))
        read_until(connection, b"acknowledged")
        assert served.still_serves()
        before = served.status("VmRSS")

        served.post(call(1, "change_resource", times=60_000))

        assert served.status("VmRSS") - before < 8 * KILOBYTE
        assert served.still_serves()
        received = read_until(connection, b"0\r\n\r\n")
        assert 1000 < received.count(b"resources/updated") < 60_000


def test_subscribing_to_an_unknown_resource_is_refused(served: ServedApp) -> None:
    session = served.initialize()

    for uri in ("note://none", "x", "", "note://" + "x" * 100_000):
        response = served.post(request(1, "resources/subscribe", {"uri": uri}), session)
        assert response.code in (-32002, -32602)


@pytest.mark.parametrize("workers", ["1", "3"])
def test_only_the_newest_stream_of_a_session_gets_a_change(workers: str) -> None:
    with served_app(HOSTILE, "--workers", workers) as served:
        session = served.initialize()
        subscribed = served.post(request(1, "resources/subscribe", {"uri": "note://one"}), session)
        assert subscribed.frame["result"] == {}
        streams = [_open_stream(served, session) for _ in range(9)]

        for number in range(20):
            served.post(call(number, "change_resource"), session)
        assert b"resources/updated" in read_until(streams[-1], b"resources/updated")
        # When the newest is closed, the stream before it gets the changes.
        streams.pop().close()
        assert wait_until(lambda: _gets_a_change(served, session, streams[-1]))
        served.process.send_signal(signal.SIGTERM)
        received = [read_to_end(stream) for stream in streams]

    assert all(b"resources/updated" not in text for text in received[:-1])


def _open_stream(served: ServedApp, session: dict[str, str]) -> socket.socket:
    stream = start_get(served, session)
    assert b" 200 " in stream.recv(65536)
    return stream


def _gets_a_change(served: ServedApp, session: dict[str, str], stream: socket.socket) -> bool:
    served.post(call(1, "change_resource"), session)
    return bool(select.select([stream], [], [], 0.05)[0])


def test_open_streams_end_with_their_last_frame_when_the_server_ends(tmp_path: Path) -> None:
    with served_app() as served:
        session = served.initialize()
        changes = {"notifications": {"toolsListChanged": True}}
        frame = stateless_request("subscription", "subscriptions/listen", **changes)
        subscriptions = [served.start_post(frame, mirrored_headers(frame)) for _ in range(100)]
        for connection in subscriptions:
            read_until(connection, b"acknowledged")
        streams = [_open_stream(served, session) for _ in range(100)]
        state, release = tmp_path / "state", tmp_path / "release"
        running_call = served.start_post(
            call(1, "wait_for_file", state_file=str(state), until_file=str(release)), session
        )
        wait_until(lambda: file_holds(state, "began"))

        began = time.monotonic()
        served.process.send_signal(signal.SIGTERM)
        ends = [read_to_end(connection) for connection in subscriptions]
        for stream in streams:
            read_to_end(stream)
        release.touch()

        assert all(b'"resultType":"complete"' in end for end in ends)
        assert b'"isError":false' in read_to_end(running_call)
        assert served.process.wait(TIMEOUT) == 0
        # Less than the 30 seconds that running calls get.
        assert time.monotonic() - began < 20
        assert "Traceback" not in served.stderr()
