"""Included apps with lifespans, in processes: each runs once, and tools see their own state."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from answerback import App, Context

OFFICE = """
import sys
from contextlib import asynccontextmanager, contextmanager
from answerback import App, Context

def lifespan_named(name):
    def steps():
        print("open", name, file=sys.stderr)
        yield name
        print("close", name, file=sys.stderr)

    async def async_steps():
        for step in steps():
            yield step

    return asynccontextmanager(async_steps) if IS_ASYNC else contextmanager(steps)

jira = App("jira", lifespan=lifespan_named("jira"))
team = App("team")
app = App("office", lifespan=lifespan_named("office")) if HAS_OWN else App("office")
app.include(team, prefix="team_")
team.include(jira, prefix="a_")
team.include(jira, prefix="b_")

@jira.tool
def state(ctx: Context) -> str:
    return str(ctx.state)

@app.tool
def own(ctx: Context) -> str:
    return str(ctx.state)

app.run()
"""
EVENTS = {
    True: ["open jira", "open office", "close office", "close jira"],
    False: ["open jira", "close jira"],
}


@pytest.fixture(params=[True, False], ids=["async", "plain"])
def office(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[bool], Path]:
    def write(has_own: bool) -> Path:
        path = tmp_path / "office.py"
        path.write_text(f"IS_ASYNC = {request.param}\nHAS_OWN = {has_own}\n{OFFICE}")
        return path

    return write


def run(file: Path, *arguments: str, stdin: str = "") -> tuple[list[Any], list[str]]:
    """The JSON of each line, and the events in the order in which they were printed."""
    command = [sys.executable, str(file), *arguments]
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=60)
    events = [line for line in done.stderr.splitlines() if line.startswith(("open", "close"))]
    return [json.loads(line) for line in done.stdout.splitlines()], events


@pytest.mark.parametrize("has_own", [True, False])
def test_one_call_from_the_shell_runs_each_lifespan_once(
    office: Callable[[bool], Path], has_own: bool
) -> None:
    printed, events = run(office(has_own), "call", "team_b_state")

    assert printed == [{"result": "jira"}]
    assert events == EVENTS[has_own]


@pytest.mark.parametrize("has_own", [True, False])
def test_a_server_on_stdio_runs_each_lifespan_once(
    office: Callable[[bool], Path], has_own: bool
) -> None:
    names = ["team_a_state", "team_b_state", "own"]
    requests = [
        {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": name}}
        for id, name in enumerate(names)
    ]
    stdin = "".join(f"{json.dumps(each)}\n" for each in requests)

    printed, events = run(office(has_own), "mcp", stdin=stdin)

    states = {each["id"]: each["result"]["content"][0]["text"] for each in printed}
    assert [states[id] for id in range(3)] == ["jira", "jira", "office" if has_own else "None"]
    assert events == EVENTS[has_own]


def test_listing_starts_no_lifespan(office: Callable[[bool], Path]) -> None:
    assert run(office(True), "list", "--json", "--tag", "x")[1] == []


def counted(name: str, events: list[str]) -> Any:
    @contextmanager
    def lifespan() -> Iterator[str]:
        events.append(f"open {name}")
        yield name
        events.append(f"close {name}")

    return lifespan


def test_an_app_in_memory_runs_the_lifespans_of_nested_apps_that_were_included_later() -> None:
    events: list[str] = []
    root, team = App("root"), App("team")
    jira = App("jira", lifespan=counted("jira", events))
    root.include(team)
    team.include(jira)

    @jira.tool
    def state(ctx: Context) -> str:
        return str(ctx.state)

    async def use() -> Any:
        async with root.running():
            return (await root.call("state")).data

    assert asyncio.run(use()) == "jira"
    assert events == ["open jira", "close jira"]


def test_an_app_with_a_lifespan_cannot_be_included_in_one_that_is_served_already() -> None:
    root, team = App("root"), App("team")
    root.include(team)
    asyncio.run(root.call("nothing"))

    with pytest.raises(ValueError, match="include it before 'root' is served or called"):
        team.include(App("jira", lifespan=counted("jira", [])))

    assert list(root.apps()) == [root, team]
