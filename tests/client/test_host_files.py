"""The files of the hosts, written as each host writes them, are targets of `connect` and `list`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from string import Template
from typing import Any

import pytest
from tests.client.conftest import STUB, http_server
from tests.client.test_http_faults import protected

from answerback import connect
from answerback.cli import main

FILES = {
    "claude_desktop_config.json": """{
        "mcpServers": {"one": {"command": $python, "args": $arguments, "env": {"KEY": "a key"}}},
        "globalShortcut": ""
    }""",
    ".mcp.json": """{
        "mcpServers": {
            "one": {"type": "stdio", "command": "${STUB_PYTHON:-none}", "args": $arguments,
                    "env": {"KEY": "${NO_SUCH_KEY:-a key}"}}
        }
    }""",
    ".cursor/mcp.json": """{
        "mcpServers": {
            "one": {"command": "${env:STUB_PYTHON}", "args": $arguments,
                    "cwd": "${workspaceFolder}",
                    "env": {"KEY": "a key", "HOME_FOLDER": "${userHome}"}}
        }
    }""",
    ".vscode/mcp.json": """{
        // Keys are asked for once.
        "inputs": [
            {"type": "promptString", "id": "stub-key", "description": "The key", "password": true},
            {"type": "promptString", "id": "place", "description": "x", "default": "here"},
        ],
        "servers": {
            "one": {
                "type": "stdio",
                "command": $python,
                "args": $arguments, /* the server itself */
                "cwd": "${workspaceFolder}",
                "env": {"KEY": "${input:stub-key}", "PLACE": "${input:place}"},
            },
        },
    }""",
    "zed/settings.json": """{
        // Settings of the editor stand in the same file.
        "theme": "One Dark",
        "context_servers": {
            "one": {"source": "custom", "enabled": true, "command": $python, "args": $arguments,
                    "env": {"KEY": "a key"}},
        },
    }""",
    "older-zed/settings.json": """{
        "context_servers": {
            "one": {"command": {"path": $python, "args": $arguments, "env": {"KEY": "a key"}},
                    "settings": {}}
        }
    }""",
    "cline_mcp_settings.json": """{
        "mcpServers": {
            "one": {"command": $python, "args": $arguments, "env": {"KEY": "a key"},
                    "disabled": false, "autoApprove": [], "timeout": 60},
            "two": {"command": "no-such-program", "disabled": true}
        }
    }""",
    ".continue/config.json": """{
        "models": [],
        "mcpServers": [
            {"name": "one", "command": $python, "args": $arguments, "env": {"KEY": "a key"}}
        ]
    }""",
}
KEYED = [*STUB[1:-1], "import os\nassert os.environ['KEY'] == 'a key'\n" + STUB[-1]]
"""A server that does not start without its key."""


@pytest.mark.parametrize("name", FILES)
def test_a_hosts_file_is_connected_to_and_listed(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("STUB_PYTHON", sys.executable)
    monkeypatch.setenv("STUB_KEY", "a key")
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    written = Template(FILES[name]).safe_substitute(
        python=json.dumps(sys.executable), arguments=json.dumps(KEYED)
    )
    file.write_text(written)

    with connect(file) as servers:
        reply = servers.call("one_weather")
    status = main(["list", str(file)])

    assert reply.data == {"degrees": "warm"}
    assert status == 0
    assert capfd.readouterr().out.startswith("one_weather")


WINDSURF = {"serverUrl": "URL", "headers": {"Authorization": "Bearer ${env:STUB_KEY}"}}
CLAUDE_CODE = {"type": "http", "url": "URL", "headers": {"Authorization": "Bearer ${STUB_KEY}"}}
CLINE = {"type": "streamableHttp", "url": "URL", "headers": {"Authorization": "Bearer k"}}
GEMINI = {"httpUrl": "URL", "headers": {"Authorization": "Bearer k"}}


@pytest.mark.parametrize("entry", [WINDSURF, CLAUDE_CODE, CLINE, GEMINI])
def test_a_server_with_a_url_gets_the_headers_of_the_file(
    entry: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STUB_KEY", "k")
    file = tmp_path / "mcp_config.json"

    with http_server(protected("k")) as url:
        file.write_text(json.dumps({"mcpServers": {"one": entry}}).replace("URL", url))
        with connect(file) as servers:
            tools = [tool.name for tool in servers.tools()]

    assert tools == ["one_safe", "one_unsafe"]


def test_an_input_that_nobody_gave_is_named_with_its_variable(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    inputs = [{"type": "promptString", "id": "api-key", "description": "The key"}]
    entry = {"command": "x", "env": {"KEY": "${input:api-key}"}}
    file.write_text(json.dumps({"inputs": inputs, "servers": {"one": entry}}))

    with pytest.raises(ValueError, match="one needs the environment variable API_KEY"):
        connect(file)
