"""A reply leaves no reference cycle, which only the garbage collector could free."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from answerback import connect

CALLS = Path(__file__).with_name("cycle_calls.py")
VERSIONS = ("2025-11-25", "2026-07-28")
WIRES = [
    ("app", ""),
    ("rest", ""),
    *((wire, version) for wire in ("memory", "stdio", "http") for version in VERSIONS),
]


def found(*arguments: str) -> Any:
    command = [sys.executable, str(CALLS), "calls", *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, timeout=600, check=True)
    return json.loads(done.stdout)


@pytest.mark.parametrize(("wire", "version"), WIRES)
def test_replies_of_all_kinds_leave_nothing_to_the_garbage_collector(
    serve: Any, wire: str, version: str
) -> None:
    """Neither in the server nor in the client, with the collector off for 200 replies of each."""
    if wire not in ("http", "rest"):
        assert found(wire, version) == {}
        return
    with serve(CALLS) as server:
        assert found(wire, version, server.url) == {}


def test_cut_replies_are_freed_at_once(serve: Any) -> None:
    with serve(CALLS) as server, connect(f"{server.url}/mcp") as client:
        client.call("start_counting")
        peaks = []
        for _ in range(2):
            for _ in range(50):
                assert client.call("megabyte").cuts
            peaks.append(client.call("peak_kilobytes").data)

    assert peaks[1] - peaks[0] < 5_000
