"""The examples run, and the demo compares all wires."""

from __future__ import annotations

import asyncio
import importlib.util
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from answerback import App
from answerback.tools.tool import Tool

EXAMPLES = Path(__file__).parent.parent / "examples"
APPS = sorted(path.stem for path in EXAMPLES.glob("*.py") if "app.run()" in path.read_text())


@pytest.fixture
def demo() -> ModuleType:
    spec = importlib.util.spec_from_file_location("demo", EXAMPLES / "demo.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_each_seed_with_an_example_has_it() -> None:
    assert {"aligned", "calculator", "instances", "weather"} <= set(APPS)


@pytest.mark.parametrize("name", APPS)
def test_the_examples_of_a_tool_succeed_as_calls(name: str, example: Callable[[str], App]) -> None:
    app = example(name)

    async def failed() -> list[str]:
        calls = [(tool, each) for tool in app.tools.values() for each in _examples(tool)]
        replies = [(tool.name, await app.call(tool.name, **given)) for tool, given in calls]
        return [name for name, reply in replies if not reply.ok]

    assert asyncio.run(failed()) == []


def _examples(tool: Tool) -> Sequence[Mapping[str, Any]]:
    return tool.settings.examples


@pytest.mark.parametrize("name", APPS)
def test_an_example_lists_its_tools(name: str) -> None:
    command = [sys.executable, str(EXAMPLES / f"{name}.py"), "list"]

    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)

    assert done.stdout
    assert done.stderr == ""


def test_the_demo_prints_the_reply_of_every_wire_and_exits() -> None:
    command = [sys.executable, str(EXAMPLES / "demo.py")]

    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    assert done.returncode == 0, done.stderr
    assert done.stdout.count("The same reply on every wire.") == 2
    for wire in ("memory", "REST", "CGI", "command line", "MCP, stdio", "MCP, HTTP"):
        rows = [line for line in done.stdout.splitlines() if line.startswith(f"  {wire} ")]
        assert '{"result":10}' in rows[0]
        assert "division by zero" in rows[1]
    assert max(map(len, done.stdout.splitlines())) <= 80


@pytest.mark.parametrize("wire", ["on_command_line", "over_mcp_http"])
def test_the_demo_fails_if_the_reply_of_one_wire_differs(
    wire: str, demo: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    other = demo.WireReply("some wire", "call add", "ok", '{"result":11}', 0.1)
    monkeypatch.setattr(demo, wire, lambda *_: other)

    assert demo.main() == 1

    assert capsys.readouterr().out.count("THE REPLIES DIFFER.") == 2
