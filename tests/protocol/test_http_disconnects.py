"""Disconnecting and cancelling over HTTP, and what a disconnected client leaves behind."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import MutableMapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.fuzz.http_client import (
    BOTH,
    EVENTS,
    JSON,
    ServedApp,
    mirrored_headers,
    read_to_end,
    read_until,
    served_app,
    stateless_call,
    stateless_request,
)
from tests.fuzz.stdio_client import TIMEOUT, call, cancel, file_holds, wait_until

from answerback import App, Context


@pytest.mark.parametrize("tool", ["poll_cancelled", "sleep_async", "report_progress"])
def test_disconnecting_cancels_a_stateless_request(
    served: ServedApp, tool: str, tmp_path: Path
) -> None:
    state = tmp_path / "state"
    frame = stateless_call(1, tool, state_file=str(state))
    if tool == "report_progress":
        frame["params"]["_meta"]["progressToken"] = 1
    connection = served.start_post(frame, mirrored_headers(frame))
    wait_until(lambda: file_holds(state, "began"))
    if tool == "report_progress":
        read_until(connection, b"notifications/progress")

    connection.close()

    assert wait_until(lambda: file_holds(state, "cancelled"))


@pytest.mark.parametrize("tool", ["poll_cancelled", "sleep_async"])
def test_closing_the_sending_half_cancels_a_stateless_request_that_goes_on(
    served: ServedApp, tool: str, tmp_path: Path
) -> None:
    state = tmp_path / "state"
    frame = stateless_call(1, tool, state_file=str(state))
    connection = served.start_post(frame, mirrored_headers(frame))
    wait_until(lambda: file_holds(state, "began"))

    connection.shutdown(socket.SHUT_WR)

    assert wait_until(lambda: file_holds(state, "cancelled"))
    assert connection.recv(1) == b""


def test_closing_the_sending_half_does_not_cancel_a_stateful_request(
    served: ServedApp, tmp_path: Path
) -> None:
    state, release = tmp_path / "state", tmp_path / "release"
    frame = call(1, "wait_for_file", state_file=str(state), until_file=str(release))
    connection = served.start_post(frame, served.initialize())
    wait_until(lambda: file_holds(state, "began"))

    connection.shutdown(socket.SHUT_WR)
    assert connection.recv(1) == b""
    release.touch()

    assert wait_until(lambda: file_holds(state, "ended"))


@pytest.mark.parametrize("accept", [BOTH, f"{EVENTS}, {JSON}"])
def test_disconnecting_does_not_cancel_a_stateful_request(
    served: ServedApp, accept: str, tmp_path: Path
) -> None:
    state, release, other_state = tmp_path / "state", tmp_path / "release", tmp_path / "other"
    frame = call(1, "wait_for_file", state_file=str(state), until_file=str(release))
    connection = served.start_post(frame, {**served.initialize(), "Accept": accept})
    wait_until(lambda: file_holds(state, "began"))
    stateless = stateless_call(1, "poll_cancelled", state_file=str(other_state))
    other_connection = served.start_post(stateless, mirrored_headers(stateless))
    wait_until(lambda: file_holds(other_state, "began"))

    connection.close()
    other_connection.close()
    # The stateless request began later, so the server has noticed both disconnections by then.
    wait_until(lambda: file_holds(other_state, "cancelled"))
    release.touch()

    assert wait_until(lambda: file_holds(state, "ended"))


@pytest.mark.parametrize("tool", ["poll_cancelled", "sleep_async", "ignore_cancellation"])
def test_a_notification_cancels_a_stateful_request(
    served: ServedApp, tool: str, tmp_path: Path
) -> None:
    state = tmp_path / "state"
    session = served.initialize()
    connection = served.start_post(
        call(1, tool, state_file=str(state)), {**session, "Connection": "close"}
    )
    wait_until(lambda: file_holds(state, "began"))

    assert served.post(cancel(1), session).status == 202

    assert wait_until(lambda: file_holds(state, "cancelled"))
    assert b'"id":1' not in read_to_end(connection)


def test_a_second_request_with_a_running_id_is_refused_and_the_first_continues(
    served: ServedApp, tmp_path: Path
) -> None:
    session = served.initialize()
    state, release = tmp_path / "state", tmp_path / "release"
    frame = call(1, "wait_for_file", state_file=str(state), until_file=str(release))
    connection = served.start_post(frame, {**session, "Connection": "close"})
    wait_until(lambda: file_holds(state, "began"))

    response = served.post(call(1, "add", x=1, y=2), session)

    assert response.code == -32600
    release.touch()
    assert b'"isError":false' in read_to_end(connection)


def test_disconnected_clients_leave_no_open_files_and_no_threads(tmp_path: Path) -> None:
    with served_app() as served:
        _connect_and_disconnect(served, tmp_path / "warm-up", rounds=2)
        before = served.open_files()

        _connect_and_disconnect(served, tmp_path / "measured", rounds=20)

        assert wait_until(lambda: served.open_files() <= before)
        assert served.status("Threads") <= 60


def _connect_and_disconnect(served: ServedApp, folder: Path, rounds: int) -> None:
    folder.mkdir()
    session = served.initialize(elicitation={})
    listen = stateless_request(1, "subscriptions/listen", notifications={"toolsListChanged": True})
    for number in range(rounds):
        state = folder / str(number)
        sleep = stateless_call(1, "sleep_async", state_file=str(state), progress=True)
        sleep["params"]["_meta"]["progressToken"] = 1
        connections = [
            served.start_post(sleep, mirrored_headers(sleep)),
            served.start_post(listen, mirrored_headers(listen)),
            served.start_post(call(number, "add_async", x=1, y=2), session),
        ]
        for connection in connections:
            connection.recv(100)
            connection.close()
        wait_until(partial(file_holds, state, "cancelled"))


def test_a_disconnected_client_leaves_no_task() -> None:
    app = App("progress")
    ended = threading.Event()

    @app.tool
    def report_progress(ctx: Context) -> None:
        step = 0
        while not ctx.cancelled:
            step += 1
            ctx.progress(step)
            time.sleep(0.001)
        ctx.progress(step + 1)
        ended.set()

    assert asyncio.run(_tasks_after_disconnect(app, ended)) == set()


async def _tasks_after_disconnect(app: App, ended: threading.Event) -> set[Any]:
    """Call `report_progress`, disconnect after a notification, and return the tasks left."""
    frame = stateless_call(1, "report_progress")
    frame["params"]["_meta"]["progressToken"] = 1
    notified, disconnected = asyncio.Event(), asyncio.Event()
    messages = [{"type": "http.request", "body": json.dumps(frame).encode()}]

    async def receive() -> dict[str, Any]:
        if not messages:
            await disconnected.wait()
        return messages.pop() if messages else {"type": "http.disconnect"}

    async def send(message: MutableMapping[str, Any]) -> None:
        if b"progress" in message.get("body", b""):
            notified.set()

    headers = [
        (name.lower().encode(), value.encode()) for name, value in mirrored_headers(frame).items()
    ]
    scope = {"type": "http", "method": "POST", "path": "/mcp", "headers": headers}
    async with asyncio.timeout(TIMEOUT):
        answering = asyncio.create_task(app.asgi()(scope, receive, send))
        await notified.wait()
        disconnected.set()
        await answering
        await asyncio.to_thread(ended.wait, TIMEOUT)
        # A cancelled task ends in the next iteration of the loop.
        for _ in range(10):
            await asyncio.sleep(0)
    return asyncio.all_tasks() - {asyncio.current_task()}
