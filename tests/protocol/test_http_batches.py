"""Batches over HTTP, which 2025-03-26 alone has."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.fuzz.http_client import (
    EVENTS,
    JSON,
    ServedApp,
    read_to_end,
    read_until,
    served_app,
)
from tests.fuzz.stdio_client import call, cancel, notification, request

KILOBYTE = 1024


@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25", "2024-11-05"])
def test_a_batch_is_refused_with_400_in_a_version_without_batches(
    served: ServedApp, version: str
) -> None:
    response = served.post([request(1, "ping")], {"Mcp-Protocol-Version": version})

    assert (response.status, response.code) == (400, -32600)


def test_each_message_of_a_batch_gets_its_own_response(served: ServedApp) -> None:
    batch = [request(1, "ping"), 5, [], notification("x"), request(2, "no/such"), cancel(1)]

    response = served.post(batch, {"Mcp-Protocol-Version": "2025-03-26"})

    assert response.status == 200
    assert [frame.get("id") for frame in response.frame] == [1, None, None, 2]
    assert served.post([cancel(1)], {"Mcp-Protocol-Version": "2025-03-26"}).status == 202


def test_a_batch_without_requests_gets_202_even_if_the_client_prefers_an_event_stream(
    served: ServedApp,
) -> None:
    headers = {**served.initialize("2025-03-26"), "Accept": f"{EVENTS}, {JSON}"}

    assert served.post([notification("x"), cancel(1)], headers).status == 202


def test_a_batch_cancelled_after_a_notification_ends_its_one_response(
    served: ServedApp, tmp_path: Path
) -> None:
    state = tmp_path / "state"
    session = served.initialize("2025-03-26")
    frame = call(1, "sleep_async", state_file=str(state), progress=True)
    frame["params"]["_meta"] = {"progressToken": 1}
    connection = served.start_post([frame], {**session, "Connection": "close"})
    read_until(connection, b"notifications/progress")

    assert served.post(cancel(1), session).status == 202

    rest = read_to_end(connection)
    assert b"HTTP/1.1" not in rest
    assert rest.endswith(b"0\r\n\r\n")


def test_a_batch_of_millions_of_messages_is_refused_with_400() -> None:
    with served_app() as served:
        assert served.still_serves()
        before = served.status("VmHWM")

        response = served.send(
            b"[" + b"1," * 1_900_000 + b"1]", {"Mcp-Protocol-Version": "2025-03-26"}
        )

        assert (response.status, response.code) == (400, -32600)
        assert served.status("VmHWM") - before < 200 * KILOBYTE
        assert served.still_serves()
