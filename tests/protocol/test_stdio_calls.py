"""Calls on stdio: cancelled, many at once, read slowly, and when the server ends."""

from __future__ import annotations

import json
import select
import signal
import threading
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.fuzz.stdio_client import (
    EVERYTHING,
    HOSTILE,
    TIMEOUT,
    StdioClient,
    call,
    cancel,
    file_holds,
    first_question,
    request,
    stdio_client,
    wait_until,
)

STATELESS: dict[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
}


def test_a_second_request_with_a_running_id_is_refused_and_the_first_continues(
    client: StdioClient, tmp_path: Path
) -> None:
    release = tmp_path / "release"
    client.send(call(1, "wait_for", path=str(release)), call(1, "add", x=1, y=2))

    assert client.receive_response(1)["error"]["code"] == -32600
    release.touch()
    assert client.receive_response(1)["result"]["structuredContent"] == {"result": True}


@pytest.mark.parametrize("tool", ["poll_cancelled", "report_progress", "sleep_async"])
@pytest.mark.parametrize("meta", [{}, STATELESS])
def test_a_cancelled_call_stops_and_sends_nothing_more(
    client: StdioClient, tmp_path: Path, tool: str, meta: dict[str, Any]
) -> None:
    state = tmp_path / "state"
    frame = call(
        "cancelled",
        tool,
        state_file=str(state),
        **({"progress": True} if tool == "sleep_async" else {}),
    )
    frame["params"]["_meta"] = {"progressToken": "cancelled", **meta}
    if meta:
        frame["params"]["_meta"]["io.modelcontextprotocol/logLevel"] = "debug"
    client.send(frame)
    wait_until(lambda: file_holds(state, "began"))

    client.send(cancel("cancelled"))
    client.drain()
    client.drain()
    wait_until(lambda: file_holds(state, "cancelled"))

    assert client.drain() == []


def test_a_call_cancelled_as_soon_as_it_is_sent_gets_no_response(
    client: StdioClient, tmp_path: Path
) -> None:
    for number in range(100):
        state = tmp_path / str(number)
        tool = ("poll_cancelled", "sleep_async")[number % 2]
        client.send(call(number, tool, state_file=str(state)), cancel(number))

    assert client.drain() == []
    for number in range(100):
        wait_until(partial(_is_missing_or_cancelled, tmp_path / str(number)))
    assert client.drain() == []


def _is_missing_or_cancelled(state: Path) -> bool:
    """Whether a call never began or was cancelled."""
    return not state.exists() or file_holds(state, "cancelled")


def test_cancelling_a_finished_or_unknown_request_is_ignored(client: StdioClient) -> None:
    client.send(call(1, "add_in_thread", x=1, y=1))
    client.receive_response(1)

    client.send(cancel(1), cancel("never"), cancel(1))

    assert client.drain() == []


def test_calls_cancelled_while_they_end_get_at_most_one_response(client: StdioClient) -> None:
    for number in range(300):
        client.send(call(number, ("add_in_thread", "add_async")[number % 2], x=1, y=1))
        client.send(cancel(number))

    assert client.still_serves()
    ids = [frame["id"] for frame in client.other_messages]
    assert len(ids) == len(set(ids))
    assert all("result" in frame for frame in client.other_messages)


def test_running_calls_are_answered_after_stdin_is_closed(tmp_path: Path) -> None:
    release = tmp_path / "release"
    with stdio_client(EVERYTHING) as client:
        client.send(*(call(number, "wait_for", path=str(release)) for number in range(5)))
        client.send(call("last", "add_async", x=1, y=1))
        client.receive_response("last")

        client.close_stdin()
        release.touch()

        assert sorted(frame["id"] for frame in client.read_to_end()) == [0, 1, 2, 3, 4]
        assert client.process.wait(TIMEOUT) == 0


@pytest.mark.parametrize("tool", ["add", "add_in_thread", "add_async"])
def test_the_server_ends_when_nobody_reads_its_response(tool: str) -> None:
    with stdio_client() as client:
        assert client.still_serves()
        client.close_stdout()

        client.send(call(1, tool, x=1, y=1))

        client.process.wait(TIMEOUT)
        assert "Traceback" not in client.stderr()


def test_the_server_ends_when_nobody_reads_its_error() -> None:
    with stdio_client() as client:
        assert client.still_serves()
        client.close_stdout()

        client.write(b"nonsense\n")

        client.process.wait(TIMEOUT)
        assert "Traceback" not in client.stderr()


def test_the_server_ends_when_its_client_stops_reading_progress() -> None:
    with stdio_client() as client:
        frame = call(1, "flood", count=10_000_000, size=1000)
        frame["params"]["_meta"] = {"progressToken": 1}
        client.send(frame)
        client.receive()
        client.close_stdout()

        client.process.wait(TIMEOUT)
        assert "Traceback" not in client.stderr()


def test_a_client_that_reads_slowly_gets_every_response_and_takes_little_memory() -> None:
    with stdio_client() as client:
        assert client.still_serves()
        before = client.status("VmRSS")
        count = 20_000
        calls = b"".join(
            json.dumps(call(number, "add_in_thread", x=number, y=1)).encode() + b"\n"
            for number in range(count)
        )
        writing = threading.Thread(target=client.write, args=(calls,))
        writing.start()
        # Both pipes are full, so neither side can write.
        wait_until(lambda: _is_idle(client))
        grown = client.status("VmRSS") - before

        responses = [client.receive() for _ in range(count)]
        writing.join(TIMEOUT)

        assert grown < 30 * 1024
        assert sorted(frame["id"] for frame in responses) == list(range(count))
        assert client.still_serves()


def _is_idle(client: StdioClient) -> bool:
    """Whether the server used no CPU time for 200 ms."""
    before = _cpu_times(client)
    select.poll().poll(200)
    return _cpu_times(client) == before


def _cpu_times(client: StdioClient) -> list[str]:
    fields = Path(f"/proc/{client.process.pid}/stat").read_text().rpartition(")")[2].split()
    return fields[11:13]


def test_progress_that_a_client_reads_slowly_takes_little_memory() -> None:
    with stdio_client() as client:
        assert client.still_serves()
        before = client.status("VmRSS")
        frame = call(1, "flood", count=50_000, size=1000)
        frame["params"]["_meta"] = {"progressToken": 1}
        client.send(frame)
        wait_until(lambda: _is_idle(client))

        assert client.status("VmRSS") - before < 20 * 1024
        assert client.receive_response(1)["result"]["isError"] is False


@pytest.mark.parametrize("path", [EVERYTHING, HOSTILE])
def test_two_hundred_running_calls_do_not_block_one_another(path: Path, tmp_path: Path) -> None:
    release = tmp_path / "release"
    with stdio_client(path) as client:
        client.send(*(call(number, "wait_for", path=str(release)) for number in range(200)))
        assert client.still_serves()
        assert client.other_messages == []

        release.touch()

        responses = [client.receive() for _ in range(200)]
        assert {frame["id"] for frame in responses} == set(range(200))
        assert all(frame["result"]["structuredContent"] == {"result": True} for frame in responses)


@pytest.mark.parametrize("tool", ["exit_async", "raise_interrupt", "raise_cancelled"])
def test_a_tool_that_exits_or_interrupts_fails_only_its_call(
    client: StdioClient, tool: str
) -> None:
    client.send(call(1, tool))

    assert client.receive_response(1)["result"]["isError"] is True
    client.send(call(2, "add_async", x=1, y=1))
    assert client.receive_response(2)["result"]["isError"] is False


@pytest.mark.parametrize("tool", ["loud", "leave", "leak", "leak_async", "cycle", "infinite"])
def test_output_and_exceptions_of_a_tool_are_not_sent(tool: str) -> None:
    with stdio_client(EVERYTHING) as client:
        client.send(call(1, tool))

        assert client.receive()["result"]["isError"] is (tool != "loud")
        assert client.still_serves()
        assert client.other_messages == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("running", [None, "poll_cancelled", "sleep_async", "ask_before"])
def test_a_signal_ends_the_server_without_output(
    number: signal.Signals, running: str | None, tmp_path: Path
) -> None:
    with stdio_client() as client:
        client.initialize(elicitation={})
        if running == "ask_before":
            first_question(client, running)
        elif running is not None:
            client.send(call(1, running, state_file=str(tmp_path / "state")))
            wait_until(lambda: file_holds(tmp_path / "state", "began"))

        client.process.send_signal(number)

        assert client.process.wait(TIMEOUT) in (0, 130, 143, -number)
        assert client.stderr() == ""


def test_subscriptions_end_when_stdin_is_closed() -> None:
    with stdio_client() as client:
        for number in range(50):
            params = {
                "notifications": {"resourceSubscriptions": ["note://one"]},
                "_meta": STATELESS,
            }
            client.send(request(number, "subscriptions/listen", params))
            assert client.receive()["method"] == "notifications/subscriptions/acknowledged"
        client.send(cancel(0), call("change_resource", "change_resource"))

        client.receive_response("change_resource")

        subscriptions = [
            frame["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"]
            for frame in client.other_messages
        ]
        assert subscriptions == list(range(1, 50))
        assert client.close_and_wait() == 0


def test_a_client_that_sends_nothing_ends_the_server_without_output() -> None:
    with stdio_client() as client:
        assert client.close_and_wait() == 0
        assert client.read_to_end() == []
        assert client.stderr() == ""
