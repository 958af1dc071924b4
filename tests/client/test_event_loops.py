"""A command is connected to under each event loop, and in apps that servers run on uvloop."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.client.conftest import STDIO
from tests.client.test_faults import family, wait_until_gone
from tests.conftest import serving

from answerback import connect

uvloop = pytest.importorskip("uvloop")

LOOPS = [asyncio.new_event_loop, uvloop.new_event_loop]


@pytest.mark.parametrize("new_loop", LOOPS)
def test_a_command_is_called_under_the_event_loop(new_loop: Callable[[], Any]) -> None:
    async def run() -> list[Any]:
        async with connect(STDIO) as server:
            replies = [await server.call("add", x=1, y=2), await server.call("crash")]
            return [*replies, await server.call("add", x=3, y=4)]

    with asyncio.Runner(loop_factory=new_loop) as runner:
        first, crashed, again = runner.run(run())

    assert first.data == 3
    assert crashed.error.details["stderr"] == "the disk is on fire"
    assert again.data == 7


@pytest.mark.parametrize("new_loop", LOOPS)
def test_no_descendant_of_a_command_outlives_its_connection(
    new_loop: Callable[[], Any], tmp_path: Path
) -> None:
    arguments, pids = family(tmp_path)

    async def run() -> None:
        async with connect([sys.executable, *arguments]) as server:
            await server.call("add", x=1, y=1)

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(run())

    assert all(wait_until_gone(int(pid)) for pid in pids.read_text().split())


AGENT = f"""
import asyncio
from contextlib import asynccontextmanager
from answerback import App, Context, connect

@asynccontextmanager
async def lifespan(app):
    async with connect({STDIO!r}) as server:
        yield server

app = App("agent", lifespan=lifespan)

@app.tool
async def ask(ctx: Context) -> dict:
    reply = await ctx.state.call("add", x=1, y=2)
    return {{"sum": reply.data, "loop": type(asyncio.get_running_loop()).__module__}}

if __name__ == "__main__":
    app.run()
"""


def test_a_served_app_connects_to_a_command_in_its_lifespan(tmp_path: Path) -> None:
    path = tmp_path / "agent.py"
    path.write_text(AGENT)

    with serving(path) as server:
        answer = httpx.post(f"{server.url}/functions/ask", json={}, timeout=60)

    assert answer.json() == {"sum": 3, "loop": "uvloop"}


FASTAPI = f"""
from contextlib import asynccontextmanager
from fastapi import FastAPI
from answerback import connect
import uvicorn

@asynccontextmanager
async def lifespan(api):
    async with connect({STDIO!r}) as server:
        api.state.server = server
        yield

api = FastAPI(lifespan=lifespan)

@api.get("/sum")
async def sum_of_both() -> int:
    return (await api.state.server.call("add", x=1, y=2)).data

uvicorn.run(api, port=0, loop="uvloop")
"""


def test_a_fastapi_app_under_uvloop_connects_to_a_command() -> None:
    command = [sys.executable, "-c", FASTAPI]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
        try:
            assert process.stderr is not None
            log = b""
            while not (found := re.search(rb"http://\S+:\d+", log)):
                line = process.stderr.readline()
                assert line, log.decode()
                log += line
            answer = httpx.get(f"{found.group().decode()}/sum", timeout=60)
        finally:
            process.terminate()

    assert answer.json() == 3
