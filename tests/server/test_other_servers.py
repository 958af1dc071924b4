"""`app.asgi()` inside other frameworks, served by other servers with several workers."""

from __future__ import annotations

import http.client
import importlib.util
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.fuzz.http_client import (
    BOTH,
    EVENTS,
    JSON,
    HttpResponse,
    event_data,
    mirrored_headers,
    raw_post,
    read_until,
    stateless_call,
)
from tests.fuzz.stdio_client import call, request
from tests.ports import listening
from tests.server.processes import BOUND, is_running, wait_until

APPS = Path(__file__).parent.parent / "apps"
SECRET = "of enough bytes!"
WORKERS = {"gunicorn": 2, "hypercorn": 2, "granian": 2, "daphne": 1, "uvicorn": 1}
"""The servers, and how many processes answer; daphne has one."""
PAIRS = [
    ("gunicorn", "fastapi"),
    ("hypercorn", "starlette"),
    ("granian", "litestar"),
    ("daphne", "django"),
]
MODULES = {"gunicorn": "uvicorn_worker"}


def command(server: str, port: int) -> list[str]:
    address = f"127.0.0.1:{port}"
    options = {
        "uvicorn": ["--port", str(port)],
        "gunicorn": ["-b", address, "-w", "2", "-k", "uvicorn_worker.UvicornWorker"],
        "hypercorn": ["-b", address, "-w", "2"],
        "granian": ["--interface", "asgi", "--port", str(port), "--workers", "2"],
        "daphne": ["-p", str(port)],
    }
    return [sys.executable, "-m", server, *options[server], "mounted:application"]


class Deployment:
    """A process of another server, which serves an app inside another framework at /tools."""

    def __init__(self, server: str, framework: str, folder: Path, **variables: str) -> None:
        self.workers = WORKERS[server]
        self.audit = folder / "audit.jsonl"
        self._log = folder / "log"
        self._running = ExitStack()
        environ = {
            "FRAMEWORK": framework,
            "AUDIT": str(self.audit),
            "ANSWERBACK_SECRET": SECRET,
            # gunicorn puts a socket there.
            "HOME": str(folder),
            **variables,
        }
        self.process, self.port = self._running.enter_context(
            listening(partial(command, server), self._log, cwd=APPS, env=os.environ | environ)
        )
        self.pids: set[int] = set()
        wait_until(self._all_workers_answer)

    def _all_workers_answer(self) -> bool:
        assert self.process.poll() is None, self.log()
        with suppress(OSError):
            self.pids.add(self.post("/functions/pid", {}).frame["result"])
        return len(self.pids) == self.workers

    def post(self, path: str, message: Any, headers: dict[str, str] | None = None) -> HttpResponse:
        """Send a request on a connection of its own, so that any worker may answer it."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=BOUND)
        all_headers = {"Content-Type": JSON, "Accept": BOTH, **(headers or {})}
        try:
            connection.request("POST", f"/tools{path}", json.dumps(message), all_headers)
            received = connection.getresponse()
            found = {name.lower(): value for name, value in received.getheaders()}
            streamed = found.get("content-type") == EVENTS
            texts = list(event_data(received)) if streamed else [received.read()]
            return HttpResponse(
                received.status, found, [json.loads(each) for each in texts if each]
            )
        finally:
            connection.close()

    def initialize(self) -> dict[str, str]:
        """Open a session, and return the headers of its requests."""
        client = {"name": "client", "version": "1"}
        params = {
            "protocolVersion": "2025-11-25",
            "capabilities": {"elicitation": {}},
            "clientInfo": client,
        }
        response = self.post("/mcp", request(0, "initialize", params))
        session = response.headers["mcp-session-id"]
        return {"Mcp-Session-Id": session, "Mcp-Protocol-Version": "2025-11-25"}

    def start(self, data: bytes) -> socket.socket:
        """Send *data* on a new connection, which the caller closes."""
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=BOUND)
        connection.sendall(data)
        return connection

    def ask(self, session: dict[str, str]) -> tuple[socket.socket, str]:
        """Call a tool that asks; the connection, and the id of the question."""
        body = json.dumps(call(1, "ask")).encode()
        connection = self.start(raw_post(body, session, "/tools/mcp"))
        received = read_until(connection, b"elicitation/create")
        found = re.search(rb'"id":"(ask-\w+)"', received)
        assert found is not None
        return connection, found[1].decode()

    def open_stream(self, session: dict[str, str]) -> socket.socket:
        """Open the stream on which the session would get notifications."""
        lines = [f"{name}: {value}" for name, value in session.items()]
        head = ["GET /tools/mcp HTTP/1.1", "Host: 127.0.0.1", f"Accept: {EVENTS}", *lines, "", ""]
        connection = self.start("\r\n".join(head).encode())
        read_until(connection, b"\r\n\r\n")
        return connection

    def log(self) -> str:
        return self._log.read_text()

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(BOUND)

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self._running.close()
        for pid in filter(is_running, self.pids):
            os.kill(pid, signal.SIGKILL)


@pytest.fixture(scope="module")
def deploy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Deployment]]:
    """Starts a server, or returns the one that runs."""
    running: dict[tuple[str, str], Deployment] = {}

    def start(server: str, framework: str) -> Deployment:
        for module in (server, framework, MODULES.get(server, server)):
            if importlib.util.find_spec(module) is None:
                pytest.skip(f"{module} is not installed")
        found = running.get((server, framework))
        if found is None or found.process.poll() is not None:
            folder = tmp_path_factory.mktemp(server)
            found = running[server, framework] = Deployment(server, framework, folder)
        return found

    yield start
    for deployment in running.values():
        deployment.kill()


@pytest.mark.parametrize(("server", "framework"), PAIRS)
def test_every_worker_answers_rest_and_both_eras_of_mcp(
    deploy: Callable[..., Deployment], server: str, framework: str
) -> None:
    served = deploy(server, framework)
    session = served.initialize()
    stateless = stateless_call(1, "pid")
    in_session: set[int] = set()
    without: set[int] = set()

    def all_have_answered() -> bool:
        found = served.post("/mcp", call(1, "pid"), session).frame["result"]
        in_session.add(found["structuredContent"]["result"])
        found = served.post("/mcp", stateless, mirrored_headers(stateless)).frame["result"]
        without.add(found["structuredContent"]["result"])
        return in_session == without == served.pids

    wait_until(all_have_answered)

    assert served.post("/functions/add", {"x": 7, "y": 3}).frame == {"result": 10}
    assert served.post("/functions/add", {"x": 7}).headers["x-error-code"] == "INVALID_ARGUMENTS"
    assert in_session == without == served.pids


@pytest.mark.parametrize(("server", "framework"), PAIRS)
def test_a_question_of_the_stateless_era_is_answered_at_any_worker(
    deploy: Callable[..., Deployment], server: str, framework: str
) -> None:
    served = deploy(server, framework)
    frame = stateless_call(1, "ask")
    headers = mirrored_headers(frame)
    names = []
    for number in range(4):
        asked = served.post("/mcp", frame, headers).frame["result"]
        (key,) = asked["inputRequests"]
        answer = {"action": "accept", "content": {"value": f"Ada {number}"}}
        again = stateless_call(2, "ask")
        again["params"] |= {"requestState": asked["requestState"], "inputResponses": {key: answer}}
        names.append(served.post("/mcp", again, headers).frame["result"]["structuredContent"])

    assert names == [{"result": f"Ada {number}"} for number in range(4)]


def test_a_question_in_a_session_is_answered_if_there_is_one_worker(
    deploy: Callable[..., Deployment],
) -> None:
    served = deploy("daphne", "django")
    session = served.initialize()
    connection, id = served.ask(session)
    answer = {"action": "accept", "content": {"value": "Ada"}}

    accepted = served.post("/mcp", {"jsonrpc": "2.0", "id": id, "result": answer}, session)
    received = read_until(connection, b"isError")
    connection.close()

    assert accepted.status == 202
    assert b'"structuredContent":{"result":"Ada"}' in received


@pytest.mark.parametrize(("server", "framework"), PAIRS)
def test_a_tool_sees_that_its_client_disconnected(
    deploy: Callable[..., Deployment], tmp_path: Path, server: str, framework: str
) -> None:
    served = deploy(server, framework)
    rest, stateless = tmp_path / "rest", tmp_path / "stateless"
    frame = stateless_call(1, "wait", file=str(stateless))
    mcp = raw_post(json.dumps(frame).encode(), mirrored_headers(frame), "/tools/mcp")
    body = json.dumps({"file": str(rest)}).encode()
    for file, data in ((rest, raw_post(body, {}, "/tools/functions/wait")), (stateless, mcp)):
        connection = served.start(data)
        wait_until(file.with_name(f"{file.name}.running").exists)
        connection.close()

    assert wait_until(rest.exists)
    assert wait_until(stateless.exists)


@pytest.mark.parametrize(("server", "framework"), PAIRS)
def test_several_workers_say_at_the_start_what_they_do_not_share(
    deploy: Callable[..., Deployment], server: str, framework: str
) -> None:
    served = deploy(server, framework)

    lines = [line for line in served.log().splitlines() if "sticky sessions" in line]

    assert len(lines) == (served.workers if served.workers > 1 else 0)
    assert "ANSWERBACK_SECRET" not in served.log()


@pytest.mark.parametrize(("server", "framework"), [*PAIRS, ("uvicorn", "fastapi")])
def test_sigterm_ends_the_server_with_open_streams_and_writes_the_records(
    deploy: Callable[..., Deployment], server: str, framework: str
) -> None:
    served = deploy(server, framework)
    session = served.initialize()
    stream = served.open_stream(session)
    asked, _ = served.ask(session)
    answers = [served.post("/functions/double", {"x": 7}).frame for _ in range(20)]

    exit_status = served.stop()

    assert exit_status in (0, -signal.SIGTERM)
    assert not any(map(is_running, served.pids))
    assert answers == [{"result": 14}] * 20
    assert served.audit.read_text().count('"double"') == 20
    # hypercorn cancels what still runs after three seconds.
    if server != "hypercorn":
        assert b"The server is shutting down" in read_until(asked, b"isError")
    for connection in (stream, asked):
        connection.close()


@pytest.mark.parametrize("signals", [True, False])
@pytest.mark.parametrize("server", ["uvicorn", "hypercorn"])
def test_signals_false_leaves_the_handlers_of_the_server_alone(
    tmp_path: Path, server: str, signals: bool
) -> None:
    if importlib.util.find_spec(server) is None:
        pytest.skip(f"{server} is not installed")
    served = Deployment(server, "starlette", tmp_path, SIGNALS="1" if signals else "0")
    try:
        found = served.post("/functions/has_own_handler", {}).frame
        exit_status = served.stop()
    finally:
        served.kill()

    assert found == {"result": signals}
    assert exit_status in (0, -signal.SIGTERM)


ITSELF = """
from contextlib import asynccontextmanager
from pathlib import Path

from answerback import App


@asynccontextmanager
async def lifespan():
    Path("log.txt").write_text("started ")
    yield 7
    Path("log.txt").open("a").write("ended")


app = App("itself", lifespan=lifespan)


@app.tool
def state() -> int:
    return app.state
"""


@pytest.mark.parametrize("server", ["uvicorn", "hypercorn", "granian"])
def test_a_server_serves_the_app_itself_with_its_lifespan(server: str, tmp_path: Path) -> None:
    if importlib.util.find_spec(server) is None:
        pytest.skip(f"{server} is not installed")
    (tmp_path / "itself.py").write_text(ITSELF)

    def command(port: int) -> list[str]:
        options = {
            "uvicorn": ["--port", str(port)],
            "hypercorn": ["-b", f"127.0.0.1:{port}"],
            "granian": ["--interface", "asgi", "--port", str(port)],
        }
        return [sys.executable, "-m", server, *options[server], "itself:app"]

    with listening(command, tmp_path / "server.log", cwd=tmp_path) as started:
        connection = http.client.HTTPConnection("127.0.0.1", started.port, timeout=BOUND)
        connection.request("POST", "/functions/state", "{}", {"Content-Type": JSON})
        answer = connection.getresponse().read()
        connection.close()

    assert answer == b'{"result":7}'
    assert (tmp_path / "log.txt").read_text() == "started ended"


def test_a_server_does_not_start_an_app_that_cannot_be_served(tmp_path: Path) -> None:
    program = f"{ITSELF}\n\n@app.tool(widget='missing')\ndef show() -> int:\n    return 1\n"
    (tmp_path / "itself.py").write_text(program)

    done = subprocess.run(
        [sys.executable, "-m", "uvicorn", "--port", "0", "itself:app"],
        cwd=tmp_path,
        capture_output=True,
        timeout=BOUND,
    )

    assert done.returncode != 0
    assert b"'missing'" in done.stderr
