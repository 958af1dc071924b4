"""Clients of a session that disconnect while they are asked, and the end of the server."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.fuzz.http_client import (
    BOTH,
    EVENTS,
    JSON,
    STARTED,
    ServedApp,
    read_until,
    served_app,
)
from tests.fuzz.stdio_client import call
from tests.server.processes import is_running, wait_until

BEFORE_THE_LIMIT = 20.0
"""Seconds; the calls that run at a shutdown get 30."""
ASKING = """
import asyncio
from pathlib import Path
from typing import Annotated
from answerback import App, Ask, Context
from answerback.records import JSONL

app = App("asking", records=JSONL("audit.jsonl"))

@app.tool
async def ask(ctx: Context, file: str = "") -> str:
    try:
        answer = await ctx.elicit("Who are you?", str)
        Path(file).write_text(answer)
        return answer
    finally:
        Path(file).with_suffix(".ended").touch()

@app.tool
def ask_before(really: Annotated[bool, Ask("Really?")]) -> bool:
    return really

application = app.asgi()
if __name__ == "__main__":
    app.run()
"""


@pytest.fixture
def asking(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    path = tmp_path / "asking.py"
    path.write_text(ASKING)
    # The server writes its records to the current directory.
    monkeypatch.chdir(tmp_path)
    return path


@contextmanager
def served_by_uvicorn(path: Path) -> Iterator[ServedApp]:
    command = [sys.executable, "-m", "uvicorn", "asking:application", "--port", "0"]
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            command, cwd=path.parent, stdout=subprocess.DEVNULL, stderr=errors
        )
        served: UvicornApp | None = None
        try:
            served = UvicornApp(process, errors)
            yield served
        finally:
            if served is not None:
                served.close()
            process.kill()
            process.wait()


class UvicornApp(ServedApp):
    def _find_port(self) -> int:
        def port() -> re.Match[str] | None:
            return re.search(r"http://\S+?:(\d+)", self.stderr())

        found: re.Match[str] = wait_until(port)
        return int(found.group(1))


@contextmanager
def served_by(server: str, path: Path) -> Iterator[ServedApp]:
    match server:
        case "uvicorn":
            with served_by_uvicorn(path) as served:
                yield served
        case "workers":
            with served_app(path, "--workers", "2") as served:
                yield served
        case _:
            with served_app(path) as served:
                yield served


def ask(served: ServedApp, tool: str, accept: str, **arguments: Any) -> tuple[Any, bytes, Any]:
    """Call a tool until it asks; the connection, the id of the question, and the session."""
    session = served.initialize(elicitation={})
    frame = call(1, tool, **arguments)
    connection = served.start_post(frame, {**session, "Accept": accept})
    received = read_until(connection, b"elicitation/create")
    found = re.search(rb'"id":"(ask-\w+)"', received)
    assert found is not None
    return connection, found[1], session


@pytest.mark.parametrize("server", ["serve", "workers", "uvicorn"])
@pytest.mark.parametrize("accept", [BOTH, f"{EVENTS}, {JSON}"])
def test_a_client_that_disconnected_while_it_was_asked_does_not_hold_up_the_end(
    asking: Path, tmp_path: Path, server: str, accept: str
) -> None:
    with served_by(server, asking) as served:
        for tool, arguments in (("ask", {"file": str(tmp_path / "file")}), ("ask_before", {})):
            connection, _, _ = ask(served, tool, accept, **arguments)
            connection.close()

        served.process.send_signal(signal.SIGTERM)

        assert served.process.wait(BEFORE_THE_LIMIT) in (0, -signal.SIGTERM)
        assert "Traceback" not in served.stderr()
    assert (tmp_path / "file.ended").exists()
    if server != "uvicorn":
        assert (tmp_path / "audit.jsonl").read_bytes().count(b'"duration_us":') == 2


@pytest.mark.parametrize("server", ["serve", "workers"])
def test_a_client_that_is_being_asked_gets_its_answer_at_the_shutdown(
    asking: Path, tmp_path: Path, server: str
) -> None:
    with served_by(server, asking) as served:
        connection, _, _ = ask(served, "ask", BOTH, file=str(tmp_path / "file"))

        served.process.send_signal(signal.SIGTERM)
        received = read_until(connection, b"isError")

        assert b"The server is shutting down" in received
        assert served.process.wait(BEFORE_THE_LIMIT) == 0


def test_a_question_can_be_answered_after_its_client_disconnected(
    asking: Path, tmp_path: Path
) -> None:
    file = tmp_path / "file"
    with served_by("serve", asking) as served:
        connection, id, session = ask(served, "ask", BOTH, file=str(file))
        connections = served.open_files()
        connection.close()
        wait_until(lambda: served.open_files() < connections)
        # The next tick of the timer notices that the client has disconnected.
        answer = {"action": "accept", "content": {"value": "Ada"}}
        response = {"jsonrpc": "2.0", "id": id.decode(), "result": answer}

        assert served.post(response, session).status == 202
        assert wait_until(file.exists)
        assert STARTED in served.stderr()
        assert is_running(served.process.pid)


def test_an_error_as_the_answer_to_a_question_is_a_refusal(asking: Path, tmp_path: Path) -> None:
    with served_by("serve", asking) as served:
        connection, id, session = ask(served, "ask", BOTH, file=str(tmp_path / "file"))
        error = {"code": -32601, "message": "no"}
        served.post({"jsonrpc": "2.0", "id": id.decode(), "error": error}, session)

        assert b"The client refused" in read_until(connection, b"isError")
