"""The official TypeScript client, 2.4.0, in both eras, over stdio and HTTP."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Literal

import msgspec
import pytest
from tests.protocol.client_report import ClientReport, Era, expected, expected_without_session
from tests.protocol.official_tools import FOR_CLIENTS, node_command, node_environment

CLIENT = Path(__file__).parent / "typescript_client.mjs"


@pytest.mark.parametrize("wire", ["stdio", "http"])
@pytest.mark.parametrize(
    ("mode", "era"), [("legacy", "stateful"), ("auto", "stateless"), ("2026-07-28", "stateless")]
)
def test_the_typescript_client_reads_every_kind_of_result(
    for_clients_url: str, tmp_path: Path, wire: Literal["stdio", "http"], mode: str, era: Era
) -> None:
    target = [for_clients_url] if wire == "http" else [sys.executable, str(FOR_CLIENTS), "mcp"]

    assert report(tmp_path, mode, *target) == expected(era)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_typescript_client_is_served_without_sessions(
    sessionless_url: str, tmp_path: Path, mode: str
) -> None:
    found = report(tmp_path, mode, sessionless_url)

    assert found == (expected("stateless") if mode == "auto" else expected_without_session())


def report(home: Path, mode: str, *target: str) -> ClientReport:
    done = subprocess.run(
        node_command(CLIENT, mode, *target),
        env=node_environment(home),
        capture_output=True,
        timeout=60,
    )
    assert done.stderr.decode() == ""
    return msgspec.json.decode(done.stdout, type=ClientReport)
