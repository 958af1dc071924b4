import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.records.support import replies_in

Run = Callable[..., Any]


def test_serve_answers_at_the_address_that_it_prints(
    serve: Callable[..., Any], tools: Path
) -> None:
    with (
        serve(tools) as server,
        urllib.request.urlopen(f"{server.url}/healthz", timeout=60) as response,
    ):
        assert response.status == 200


@pytest.mark.parametrize(
    "flags",
    [("--workers", "0"), ("--port", "x"), ("--port", "99999"), ("--max-body", "-1"), ("--nope",)],
)
@pytest.mark.usefixtures("tools")
def test_an_invalid_flag_is_refused(answerback: Run, flags: tuple[str, ...]) -> None:
    done = answerback("serve", "tools.py", *flags)

    assert done.exit == 2
    assert "Traceback" not in done.stderr


@pytest.mark.usefixtures("tools")
def test_an_address_that_is_not_available_is_an_error_in_one_line(answerback: Run) -> None:
    done = answerback("serve", "tools.py", "--host", "203.0.113.1")

    assert done.exit == 2
    assert done.stderr.splitlines()[-1].startswith("error: cannot listen")


@pytest.mark.usefixtures("tools")
@pytest.mark.parametrize("file", ["audit.csv", "audit", "nowhere/audit.db"])
def test_an_audit_file_with_a_wrong_suffix_or_folder_is_refused(
    answerback: Run, file: str, tmp_path: Path
) -> None:
    done = answerback("serve", "tools.py", "--audit", file)

    assert done.exit == 2
    assert done.stderr.splitlines()[-1].startswith(f"error: cannot record in '{file}'")
    assert list(tmp_path.glob("audit*")) == []


CALLS_WHILE_LOADING = """
import asyncio
from answerback import App

app = App("warmed")

@app.tool
def add(x: int, y: int) -> int:
    return x + y

asyncio.run(app.call("add", x=1, y=2))

if __name__ == "__main__":
    app.run()
"""


@pytest.mark.parametrize("file", ["audit.db", "audit.jsonl"])
def test_calls_are_recorded_of_an_app_that_was_called_while_it_loaded(
    serve: Callable[..., Any], file: str, tmp_path: Path
) -> None:
    tools = tmp_path / "warmed.py"
    tools.write_text(CALLS_WHILE_LOADING)

    with serve(tools, "--audit", str(tmp_path / file)) as server:
        httpx.post(f"{server.url}/functions/add", json={"x": 3, "y": 4}).raise_for_status()
        call = {"name": "add", "arguments": {"x": 5, "y": 6}}
        frame = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
        accept = {"Accept": "application/json, text/event-stream"}
        httpx.post(f"{server.url}/mcp", json=frame, headers=accept).raise_for_status()

    assert [event.wire for event in replies_in(tmp_path / file)] == ["rest", "mcp"]
