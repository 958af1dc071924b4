"""The log messages and progress of a tool are the same on stdio and over HTTP."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.conftest import serving
from tests.protocol.official_tools import ROOT
from tests.protocol.recording_client import PREFIX, STATELESS, Client, Json, over_http, over_stdio

APP = ROOT / "tests" / "apps" / "every_member.py"
STATEFUL = "2025-11-25"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serving(APP) as server:
        yield server.url


def notifications(client: Client, meta: Json = None, level: str | None = None) -> list[Json]:
    """The notifications that a call sends: each method, and its level or progress."""
    client.open()
    if level is not None:
        client.request("logging/setLevel", {"level": level})
    client.request("tools/call", {"name": "notifying"}, meta=meta)
    return [
        (message["method"], message["params"].get("level", message["params"].get("progress")))
        for message, _ in client.received
        if "method" in message
    ]


WARNING = ("notifications/message", "warning")
EMERGENCY = ("notifications/message", "emergency")
PROGRESS = [("notifications/progress", 0.5), ("notifications/progress", 1)]


@pytest.mark.parametrize(
    ("version", "meta", "level", "expected"),
    [
        (STATEFUL, {}, None, [WARNING, EMERGENCY]),
        (STATEFUL, {"progressToken": 0}, "critical", [EMERGENCY, *PROGRESS]),
        (STATELESS, {}, None, []),
        (STATELESS, {PREFIX + "logLevel": "critical"}, None, [EMERGENCY]),
        (STATELESS, {"progressToken": ""}, None, PROGRESS),
    ],
)
def test_notifications_are_the_same_on_stdio_and_http(
    url: str, version: str, meta: Json, level: str | None, expected: list[Json]
) -> None:
    with over_stdio(APP, version) as client:
        on_stdio = notifications(client, meta, level)
    with over_http(url, version) as client:
        on_http = notifications(client, meta, level)

    assert on_stdio == on_http == expected
