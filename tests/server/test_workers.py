"""Several workers behind one port: who answers, and what happens when a process dies."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from tests.server.processes import BOUND, is_running, refuses_connections, wait_until, workers_of

from answerback.server.asgi.worker_sockets import SessionEnded, SocketBus, WorkerMessage

INITIALIZE = json.dumps(
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
    }
).encode()
PING = b'{"jsonrpc":"2.0","id":2,"method":"ping"}'


@pytest.mark.skipif(sys.platform != "linux", reason="counts processes in /proc")
def test_several_workers_answer_and_all_exit_with_the_server(
    serve: Any, call: Any, waiting_app: Path
) -> None:
    with serve(waiting_app, "--workers", "3") as server:
        first = call(server, "pid")["result"]
        other = wait_until(lambda: {call(server, "pid")["result"]} - {first})
        workers = workers_of(server)

        server.process.terminate()

        assert server.process.wait(BOUND) == 0
        assert len(workers) == 3
        assert {first, *other} <= workers
        assert not any(Path(f"/proc/{pid}").exists() for pid in workers)


def test_workers_run_def_tools_even_if_one_was_called_before_the_fork(
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
        result = [call(server, "add", x=7, y=number) for number in range(10)]

    assert result == [{"result": 7 + number} for number in range(10)]


@pytest.mark.skipif(sys.platform != "linux", reason="counts processes in /proc")
def test_a_killed_worker_is_replaced_and_the_server_goes_on_serving(
    serve: Any, call: Any, waiting_app: Path
) -> None:
    with serve(waiting_app, "--workers", "3") as server:
        victim = call(server, "pid")["result"]

        os.kill(victim, signal.SIGKILL)
        message = server.stderr.readline().decode()
        wait_until(lambda: len(workers_of(server) - {victim}) == 3)

        assert message == f"worker {victim} exited with status -9; starting another\n"
        for _ in range(20):
            assert call(server, "pid")["result"] != victim


@pytest.mark.skipif(sys.platform != "linux", reason="counts processes in /proc")
def test_a_session_that_its_client_ended_stays_ended_when_every_worker_was_replaced(
    serve: Any, call: Any, connect: Any, request_bytes: Any, waiting_app: Path
) -> None:
    def send(port: int, body: bytes, *headers: str, method: str = "POST") -> Any:
        connection = connect(port)
        accept = "Accept: application/json, text/event-stream"
        connection.send(request_bytes("/mcp", body, accept, *headers, method=method))
        return connection.read_response()

    def answering_workers() -> set[int]:
        pids: set[int] = set()

        def have_all_answered() -> bool:
            pids.add(call(server, "pid")["result"])
            return len(pids) == 2

        wait_until(have_all_answered)
        return pids

    with serve(waiting_app, "--workers", "2") as server:
        started = send(server.port, INITIALIZE)
        session = f"Mcp-Session-Id: {started.headers['mcp-session-id']}"
        ended = send(server.port, b"", session, method="DELETE")
        for victim in answering_workers():
            os.kill(victim, signal.SIGKILL)
            assert b"starting another" in server.stderr.readline()
            assert victim not in answering_workers()
        after = {send(server.port, PING, session).status for _ in range(20)}

    assert (started.status, ended.status) == (200, 204)
    assert after == {404}


@pytest.mark.skipif(sys.platform != "linux", reason="counts processes in /proc")
def test_workers_exit_when_their_parent_is_killed(serve: Any, call: Any, waiting_app: Path) -> None:
    with serve(waiting_app, "--workers", "2") as server:
        call(server, "pid")
        workers = workers_of(server)

        server.process.kill()
        server.process.wait(BOUND)

        assert wait_until(lambda: refuses_connections(server.port))
        assert wait_until(lambda: not any(is_running(pid) for pid in workers))


def test_a_child_process_of_the_app_is_not_taken_for_a_worker(
    serve: Any, call: Any, tmp_path: Path
) -> None:
    path = tmp_path / "busy.py"
    path.write_text(
        "import subprocess\n"
        "from answerback import App\n"
        "app = App('busy')\n"
        "child = subprocess.Popen(['cat'], stdin=subprocess.PIPE)\n"
        "app.add_tool(lambda: child.kill(), name='kill_child')\n"
        "app.add_tool(lambda: 1, name='one')\n"
        "app.run()\n"
    )
    with serve(path, "--workers", "2") as server:
        call(server, "kill_child")

        assert call(server, "one") == {"result": 1}
        server.process.terminate()
        assert server.process.wait(BOUND) == 0


def test_a_worker_that_cannot_start_stops_the_server_with_a_message(tmp_path: Path) -> None:
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


def test_a_worker_that_exits_while_another_is_connected_to_it_logs_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def ignore(_: WorkerMessage) -> None:
        pass

    async def connect_and_close(folder: str) -> None:
        one, other = (SocketBus(folder, number, 2) for number in range(2))
        await one.start(ignore)
        await other.start(ignore)
        await one.broadcast(SessionEnded(b"session", 2.0**33))
        await one.close()
        await other.close()

    # The path of a unix socket must be short, and `tmp_path` may be long.
    with TemporaryDirectory() as folder:
        asyncio.run(connect_and_close(folder))

    assert caplog.records == []


@pytest.mark.skipif(sys.platform != "linux", reason="counts processes in /proc")
def test_the_folder_of_a_killed_server_is_removed_by_the_next_and_that_of_a_running_one_is_not(
    serve: Any, waiting_app: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = tmp_path / "tmp"
    folders.mkdir()
    monkeypatch.setenv("TMPDIR", str(folders))
    with serve(waiting_app, "--workers", "2") as killed:
        workers = workers_of(killed)
        killed.process.kill()
        wait_until(lambda: not any(map(is_running, workers)))
    left = set(os.listdir(folders))

    with serve(waiting_app, "--workers", "2"):
        first = set(os.listdir(folders))
        with serve(waiting_app, "--workers", "2"):
            both = set(os.listdir(folders))

    assert len(left) == len(first) == 1
    assert first != left
    assert first < both
    assert len(both) == 2
    assert os.listdir(folders) == []
