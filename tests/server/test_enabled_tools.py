"""Tools that are enabled and disabled while an app is served, by one worker and by several."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp import Client, StdioServerParameters
from tests.server.processes import BOUND, wait_until

OFFICE = """
import os
from answerback import App

files = App("files")
app = App("office")
app.include(files, prefix="files_")

@files.tool(tags={"write"})
def erase(path: str) -> str:
    return path

@app.tool
def set_writing(on: bool) -> None:
    (files.enable if on else files.disable)(tag="write")

@app.tool(inline=True)
def served() -> list[str]:
    return [str(os.getpid()), *app.tools]

app.run()
"""


@pytest.fixture
def office(tmp_path: Path) -> Path:
    path = tmp_path / "office.py"
    path.write_text(OFFICE)
    return path


@pytest.mark.skipif(sys.platform != "linux", reason="counts processes in /proc")
def test_a_tool_is_disabled_and_enabled_on_every_worker_also_on_a_later_one(
    serve: Any, call: Any, office: Path
) -> None:
    def tools_of_workers() -> dict[str, bool]:
        found: dict[str, bool] = {}

        def has_both() -> bool:
            pid, *tools = call(server, "served")["result"]
            found[pid] = "files_erase" in tools
            return len(found) == 2

        wait_until(has_both)
        return found

    with serve(office, "--workers", "2") as server:
        before = tools_of_workers()
        call(server, "set_writing", on=False)
        wait_until(lambda: set(tools_of_workers().values()) == {False})
        refused = call(server, "files_erase", path="x")

        victim = int(next(iter(before)))
        os.kill(victim, signal.SIGKILL)
        assert b"starting another" in server.stderr.readline()
        replaced = tools_of_workers()

        call(server, "set_writing", on=True)
        wait_until(lambda: set(tools_of_workers().values()) == {True})

    assert set(before.values()) == {True}
    assert refused == {"error": "Function not found: files_erase"}
    assert str(victim) not in replaced
    assert set(replaced.values()) == {False}


@pytest.mark.parametrize("wire", ["stdio", "http"])
def test_a_client_is_notified_when_a_tool_of_an_included_app_is_disabled(
    serve: Any, office: Path, wire: str
) -> None:
    async def names_after_the_notification(target: Any) -> list[str]:
        changed = asyncio.Event()

        async def on_message(message: Any) -> None:
            if isinstance(message, types.ToolListChangedNotification):
                changed.set()

        async with Client(target, mode="legacy", message_handler=on_message) as client:
            before = await client.list_tools()
            assert "files_erase" in {tool.name for tool in before.tools}
            await client.call_tool("set_writing", {"on": False})
            await asyncio.wait_for(changed.wait(), BOUND)
            return [tool.name for tool in (await client.list_tools()).tools]

    if wire == "stdio":
        stdio = StdioServerParameters(
            command=sys.executable, args=[str(office), "mcp"], env=dict(os.environ)
        )
        names = asyncio.run(names_after_the_notification(stdio))
    else:
        with serve(office) as server:
            names = asyncio.run(names_after_the_notification(f"{server.url}/mcp"))

    assert names == ["set_writing", "served"]
