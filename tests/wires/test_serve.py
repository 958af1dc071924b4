"""The server as a process: how it starts, how it ends, and several of them behind one port."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from answerback.wires.asgi.worker_bus import SessionEnded, SocketBus, WorkerMessage

BOUND = 20.0
EVERYTHING = Path(__file__).parent.parent / "apps" / "everything.py"


def until(holds: Callable[[], Any]) -> Any:
    """Wait for what another process does, and nothing tells of."""
    end = time.monotonic() + BOUND
    while time.monotonic() < end:
        if found := holds():
            return found
        time.sleep(0.01)
    raise AssertionError("it did not come about")


@pytest.fixture
def waiting_app(tmp_path: Path) -> Path:
    """An app whose tool says that it runs, and goes on when a file is there."""
    path = tmp_path / "waiting.py"
    path.write_text(
        "import asyncio, os, pathlib, time\n"
        "from answerback import App\n"
        "app = App('waiting')\n"
        "@app.tool\n"
        "def wait(there: str) -> str:\n"
        "    pathlib.Path(there + '.running').touch()\n"
        "    while not os.path.exists(there):\n"
        "        time.sleep(0.005)\n"
        "    return 'done'\n"
        "@app.tool(inline=True)\n"
        "def wait_inline(there: str) -> str:\n"
        "    return wait(there)\n"
        "@app.tool\n"
        "async def wait_stubbornly(there: str) -> str:\n"
        "    pathlib.Path(there + '.running').touch()\n"
        "    while not os.path.exists(there):\n"
        "        try:\n"
        "            await asyncio.sleep(0.005)\n"
        "        except asyncio.CancelledError:\n"
        "            pass\n"
        "    return 'done'\n"
        "@app.tool(inline=True)\n"
        "def pid() -> int:\n"
        "    return os.getpid()\n"
        "app.run()\n"
    )
    return path


@pytest.fixture
def call(connect: Any, request_bytes: Any) -> Callable[..., Any]:
    """One call on a connection of its own; gives what was sent back."""

    def send(server: Any, name: str, **arguments: Any) -> Any:
        line = connect(server.port)
        line.send(request_bytes(f"/functions/{name}", json.dumps(arguments).encode()))
        found = line.read()
        line.close()
        return found.json

    return send


def _workers_of(server: Any) -> set[int]:
    children = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children")
    return {int(pid) for pid in children.read_text().split()}


class Background(threading.Thread):
    """A call that is made meanwhile."""

    def __init__(self, call: Callable[[], Any]) -> None:
        super().__init__(daemon=True)
        self.found: Any = None
        self._call = call
        self.start()

    def run(self) -> None:
        try:
            self.found = self._call()
        except Exception as exc:  # noqa: BLE001 -- what came is what the test is about
            self.found = exc


# Starting.


def test_the_server_says_where_everything_is(serve: Any, connect: Any, request_bytes: Any) -> None:
    with serve(EVERYTHING) as server:
        assert server.port != 0
        for path in ("/functions/NAME", "/mcp", "/functions", "/openapi.json", "/healthz"):
            assert f"{server.url}{path}\n" in server.announced

        line = connect(server.port)
        line.send(request_bytes("/healthz", None, method="GET"))
        assert line.read().status == 200


def test_a_server_on_every_address_names_one_that_can_be_called(
    serve: Any, connect: Any, request_bytes: Any
) -> None:
    with serve(EVERYTHING, "--host", "0.0.0.0") as server:
        assert f"POST http://127.0.0.1:{server.port}/functions/NAME\n" in server.announced
        assert "every address" in server.announced

        line = connect(server.port)
        line.send(request_bytes(host=server.url.removeprefix("http://")))
        assert line.read().body == b'{"result":10}'


@pytest.mark.parametrize("flags", [(), ("--workers", "2")])
def test_a_port_in_use_is_told_in_one_line(flags: tuple[str, ...]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        command = [sys.executable, str(EVERYTHING), "serve", "--port", port, *flags]
        done = subprocess.run(command, capture_output=True, text=True, timeout=BOUND)

    assert done.returncode != 0
    assert done.stderr == (
        f"error: cannot listen on 127.0.0.1:{port}: Address already in use; try another --port\n"
    )


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--host", "203.0.113.1"), "try another --host"),
        (("--host", "no.such.host.invalid"), "cannot listen on no.such.host.invalid"),
        (("--allow-host", "https://tools.example.com"), "cannot be allowed as a host"),
        (("--allow-origin", "app.example.com"), "cannot be allowed as an origin"),
    ],
)
def test_what_cannot_be_served_is_told_in_one_line(flags: tuple[str, ...], said: str) -> None:
    command = [sys.executable, str(EVERYTHING), "serve", *flags]

    done = subprocess.run(command, capture_output=True, text=True, timeout=BOUND)

    assert done.returncode != 0
    assert len(done.stderr.splitlines()) == 1
    assert said in done.stderr


@pytest.mark.parametrize("missing", ["starlette", "uvicorn", "httptools"])
def test_without_its_extra_serve_says_what_to_install(missing: str) -> None:
    program = (
        "import sys\n"
        "class Hidden:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name.partition('.')[0] == {missing!r}:\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
        "sys.meta_path.insert(0, Hidden())\n"
        "from answerback import App\n"
        "App('bare').run(['serve', '--port', '0'])\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=BOUND
    )

    assert done.returncode == 2
    assert done.stderr == (
        f"error: {missing} is not installed; run: pip install 'answerback[serve]'\n"
    )


def test_the_limit_of_a_body_can_be_set(serve: Any, connect: Any, request_bytes: Any) -> None:
    with serve(EVERYTHING, "--max-body", "20") as server:
        line = connect(server.port)
        line.send(request_bytes())
        small = line.read()
        line.send(request_bytes(body=b'{"x":7,"y":3}' + b" " * 8))
        large = line.read()

    assert small.status == 200
    assert (large.status, large.json) == (413, {"error": "Body larger than 20 bytes"})


# Ending.


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_call_that_is_running_is_answered_before_the_end(
    serve: Any, call: Any, waiting_app: Path, number: int, status: int, workers: str
) -> None:
    there = waiting_app.with_suffix(".there")
    with serve(waiting_app, "--workers", workers) as server:
        running = Background(lambda: call(server, "wait", there=str(there)))
        until(Path(f"{there}.running").exists)

        server.process.send_signal(number)
        until(lambda: _is_refused(server.port))
        there.touch()
        running.join(BOUND)

        assert running.found == {"result": "done"}
        assert server.process.wait(BOUND) == status


def _is_refused(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return True
    return False


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("tool", ["wait", "wait_stubbornly"])
def test_a_second_interrupt_does_not_wait_for_what_is_running(
    serve: Any, call: Any, waiting_app: Path, workers: str, tool: str
) -> None:
    there = waiting_app.with_suffix(".never")
    with serve(waiting_app, "--workers", workers) as server:
        Background(lambda: call(server, tool, there=str(there)))
        until(Path(f"{there}.running").exists)

        server.process.send_signal(signal.SIGINT)
        told = server.stderr.readline().decode()
        server.process.send_signal(signal.SIGINT)

        assert server.process.wait(BOUND) == 130
        assert "finishing 1 call, for up to 30 seconds; Ctrl-C again ends it at once\n" in told
        assert told.startswith("worker ") == (workers == "2")
        assert server.stderr.read() == b""


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_second_interrupt_ends_a_tool_that_keeps_the_loop(
    serve: Any, call: Any, waiting_app: Path, workers: str
) -> None:
    there = waiting_app.with_suffix(".never")
    with serve(waiting_app, "--workers", workers) as server:
        Background(lambda: call(server, "wait_inline", there=str(there)))
        until(Path(f"{there}.running").exists)

        server.process.send_signal(signal.SIGINT)
        # The loop is kept, so nobody says when the first has come; two that wait are one.
        until(lambda: server.process.send_signal(signal.SIGINT) or server.process.poll())

        # One more may come when all is done: a shell calls either 130.
        assert server.process.returncode in (130, -signal.SIGINT)


@pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")
def test_an_interrupt_from_a_terminal_reaches_the_workers_too_and_is_still_the_first(
    serve: Any, call: Any, waiting_app: Path
) -> None:
    there = waiting_app.with_suffix(".there")
    with serve(waiting_app, "--workers", "2") as server:
        running = Background(lambda: call(server, "wait", there=str(there)))
        until(Path(f"{there}.running").exists)

        for pid in _workers_of(server):
            os.kill(pid, signal.SIGINT)
        server.process.send_signal(signal.SIGINT)
        until(lambda: _is_refused(server.port))
        there.touch()
        running.join(BOUND)

        assert running.found == {"result": "done"}
        assert server.process.wait(BOUND) == 130


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_ending_writes_no_traceback(
    serve: Any, call: Any, waiting_app: Path, number: int, workers: str
) -> None:
    with serve(waiting_app, "--workers", workers) as server:
        call(server, "pid")
        server.process.send_signal(number)
        rest = server.stderr.read().decode()
        server.process.wait(BOUND)

    assert rest == ""


def test_a_worker_that_ends_while_another_has_a_line_to_it_logs_no_fault(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def hear(_: WorkerMessage) -> None:
        pass

    async def talk(folder: str) -> None:
        one, other = (SocketBus(folder, number, 2) for number in range(2))
        await one.start(hear)
        await other.start(hear)
        await one.broadcast(SessionEnded(b"session"))
        await one.close()
        await other.close()

    # A socket's path must be short.
    with TemporaryDirectory() as folder:
        asyncio.run(talk(folder))

    assert caplog.records == []


def test_a_request_that_stops_half_way_does_not_hold_up_the_end(
    serve: Any, connect: Any, request_bytes: Any, waiting_app: Path
) -> None:
    with serve(waiting_app) as server:
        line = connect(server.port)
        line.send(request_bytes("/functions/pid", b"{}") + request_bytes("/functions/pid")[:-5])
        assert line.read().status == 200

        server.process.terminate()

        assert server.process.wait(BOUND / 2) == 0
        assert line.read().status == 408


HANGING = """
import os, time
from answerback import App, Limits

app = App("hanging", limits=Limits(threads=2))

@app.tool(timeout=0.1)
def hang(until: str) -> None:
    while not os.path.exists(until):
        time.sleep(0.005)

@app.tool
def add(x: int, y: int) -> int:
    return x + y

app.run()
"""


@pytest.fixture
def hanging_app(tmp_path: Path) -> Path:
    path = tmp_path / "hanging.py"
    path.write_text(HANGING)
    return path


def test_calls_are_refused_while_every_thread_hangs_and_served_when_one_comes_back(
    serve: Any, connect: Any, request_bytes: Any, hanging_app: Path
) -> None:
    until_there = hanging_app.with_suffix(".there")
    hang = json.dumps({"until": str(until_there)}).encode()
    with serve(hanging_app) as server:

        def answer(*request: Any, **options: Any) -> Any:
            line = connect(server.port)
            line.send(request_bytes(*request, **options))
            return line.read()

        hung = [answer("/functions/hang", hang).status for _ in range(4)]
        refused = answer("/functions/add")
        health = answer("/healthz", None, method="GET")
        until_there.touch()
        served = until(lambda: (found := answer("/functions/add")).status == 200 and found)

    assert hung == [504] * 4
    assert (refused.status, refused.error) == (503, "UNAVAILABLE")
    assert health.status == 200
    assert served.json == {"result": 10}


def test_threads_that_hang_do_not_hold_up_the_end(serve: Any, call: Any, hanging_app: Path) -> None:
    with serve(hanging_app) as server:
        for _ in range(4):
            call(server, "hang", until=str(hanging_app.with_suffix(".never")))
        waiting = Background(lambda: call(server, "add", x=7, y=3))
        waiting.join(BOUND)

        server.process.terminate()

        assert server.process.wait(5) == 0


# Several.


@pytest.mark.skipif(sys.platform != "linux", reason="counts processes in /proc")
def test_answers_come_from_several_processes_and_none_is_left_behind(
    serve: Any, call: Any, waiting_app: Path
) -> None:
    with serve(waiting_app, "--workers", "3") as server:
        first = call(server, "pid")["result"]
        other = until(lambda: {call(server, "pid")["result"]} - {first})
        workers = _workers_of(server)

        server.process.terminate()

        assert server.process.wait(BOUND) == 0
        assert len(workers) == 3
        assert {first, *other} <= workers
        assert not any(Path(f"/proc/{pid}").exists() for pid in workers)


def test_workers_run_plain_functions_though_the_module_called_one_while_it_was_loaded(
    serve: Any, call: Any, tmp_path: Path
) -> None:
    path = tmp_path / "warm.py"
    path.write_text(
        "import asyncio\n"
        "from answerback import App\n"
        "app = App('warm')\n"
        "@app.tool\n"
        "def add(x: int, y: int) -> int:\n"
        "    return x + y\n"
        "assert asyncio.run(app.call('add', x=1, y=2)).data == 3\n"
        "app.run()\n"
    )

    with serve(path, "--workers", "2") as server:
        found = [call(server, "add", x=7, y=number) for number in range(10)]

    assert found == [{"result": 7 + number} for number in range(10)]


@pytest.mark.skipif(sys.platform != "linux", reason="counts processes in /proc")
def test_a_worker_that_is_killed_is_replaced_and_the_server_serves_on(
    serve: Any, call: Any, waiting_app: Path
) -> None:
    with serve(waiting_app, "--workers", "3") as server:
        victim = call(server, "pid")["result"]

        os.kill(victim, signal.SIGKILL)
        said = server.stderr.readline().decode()
        until(lambda: len(_workers_of(server) - {victim}) == 3)

        assert said == f"worker {victim} exited with status -9; starting another\n"
        for _ in range(20):
            assert call(server, "pid")["result"] != victim


@pytest.mark.skipif(sys.platform != "linux", reason="counts processes in /proc")
def test_workers_end_with_their_parent_however_it_ends(
    serve: Any, call: Any, waiting_app: Path
) -> None:
    with serve(waiting_app, "--workers", "2") as server:
        call(server, "pid")
        workers = _workers_of(server)

        server.process.kill()
        server.process.wait(BOUND)

        until(lambda: _is_refused(server.port))
        until(lambda: not any(_is_running(pid) for pid in workers))


def _is_running(pid: int) -> bool:
    """Nobody may be there to bury it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_process_of_the_apps_own_that_ends_is_none_of_the_servers(
    serve: Any, call: Any, tmp_path: Path
) -> None:
    path = tmp_path / "busy.py"
    path.write_text(
        "import subprocess\n"
        "from answerback import App\n"
        "app = App('busy')\n"
        "child = subprocess.Popen(['cat'], stdin=subprocess.PIPE)\n"
        "app.add_tool(lambda: child.kill(), name='end_it')\n"
        "app.add_tool(lambda: 1, name='one')\n"
        "app.run()\n"
    )
    with serve(path, "--workers", "2") as server:
        call(server, "end_it")

        assert call(server, "one") == {"result": 1}
        server.process.terminate()
        assert server.process.wait(BOUND) == 0


def test_a_worker_that_cannot_start_ends_the_whole_with_a_message(tmp_path: Path) -> None:
    path = tmp_path / "broken.py"
    path.write_text(
        "import uvicorn\n"
        "from answerback import App\n"
        "async def startup(self, sockets=None):\n"
        "    raise RuntimeError('no database')\n"
        "uvicorn.Server.startup = startup\n"
        "App('broken').run()\n"
    )
    command = [sys.executable, str(path), "serve", "--port", "0", "--workers", "3"]

    done = subprocess.run(command, capture_output=True, text=True, timeout=BOUND)

    assert done.returncode == 1
    assert "no database" in done.stderr
    assert "before it was ready; shutting down" in done.stderr


def test_the_banner_counts_one_tool_in_the_singular(serve: Any, tmp_path: Path) -> None:
    path = tmp_path / "one_tool.py"
    path.write_text(
        "from answerback import App\n"
        "app = App('one', version='2.0')\n"
        "app.add_tool(lambda: 1, name='one')\n"
        "app.run()\n"
    )

    with serve(path) as server:
        banner = server.announced

    assert banner.splitlines()[0] == "one 2.0: 1 tool"
