"""The files of the hosts, written as each host writes them, are targets of `connect` and `list`."""

from __future__ import annotations

import json
import os
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


SHOWS = """
import json, os, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked:
        shown = {"cwd": os.getcwd(), "A": os.environ.get("A"), "B": os.environ.get("B"),
                 "C": os.environ.get("C"), "words": sys.argv[1:]}
        result = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}},
                  "content": [], "structuredContent": shown, "resultType": "complete"}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""
ENTRY = {"command": sys.executable, "args": ["-I", "-S", "-c", SHOWS]}
"""A server whose tools show its folder, its variables and its arguments."""


def shown_by(file: Path, server: str = "one") -> Any:
    with connect(file) as servers:
        return servers.call(f"{server}_show").data


def write(file: Path, entry: Any) -> Path:
    file.parent.mkdir(exist_ok=True, parents=True)
    file.write_text(json.dumps({"mcpServers": {"one": entry}}))
    return file


def test_the_env_file_of_an_entry_is_read_and_its_env_wins(tmp_path: Path) -> None:
    lines = ["# keys", "A=one # two", "export B='a # b'", 'C="x\\ny"', "", "D="]
    (tmp_path / ".env").write_text("\n".join(lines))
    entry = {**ENTRY, "envFile": "${workspaceFolder}/.env", "env": {"A": "own"}}

    shown = shown_by(write(tmp_path / ".vscode" / "mcp.json", entry))

    assert (shown["A"], shown["B"], shown["C"]) == ("own", "a # b", "x\ny")


@pytest.mark.parametrize(
    ("text", "said"), [(None, "No such file"), ("A", "line 1 is not"), ("\nB='x", "line 2 is not")]
)
def test_an_env_file_that_cannot_be_used_is_named(
    text: str | None, said: str, tmp_path: Path
) -> None:
    if text is not None:
        (tmp_path / ".env").write_text(text)
    file = write(tmp_path / "mcp.json", {**ENTRY, "envFile": ".env"})

    with pytest.raises(ValueError, match=rf"one cannot use its envFile .*\.env: {said}"):
        connect(file)


def test_the_variables_of_an_editor_are_filled_in(tmp_path: Path) -> None:
    words = ["${workspaceFolderBasename}", "a${pathSeparator}b${/}c", "${userHome}"]
    entry = {**ENTRY, "args": [*ENTRY["args"], *words]}

    shown = shown_by(write(tmp_path / "shop" / ".vscode" / "mcp.json", entry))

    assert shown["words"] == ["shop", os.path.join("a", "b", "c"), str(Path.home())]


@pytest.mark.parametrize(
    "variable", ["file", "selectedText", "config:python.path", "command:pick", "workspaceFolder:a"]
)
def test_a_variable_that_only_an_editor_knows_is_named(variable: str, tmp_path: Path) -> None:
    file = write(tmp_path / "mcp.json", {"command": "x", "args": [f"${{{variable}}}"]})

    with pytest.raises(ValueError, match=rf"one uses \${{{variable}}}, which only an editor knows"):
        connect(file)


def test_a_server_starts_in_the_folder_of_its_entry_or_of_its_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path = tmp_path.resolve()
    for folder in ("here", "shop/server"):
        (tmp_path / folder).mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "here")
    shop = tmp_path / "shop"

    folders = [
        shown_by(write(shop / "mcp.json", {**ENTRY, "cwd": "server"})),
        shown_by(write(shop / ".vscode" / "mcp.json", {**ENTRY, "cwd": "server"})),
        shown_by(write(shop / ".vscode" / "mcp.json", ENTRY)),
        shown_by(write(shop / ".mcp.json", ENTRY)),
        shown_by(write(shop / "mcp.json", ENTRY)),
    ]

    found = [str(Path(each["cwd"]).relative_to(tmp_path)) for each in folders]
    assert found == ["shop/server", "shop/server", "shop", "shop", "here"]


def test_the_servers_of_a_project_in_claude_json_are_those_of_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path.resolve() / "shop"
    (project / "src").mkdir(parents=True)
    monkeypatch.chdir(project / "src")
    file = tmp_path / ".claude.json"
    own = {"mcpServers": {"one": {**ENTRY, "env": {"A": "project"}}}}
    other = {"mcpServers": {"other": {"command": "x"}}}
    projects = {str(project): own, str(tmp_path / "elsewhere"): other}
    common = {"one": {"command": "x"}, "all": ENTRY}
    file.write_text(json.dumps({"mcpServers": common, "projects": projects}))

    with connect(file) as servers:
        names = sorted(servers.servers)

    assert names == ["all", "one"]
    assert shown_by(file)["A"] == "project"


@pytest.mark.parametrize(
    "text",
    [
        '{"mcpServers": {"one": {"command": "a"}, "one": {"command": "b"}}}',
        '{"mcpServers": [{"name": "one", "command": "a"}, {"name": "one", "command": "b"}]}',
    ],
)
def test_a_file_with_the_same_server_twice_is_refused(
    text: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mcp.json"
    file.write_text(text)

    with pytest.raises(ValueError, match="'one' appears twice"):
        connect(file)
    status = main(["list", str(file)])

    assert status != 0
    assert "'one' appears twice" in capfd.readouterr().err
