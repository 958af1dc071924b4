"""The official clients run a task, are asked inside it, and cancel it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conftest import serving
from tests.mcp.official_tools import CONFORMANCE, node_command, node_environment

CLIENTS = Path(__file__).with_name("task_clients.mjs")


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serving(CONFORMANCE) as server:
        yield f"{server.url}/mcp"


@pytest.mark.parametrize("client", ["sdk", "core", "extension"])
def test_the_typescript_clients_run_answer_and_cancel_tasks(
    url: str, tmp_path: Path, client: str
) -> None:
    done = subprocess.run(
        node_command(CLIENTS, client, url),
        env=node_environment(tmp_path),
        capture_output=True,
        timeout=60,
    )

    assert done.stderr.decode() == ""
    assert json.loads(done.stdout) == {
        "ran": "Computed a for 0.1 seconds",
        "asked": "Deleted a.txt",
        "cancelled": "cancelled",
    }
