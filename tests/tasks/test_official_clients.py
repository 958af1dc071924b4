"""The official clients run a task, are asked inside it, and cancel it."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from tests.conftest import serving
from tests.protocol.official_tools import CONFORMANCE, node_command, node_environment
from tests.tasks.python_task_client import TaskControl, TasksExtension

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


def test_the_python_client_runs_answers_and_cancels_tasks(url: str) -> None:
    async def on_task(control: TaskControl, task: dict[str, Any]) -> None:
        if task["status"] == "input_required":
            answer = {"action": "accept", "content": {"confirm": True}}
            answers = dict.fromkeys(task["inputRequests"], answer)
            await control.send("tasks/update", inputResponses=answers)
        elif task.get("statusMessage") == "0 of 60: long":
            await control.send("tasks/cancel")

    async def never(context: Any, params: Any) -> Any:
        raise AssertionError("a task asks by tasks/get")

    async def call() -> list[str]:
        async with Client(
            url, extensions=[TasksExtension(on_task)], elicitation_callback=never
        ) as client:
            calls: list[tuple[str, dict[str, Any]]] = [
                ("slow_compute", {"seconds": 0.1, "label": "a"}),
                ("confirm_delete", {"filename": "a.txt"}),
                ("slow_compute", {"seconds": 60, "label": "long"}),
            ]
            return [_text(await client.call_tool(name, given)) for name, given in calls]

    ran, asked, cancelled = asyncio.run(asyncio.wait_for(call(), 30))

    assert ran == "Computed a for 0.1 seconds"
    assert asked == "Deleted a.txt"
    assert cancelled == "cancelled"


def _text(result: Any) -> str:
    return str(result.content[0].text)
