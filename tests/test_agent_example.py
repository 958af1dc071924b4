"""The agent of the examples answers a question end to end, with a model that needs no download."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"


def run_agent(
    question: str, example: str, base_url: str | None = None
) -> subprocess.CompletedProcess[str]:
    own = {name: value for name, value in os.environ.items() if name != "OPENAI_BASE_URL"}
    return subprocess.run(
        [sys.executable, str(EXAMPLES / "agent.py"), question, str(EXAMPLES / f"{example}.py")],
        env=own | ({} if base_url is None else {"OPENAI_BASE_URL": base_url}),
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


@pytest.mark.parametrize(
    ("question", "example", "answer"),
    [
        ("What is the weather in Oslo?", "weather", '"conditions":"Cloudy"'),
        ("What is the weather in Atlantis?", "weather", "Error: Location not found: Atlantis"),
        ("Please divide 17 by 5.", "calculator", "The tool says: 3.4"),
        ("Sing a song.", "calculator", "I have no tool for that."),
    ],
)
def test_the_agent_answers_with_the_stand_in_model(
    question: str, example: str, answer: str
) -> None:
    done = run_agent(question, example)

    assert done.returncode == 0, done.stderr
    assert answer in done.stdout


@contextmanager
def scripted_model(replies: list[dict[str, Any]]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Serve a model that gives *replies* in turn; yields its URL and the requests that it gets."""
    requests: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            requests.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            message = {"role": "assistant", **replies[len(requests) - 1]}
            body = json.dumps({"choices": [{"message": message}]}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Write no line for each request."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", requests
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def called(name: str, arguments: str) -> dict[str, Any]:
    call = {"id": "1", "type": "function", "function": {"name": name, "arguments": arguments}}
    return {"content": None, "tool_calls": [call]}


def test_a_model_that_gets_a_call_wrong_is_told_so_and_can_try_again() -> None:
    replies = [
        called("wether", "{}"),
        called("weather", "{"),
        called("weather", '{"location": "Oslo"}'),
        {"content": "It is cloudy."},
    ]

    with scripted_model(replies) as (base_url, requests):
        done = run_agent("Is it cloudy?", "weather", base_url)

    assert done.stdout == "It is cloudy.\n"
    results = [each["content"] for each in requests[-1]["messages"] if each["role"] == "tool"]
    assert results[0] == "Error: Unknown tool: wether\nHint: the tools are weather, cities"
    assert results[1].startswith("Error: the arguments are not JSON")
    assert json.loads(results[2])["conditions"] == "Cloudy"
    assert requests[0]["tools"][0]["function"]["strict"] is True
