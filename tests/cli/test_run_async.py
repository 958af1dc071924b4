"""`await app.run_async(…)`: the commands in an event loop that runs already."""

from __future__ import annotations

import http.client
import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO

import pytest

PROGRAM = """
import asyncio, signal, sys
from contextlib import asynccontextmanager
from pathlib import Path
from answerback import App

@asynccontextmanager
async def lifespan():
    yield
    Path("ended").write_text("")

app = App("shop", lifespan=lifespan)
own = []

@app.tool
async def is_on_own_loop() -> bool:
    return asyncio.get_running_loop() is own[0]

@app.tool
def wait() -> None:
    sys.stderr.write("waiting\\n")
    signal.pause()

@app.tool
def double(x: int) -> int:
    return 2 * x

async def main():
    own.append(asyncio.get_running_loop())
    await app.run_async()
    sys.stderr.write("after\\n")

asyncio.run(main())
"""
CALLS = [
    {
        "jsonrpc": "2.0",
        "id": 0,
        "method": "initialize",
        "params": {"protocolVersion": "2025-11-25"},
    },
    *(
        {
            "jsonrpc": "2.0",
            "id": number,
            "method": "tools/call",
            "params": {"name": name, "arguments": arguments},
        }
        for number, (name, arguments) in enumerate(
            [("is_on_own_loop", {}), ("double", {"x": 4})], 1
        )
    ),
]


def start(folder: Path, source: str, *arguments: str) -> subprocess.Popen[str]:
    (folder / "shop.py").write_text(source)
    return subprocess.Popen(
        [sys.executable, "shop.py", *arguments],
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def pipe(stream: IO[str] | None) -> IO[str]:
    assert stream is not None
    return stream


def port_of(process: subprocess.Popen[str]) -> int:
    """Wait until `serve` has printed its addresses, and return the port."""
    port = 0
    for line in pipe(process.stderr):
        if found := re.search(r"127\.0\.0\.1:(\d+)", line):
            port = int(found[1])
        if line.startswith("Ctrl-C"):
            break
    return port


def test_stdio_is_served_on_the_loop_that_runs_and_the_program_goes_on(tmp_path: Path) -> None:
    with start(tmp_path, PROGRAM) as process:
        lines = "".join(f"{json.dumps(each)}\n" for each in CALLS)
        out, err = process.communicate(lines, timeout=60)

    found = {each["id"]: each["result"] for each in map(json.loads, out.splitlines())}
    assert found[1]["structuredContent"] == {"result": True}
    assert found[2]["structuredContent"] == {"result": 8}
    assert (process.returncode, err) == (0, "after\n")
    assert (tmp_path / "ended").exists()


def test_http_is_served_on_the_loop_that_runs(tmp_path: Path) -> None:
    with start(tmp_path, PROGRAM, "serve", "--port", "0") as process:
        connection = http.client.HTTPConnection("127.0.0.1", port_of(process), timeout=60)
        headers = {"Content-Type": "application/json"}
        connection.request("POST", "/functions/is_on_own_loop", "{}", headers)
        answer = connection.getresponse().read()
        connection.close()
        process.send_signal(signal.SIGINT)
        err = process.communicate(timeout=60)[1]

    assert answer == b'{"result":true}'
    assert (process.returncode, err) == (130, "")
    assert (tmp_path / "ended").exists()


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["SIGINT", "SIGTERM"]
)
def test_a_signal_ends_stdio_and_its_lifespan_quietly(
    tmp_path: Path, number: signal.Signals, status: int
) -> None:
    with start(tmp_path, PROGRAM) as process:
        for each in CALLS:
            pipe(process.stdin).write(f"{json.dumps(each)}\n")
        pipe(process.stdin).flush()
        for _ in CALLS:
            pipe(process.stdout).readline()
        process.send_signal(number)
        process.wait(60)
        err = pipe(process.stderr).read()

    assert (process.returncode, err) == (status, "")
    assert (tmp_path / "ended").exists()


def test_sigterm_ends_http_as_it_does_with_run(tmp_path: Path) -> None:
    with start(tmp_path, PROGRAM, "serve", "--port", "0") as process:
        port_of(process)
        process.send_signal(signal.SIGTERM)
        err = process.communicate(timeout=60)[1]

    assert (process.returncode, err) == (0, "after\n")
    assert (tmp_path / "ended").exists()


CANCEL = """
import asyncio, sys
from answerback import App

app = App("shop")

@app.tool
async def cancel() -> None:
    serving.cancel()

async def main():
    global serving
    serving = asyncio.create_task(app.run_async())
    try:
        await serving
    except asyncio.CancelledError:
        sys.stderr.write("cancelled\\n")

asyncio.run(main())
"""


@pytest.mark.parametrize("command", [(), ("serve", "--port", "0")], ids=["stdio", "http"])
def test_a_cancelled_task_ends_the_server(tmp_path: Path, command: tuple[str, ...]) -> None:
    with start(tmp_path, CANCEL, *command) as process:
        if command:
            connection = http.client.HTTPConnection("127.0.0.1", port_of(process), timeout=60)
            headers = {"Content-Type": "application/json"}
            connection.request("POST", "/functions/cancel", "{}", headers)
            connection.getresponse().read()
            connection.close()
        else:
            call = json.dumps(CALLS[1]).replace("is_on_own_loop", "cancel")
            pipe(process.stdin).write(f"{json.dumps(CALLS[0])}\n{call}\n")
            pipe(process.stdin).flush()
        process.wait(60)
        err = pipe(process.stderr).read()

    assert (process.returncode, err) == (0, "cancelled\n")


def test_other_commands_print_what_they_print_with_run(tmp_path: Path) -> None:
    with start(tmp_path, PROGRAM, "call", "double", "x=4") as process:
        out, err = process.communicate(timeout=60)
    with start(tmp_path, PROGRAM, "call", "nothing") as failed:
        refused = failed.communicate(timeout=60)[1]

    assert (process.returncode, out, err) == (0, '{"result":8}\n', "after\n")
    assert failed.returncode == 2
    assert refused.startswith('{"error":"Function not found: nothing"')


def test_ctrl_c_ends_a_call_that_runs(tmp_path: Path) -> None:
    with start(tmp_path, PROGRAM, "call", "wait") as process:
        pipe(process.stderr).readline()
        process.send_signal(signal.SIGINT)
        err = process.communicate(timeout=60)[1]

    assert (process.returncode, err) == (130, "")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("serve", "--workers", "2"), "--workers and --reload start processes"),
        (("serve", "--reload"), "--workers and --reload start processes"),
        (("serve", "--nope"), "unrecognized arguments: --nope"),
    ],
)
def test_what_needs_processes_is_refused(
    tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    with start(tmp_path, PROGRAM, *arguments) as process:
        err = process.communicate(timeout=60)[1]

    assert process.returncode == 2
    assert words in err


def test_run_in_an_event_loop_names_run_async(tmp_path: Path) -> None:
    source = PROGRAM.replace("await app.run_async()", "app.run()")
    with start(tmp_path, source, "serve", "--port", "0") as process:
        err = process.communicate(timeout=60)[1]

    assert process.returncode == 2
    assert err == (
        "error: the event loop is already running; write await app.run_async(['serve'])\n"
    )


def test_a_target_that_awaits_run_async_is_only_loaded(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(PROGRAM)

    done = subprocess.run(
        [sys.executable, "-m", "answerback", "call", "shop.py", "double", "x=4"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert done.stdout == '{"result":8}\n'
