"""Which environment variables a server gets that `connect` starts."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp.client.stdio import get_default_environment

from answerback import connect
from answerback.client.child_process import windows_program

_SERVER = """
import json, os, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    common = {"resultType": "complete", "ttlMs": 60000, "cacheScope": "private"}
    result = {
        "server/discover": {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}},
        "tools/list": {"tools": [{"name": "environment", "inputSchema": {"type": "object"}}]},
        "tools/call": {"content": [], "structuredContent": dict(os.environ)},
    }[asked["method"]]
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": {**result, **common}}))
    sys.stdout.flush()
"""
SERVER = [sys.executable, "-I", "-S", "-c", _SERVER]
GIVEN = {
    "LANG": "C.UTF-8",
    "LC_TIME": "C",
    "TZ": "Europe/Oslo",
    "TMPDIR": "/tmp",
    "https_proxy": "http://127.0.0.1:1",
    "NO_PROXY": "localhost",
    "SSL_CERT_FILE": "/certificates.pem",
    "NODE_EXTRA_CA_CERTS": "/more.pem",
}
KEPT_BACK = {"OPENAI_API_KEY": "sk-1", "PYTHONPATH": "/own", "ANSWERBACK_SECRET": "x" * 32}


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (GIVEN | KEPT_BACK).items():
        monkeypatch.setenv(name, value)


def environment_of(target: Any, **options: Any) -> dict[str, str]:
    with connect(target, **options) as server:
        found: Any = server.call(server.tools()[0].name).data
    return dict(found)


@pytest.mark.parametrize("number", ["one", "of a file", "of several"])
def test_a_server_gets_a_short_list_of_variables_and_no_other(number: str) -> None:
    entry = {"command": SERVER[0], "args": SERVER[1:]}
    targets = {"one": SERVER, "of a file": entry, "of several": {"mcpServers": {"a": entry}}}

    found = environment_of(targets[number])

    assert GIVEN.items() <= found.items()
    assert get_default_environment().items() <= found.items()
    assert not KEPT_BACK.keys() & found.keys()


def test_env_adds_variables_and_replaces_those_of_the_list() -> None:
    found = environment_of(SERVER, env={"OPENAI_API_KEY": "sk-2", "LANG": "de_DE"})

    assert (found["OPENAI_API_KEY"], found["LANG"]) == ("sk-2", "de_DE")
    assert found["PATH"] == os.environ["PATH"]


@pytest.mark.parametrize("number", ["one", "of several"])
def test_inherit_gives_all_variables_except_the_secret_of_this_process(number: str) -> None:
    entry = {"command": SERVER[0], "args": SERVER[1:]}
    targets = {"one": SERVER, "of several": {"mcpServers": {"a": entry}}}

    found = environment_of(targets[number], inherit=True)

    assert found["OPENAI_API_KEY"] == "sk-1"
    assert found["PYTHONPATH"] == "/own"
    assert "ANSWERBACK_SECRET" not in found


@pytest.mark.parametrize(("flags", "inherits"), [((), False), (("--inherit-env",), True)])
def test_on_the_command_line_a_server_gets_all_variables_only_if_asked(
    flags: tuple[str, ...], inherits: bool, tmp_path: Any
) -> None:
    program = tmp_path / "server.py"
    program.write_text(_SERVER)

    done = subprocess.run(
        [
            *(sys.executable, "-m", "answerback", "call", *flags),
            *(f"{shlex.quote(sys.executable)} {program}", "environment"),
        ],
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )

    assert "LC_TIME" in done.stdout, done.stderr
    assert ("OPENAI_API_KEY" in done.stdout) is inherits
    assert "ANSWERBACK_SECRET" not in done.stdout


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("npx", "tools/npx.cmd"),
        ("uvx", "other/uvx.exe"),
        ("both", "tools/both.exe"),
        ("npx.cmd", "npx.cmd"),
        ("missing", "missing"),
        ("tools/npx", "tools/npx.cmd"),
    ],
)
def test_on_windows_a_program_is_found_with_its_ending(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, file: str
) -> None:
    for each in ("tools/npx", "tools/npx.cmd", "other/uvx.exe", "tools/both.exe", "tools/both.cmd"):
        (tmp_path / each).parent.mkdir(exist_ok=True)
        (tmp_path / each).touch()
    monkeypatch.chdir(tmp_path)
    path = os.pathsep.join(["tools", "other"])

    found = windows_program(name, {"PATH": path, "PATHEXT": ".EXE;.CMD"})

    assert found == file
