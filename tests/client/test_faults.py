"""Servers that fail: crashes, lost sessions, refused connections; and processes that are killed."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from tests.client.conftest import SERVED, STDIO
from tests.conftest import serving

from answerback import connect
from answerback.client import ConnectError


def wait_until_gone(pid: int) -> bool:
    """Whether a process ends within a minute; one that is not reaped has ended, too."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state == "Z":
            return True
        os.sched_yield()
    return False


def test_the_stderr_of_a_crashed_child_is_for_programs_and_the_log_and_not_for_a_model(
    version: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> tuple[Any, Any]:
        async with connect(STDIO, version=version) as server:
            return await server.call("crash"), await server.call("add", x=1, y=1)

    crashed, after = asyncio.run(run())

    assert crashed.error.code == "UNAVAILABLE"
    assert crashed.error.details["may_have_run"] is True
    assert crashed.error.message == "the server process ended with exit status 3"
    assert crashed.error.details["stderr"] == "the disk is on fire"
    assert "the disk is on fire" not in crashed.for_model()
    assert [each.name for each in caplog.records if "on fire" in each.getMessage()] == [
        "answerback.client"
    ]
    assert after.ok


def test_only_a_tool_that_is_safe_to_repeat_is_called_again(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    env = {"SERVED_RUNS": str(runs)}

    async def run() -> tuple[Any, Any]:
        async with connect(STDIO, env=env) as server:
            return await server.call("crash_once"), await server.call("crash")

    safe, unsafe = asyncio.run(run())

    words = [line.split()[0] for line in runs.read_text().splitlines()]
    assert safe.ok
    assert unsafe.error.code == "UNAVAILABLE"
    assert words == ["crash_once", "crash_once", "crash"]


def test_a_call_that_is_cancelled_is_cancelled_at_the_server(tmp_path: Path, version: str) -> None:
    runs = tmp_path / "runs"

    async def run() -> None:
        async with connect(STDIO, version=version, env={"SERVED_RUNS": str(runs)}) as server:
            begun = asyncio.Event()
            noted = server.options(progress=lambda _: begun.set())
            call = asyncio.create_task(noted.call("wait", seconds=600))
            await begun.wait()
            call.cancel()
            await asyncio.wait([call])
            async with asyncio.timeout(60):
                while not runs.exists():
                    await server.call("add", x=1, y=1)

    asyncio.run(run())

    assert runs.read_text().startswith("cancelled")


def test_a_server_that_restarts_is_used_again_without_a_new_connection(version: str) -> None:
    """The session of the first server is unknown to the second."""

    async def run() -> list[Any]:
        with serving(SERVED) as first:
            port = first.port
            connection = connect(f"{first.url}/mcp", version=version)
            server = await connection.__aenter__()
            replies = [await server.call("add", x=1, y=1)]
        replies.append(await server.call("add", x=1, y=1))
        with serving(SERVED, "--port", str(port)):
            replies.append(await server.read("note://a"))
            replies.append(await server.call("add", x=1, y=1))
            await connection.__aexit__(None, None, None)
        return replies

    before, between, read, after = asyncio.run(run())

    assert before.ok
    assert between.error.code == "UNAVAILABLE"
    assert between.error.details["may_have_run"] is False
    assert read.ok, read.error
    assert after.ok, after.error


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("no-such-program --flag", "cannot start 'no-such-program --flag'"),
        ("http://127.0.0.1:9/mcp", "cannot connect to http://127.0.0.1:9/mcp"),
        ([sys.executable, "-c", "import sys; sys.exit(7)"], "ended with exit status 7"),
        ("", "command or a URL"),
        ({"command": ""}, "should have command or url"),
    ],
)
def test_connect_tells_why_there_is_no_connection(target: Any, said: str) -> None:
    async def run() -> None:
        async with connect(target):
            pass

    with pytest.raises((ConnectError, ValueError), match=said.replace("(", r"\(")):
        asyncio.run(run())


def test_the_stderr_of_a_child_that_does_not_start_is_in_the_details_and_once_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    code = "import sys; sys.exit('no database at db://anna' + '\\x1b[31m')"

    with (
        pytest.raises(ConnectError) as caught,
        connect([sys.executable, "-c", code, "--token", "s3cret"]),
    ):
        pass

    assert str(caught.value).endswith("the server process ended with exit status 1")
    assert caught.value.details == {"stderr": "no database at db://anna\x1b[31m"}
    logged = [each.getMessage() for each in caplog.records]
    assert [each.count("no database at db://anna\\x1b[31m") for each in logged] == [1]
    assert "s3cret" not in f"{caught.value} {logged}"


def test_a_server_that_does_not_answer_is_an_error_after_the_time_out() -> None:
    command = [sys.executable, "-c", "import sys; sys.stdin.read()"]

    async def run() -> None:
        async with connect(command, connect_timeout=0.5):
            pass

    began = time.monotonic()
    with pytest.raises(ConnectError, match="did not answer within"):
        asyncio.run(run())

    assert time.monotonic() - began >= 0.5


FAMILY = """
import os, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(os.getpid(), child.pid, file=open(sys.argv[1], "w"), flush=True)
os.execv(sys.executable, [sys.executable, sys.argv[2], "mcp"])
"""
KILLED = """
import asyncio, os, signal, sys
from answerback import connect

async def main():
    async with connect([sys.executable, *sys.argv[1:]]) as server:
        os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


def family(tmp_path: Path) -> tuple[list[str], Path]:
    """A server with a child of its own, which ignores the end of stdin."""
    pids = tmp_path / "pids"
    return ["-c", FAMILY, str(pids), str(SERVED)], pids


def test_no_process_outlives_a_client_that_is_killed(tmp_path: Path) -> None:
    arguments, pids = family(tmp_path)

    ended = subprocess.run([sys.executable, "-c", KILLED, *arguments], timeout=30)

    assert ended.returncode == -signal.SIGKILL
    assert all(wait_until_gone(int(pid)) for pid in pids.read_text().split())


def test_no_process_outlives_a_connection(tmp_path: Path) -> None:
    arguments, pids = family(tmp_path)

    with connect([sys.executable, *arguments]) as server:
        assert server.call("add", x=1, y=1).ok

    assert all(wait_until_gone(int(pid)) for pid in pids.read_text().split())


SMALL = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked:
        meta = {"io.modelcontextprotocol/serverInfo": {"name": "small", "version": "1"}}
        result = {"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {}}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""


def test_connections_and_kills_leave_no_child_descriptor_or_task() -> None:
    """`make hygiene` does it a thousand times."""
    rounds = int(os.environ.get("ANSWERBACK_CONNECTS", "6"))
    command = [sys.executable, "-I", "-S", "-c", SMALL]

    async def once(number: int) -> None:
        connection = connect(command)
        server = await connection.__aenter__()
        if number % 2:
            children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
            os.kill(int(children[-1]), signal.SIGKILL)
            await server.call("anything")
        await connection.__aexit__(None, None, None)

    async def run() -> tuple[int, int]:
        await once(0)
        descriptors = len(os.listdir("/proc/self/fd"))
        for number in range(rounds):
            await once(number)
        return len(os.listdir("/proc/self/fd")) - descriptors, len(asyncio.all_tasks())

    children = Path(f"/proc/self/task/{os.getpid()}/children")
    before, threads = children.read_text(), set(threading.enumerate())
    more_descriptors, tasks = asyncio.run(run())

    left = set(threading.enumerate()) - threads
    for thread in left:
        thread.join(60)  # asyncio's thread of the last child may be about to end.
    assert (more_descriptors, tasks) == (0, 1)
    assert [thread for thread in left if thread.is_alive()] == []
    assert children.read_text() == before
