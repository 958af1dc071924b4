"""What a tool says beside its reply is the same on stdio and over HTTP."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.conftest import serving
from tests.mcp.judges import ROOT
from tests.mcp.wire import PREFIX, STATELESS, Client, Json, over_http, over_stdio

RICH = ROOT / "tests" / "apps" / "rich.py"
STATEFUL = "2025-11-25"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serving(RICH) as server:
        yield server.url


def notes(client: Client, meta: Json = None, level: str | None = None) -> list[Json]:
    client.open()
    if level is not None:
        client.ask("logging/setLevel", {"level": level})
    client.ask("tools/call", {"name": "chatty"}, meta=meta)
    return [
        (message["method"], message["params"].get("level", message["params"].get("progress")))
        for message, _ in client.heard
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
def test_notes_are_the_same_on_both_wires(
    url: str, version: str, meta: Json, level: str | None, expected: list[Json]
) -> None:
    with over_stdio(RICH, version) as piped:
        on_stdio = notes(piped, meta, level)
    with over_http(url, version) as called:
        over_the_web = notes(called, meta, level)

    assert on_stdio == over_the_web == expected
