"""The settings of the interpreter in a process that serves."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

APP = """
import gc, sys
from answerback import App

app = App("settings")
{own}

@app.tool
def settings() -> list[float]:
    return [gc.get_threshold()[0], gc.get_freeze_count(), sys.getswitchinterval()]

if __name__ == "__main__":
    app.run()
"""
DEFAULT = gc.get_threshold()[0]


@pytest.fixture
def app(tmp_path: Path) -> Path:
    path = tmp_path / "settings.py"
    path.write_text(APP.format(own=""))
    return path


def test_serve_collects_garbage_less_often_and_switches_threads_sooner(
    serve: Any, call: Any, app: Path
) -> None:
    with serve(app) as server:
        threshold, frozen, interval = call(server, "settings")["result"]

    assert threshold > DEFAULT
    assert frozen > 0
    assert interval == pytest.approx(0.0005)


def test_mcp_collects_garbage_less_often(app: Path) -> None:
    threshold, frozen, interval = settings_over_stdio(app)

    assert threshold > DEFAULT
    assert frozen > 0
    assert interval == pytest.approx(0.005)


def test_call_collects_garbage_less_often(app: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(app), "call", "settings"], capture_output=True, timeout=60, check=True
    )

    threshold, frozen, interval = json.loads(done.stdout)["result"]
    assert threshold > DEFAULT
    assert frozen > 0
    assert interval == pytest.approx(0.005)


@pytest.mark.parametrize("is_enabled", [True, False])
def test_importing_answerback_leaves_the_garbage_collector_as_it_was(is_enabled: bool) -> None:
    switch = "enable" if is_enabled else "disable"
    line = f"import gc; gc.{switch}(); from answerback import App; print(gc.isenabled())"

    done = subprocess.run([sys.executable, "-c", line], capture_output=True, timeout=60, check=True)

    assert done.stdout.split() == [str(is_enabled).encode()]


def test_the_environment_switches_the_settings_off(
    serve: Any, call: Any, app: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANSWERBACK_TUNE", "0")

    with serve(app) as server:
        served = call(server, "settings")["result"]

    assert served == [DEFAULT, 0, pytest.approx(0.005)]
    assert settings_over_stdio(app) == [DEFAULT, 0, pytest.approx(0.005)]


@pytest.mark.parametrize("own", [90_000, 0])
def test_an_authors_own_settings_are_kept(serve: Any, call: Any, tmp_path: Path, own: int) -> None:
    path = tmp_path / "own.py"
    path.write_text(APP.format(own=f"gc.set_threshold({own}); sys.setswitchinterval(0.25)"))

    with serve(path) as server:
        threshold, _, interval = call(server, "settings")["result"]

    assert (threshold, interval) == (own, pytest.approx(0.25))


def settings_over_stdio(app: Path) -> Any:
    params = {"name": "settings", "arguments": {}}
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    done = subprocess.run(
        [sys.executable, str(app), "mcp"],
        input=json.dumps(request).encode() + b"\n",
        capture_output=True,
        timeout=60,
        check=True,
    )
    return json.loads(json.loads(done.stdout)["result"]["content"][0]["text"])["result"]
