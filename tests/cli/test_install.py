"""`install` writes the configuration of each host, and keeps everything that is there."""

import json
import os
import pty
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from answerback.cli.host_config import config_file

Run = Callable[..., Any]
FILES = {
    "claude": "home/.config/Claude/claude_desktop_config.json",
    "claude-desktop": "home/.config/Claude/claude_desktop_config.json",
    "claude-code": ".mcp.json",
    "cursor": "home/.cursor/mcp.json",
    "gemini-cli": "home/.gemini/settings.json",
    "vscode": "home/.config/Code/User/mcp.json",
}
SERVERS = {"vscode": "servers"}
THEMED = """\
{
    "theme": "dark",
    "SERVERS": {
        "x": {"command": "y"}
    }
}"""
COMMENTED = """\
// My servers.
{
\t"inputs": [], /* none yet */
\t"servers": {
\t\t// The clock.
\t\t"time": {"command": "uvx", "args": ["mcp-server-time"]}, // a comma follows
\t},
}
"""


@pytest.fixture
def install(answerback: Run, tools: Path, tmp_path: Path) -> Run:
    """Runs `answerback install` with a home folder of its own."""
    (tmp_path / "home").mkdir()

    def run(*arguments: str) -> Any:
        home = str(tmp_path / "home")
        return answerback("install", *arguments, HOME=home, XDG_CONFIG_HOME="")

    assert tools.exists()
    return run


def entry_of(tools: Path) -> dict[str, Any]:
    return {"command": sys.executable, "args": ["-m", "answerback", "mcp", str(tools)]}


@pytest.mark.parametrize("host", FILES)
def test_each_host_gets_an_entry_in_its_own_file(
    install: Run, tools: Path, tmp_path: Path, host: str
) -> None:
    done = install(host, "tools.py", "--yes")

    written = json.loads((tmp_path / FILES[host]).read_text())
    kind = {"type": "stdio"} if host in ("claude-code", "vscode") else {}
    assert done.exit == 0, done.stderr
    assert written == {SERVERS.get(host, "mcpServers"): {"tools": kind | entry_of(tools)}}
    assert "+++" in done.stdout
    assert "Next: " in done.stdout


@pytest.mark.parametrize("host", FILES)
def test_the_entry_starts_the_server_from_another_folder(
    install: Run, tmp_path: Path, host: str
) -> None:
    install(host, "tools.py", "--yes")
    written = json.loads((tmp_path / FILES[host]).read_text())
    entry = written[SERVERS.get(host, "mcpServers")]["tools"]

    done = subprocess.run(
        [entry["command"], *entry["args"]],
        input='{"jsonrpc":"2.0","id":1,"method":"ping"}\n',
        capture_output=True,
        cwd="/",
        text=True,
        timeout=60,
        check=True,
    )

    assert json.loads(done.stdout) == {"jsonrpc": "2.0", "id": 1, "result": {}}


@pytest.mark.parametrize("host", FILES)
def test_other_servers_and_settings_stay_as_they_are(
    install: Run, tools: Path, tmp_path: Path, host: str
) -> None:
    file = tmp_path / FILES[host]
    file.parent.mkdir(parents=True, exist_ok=True)
    servers = SERVERS.get(host, "mcpServers")
    before = THEMED.replace("SERVERS", servers)
    file.write_text(before)
    file.chmod(0o600)

    done = install(host, "tools.py", "--yes", "--env", "TOKEN=a=b")

    after = file.read_text()
    written = json.loads(after)
    assert written["theme"] == "dark"
    assert written[servers]["x"] == {"command": "y"}
    assert written[servers]["tools"]["env"] == {"TOKEN": "a=b"}
    assert after.startswith(before[: before.index("}") + 1])
    assert file.stat().st_mode & 0o777 == 0o600
    (backup,) = file.parent.glob(f"{file.name}.*.bak")
    assert backup.read_text() == before
    assert str(backup) in done.stdout


def test_comments_and_tabs_of_a_file_stay(install: Run, tools: Path, tmp_path: Path) -> None:
    file = tmp_path / FILES["vscode"]
    file.parent.mkdir(parents=True)
    file.write_text(COMMENTED)

    done = install("vscode", "tools.py", "--yes")

    arguments = "".join(f'\t\t\t\t"{each}",\n' for each in ("-m", "answerback", "mcp"))
    added = (
        '\t\t"tools": {\n\t\t\t"type": "stdio",\n'
        f'\t\t\t"command": "{sys.executable}",\n\t\t\t"args": [\n{arguments}'
        f'\t\t\t\t"{tools}"\n\t\t\t]\n\t\t}}\n'
    )
    assert done.exit == 0, done.stderr
    assert file.read_text() == COMMENTED.replace("follows\n", f"follows\n{added}")


@pytest.mark.parametrize(
    "before",
    [
        '{"mcpServers":{}}',
        "{}",
        "",
        '{"mcpServers": {"x": {"command": "}//"}}}',
        '\ufeff{\r\n  "mcpServers": {\r\n    "x": {}\r\n  }\r\n}\r\n',
        '{\n  "mcpServers": {\n    "x": {} // last\n  }\n}',
    ],
)
def test_files_of_every_form_are_edited(install: Run, tmp_path: Path, before: str) -> None:
    file = tmp_path / ".mcp.json"
    file.write_bytes(before.encode())

    done = install("claude-code", "tools.py", "--yes")

    after = file.read_bytes().decode()
    lines = after.removeprefix("\ufeff").replace("// last", "")
    assert done.exit == 0, done.stderr
    assert "tools" in json.loads(lines)["mcpServers"]
    assert after.startswith("\ufeff") == before.startswith("\ufeff")
    assert after.count("\n") == after.count("\r\n") or "\r\n" not in before


@pytest.mark.parametrize(
    ("before", "reason"),
    [
        ('{"mcpServers": {', "not JSON"),
        ('{"mcpServers": []}', "expected an object"),
        ("[]", "expected an object"),
        ('{"mcpServers": {"tools": {"url": "https://example.com"}}}', "is a remote server"),
        ('{"mcpServers": {"tools": {"httpUrl": "https://example.com"}}}', "is a remote server"),
        ('{"mcpServers": {"tools": {"command": "x" /* mine */}}}', "has comments"),
        ('{"mcpServers": {}, "mcpServers": {}}', "a duplicate key"),
        ("<<<<<<< HEAD\n{}", "not JSON"),
        ('{"mcpServers": {"tools": {"command": "x", "env": []}}}', "'env' that is not an object"),
        ('{"a": ' + "[" * 100_000 + "]" * 100_000 + "}", "nested too deeply"),
        ('{"a": ' + "1" * 10_000 + "}", "a number that is too long"),
    ],
    ids=lambda value: value[:60],
)
def test_a_file_that_cannot_be_edited_is_left_alone_and_the_entry_is_shown(
    install: Run, tmp_path: Path, before: str, reason: str
) -> None:
    file = tmp_path / ".mcp.json"
    file.write_text(before)

    done = install("claude-code", "tools.py", "--yes")

    assert done.exit == 2
    assert reason in done.stderr
    assert "Add this by hand" in done.stderr
    assert '"tools": {' in done.stderr
    assert file.read_text() == before
    assert list(tmp_path.glob(".mcp.json.*")) == []


def test_installing_again_changes_nothing(install: Run, tmp_path: Path) -> None:
    install("claude-code", "tools.py", "--yes")
    first = (tmp_path / ".mcp.json").read_text()

    done = install("claude-code", "tools.py", "--yes")

    assert done.exit == 0
    assert "already has this server" in done.stdout
    assert (tmp_path / ".mcp.json").read_text() == first
    assert list(tmp_path.glob(".mcp.json.*")) == []


def test_a_changed_entry_keeps_what_the_user_added_to_it(install: Run, tmp_path: Path) -> None:
    old = {"command": "old", "args": [], "disabled": True, "env": {"KEY": "mine", "A": "1"}}
    file = tmp_path / ".mcp.json"
    file.write_text(json.dumps({"mcpServers": {"tools": old}}))

    install("claude-code", "tools.py", "--yes", "--env", "A=2")

    entry = json.loads(file.read_text())["mcpServers"]["tools"]
    assert entry["disabled"] is True
    assert entry["env"] == {"KEY": "mine", "A": "2"}
    assert entry["command"] == sys.executable


def test_print_shows_the_entry_and_writes_nothing(
    install: Run, tools: Path, tmp_path: Path
) -> None:
    done = install("claude", "tools.py", "--print", "--name", "my_tools")

    assert json.loads(done.stdout) == {"mcpServers": {"my_tools": entry_of(tools)}}
    assert list((tmp_path / "home").iterdir()) == []


def test_without_a_terminal_nothing_is_changed_unless_yes_is_given(
    install: Run, tmp_path: Path
) -> None:
    done = install("claude-code", "tools.py")

    assert done.exit == 2
    assert "pass --yes" in done.stderr
    assert not (tmp_path / ".mcp.json").exists()


@pytest.mark.parametrize(("typed", "status"), [("y", 0), ("n", 1), ("", 1)])
def test_on_a_terminal_the_user_is_asked(
    tools: Path, tmp_path: Path, typed: str, status: int
) -> None:
    leader, terminal = pty.openpty()
    command = [sys.executable, "-m", "answerback", "install", "claude-code", str(tools)]
    with subprocess.Popen(
        command, stdin=terminal, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path
    ) as process:
        os.write(leader, f"{typed}\n".encode())
        shown, asked = process.communicate(timeout=60)
    os.close(terminal)
    os.close(leader)

    assert process.returncode == status
    assert b'+    "tools": {' in shown
    assert b".mcp.json? [y/N] " in asked
    assert (tmp_path / ".mcp.json").exists() == (status == 0)


def test_ctrl_c_at_the_question_ends_with_130_and_changes_nothing(
    tools: Path, tmp_path: Path
) -> None:
    leader, terminal = pty.openpty()
    command = [sys.executable, "-m", "answerback", "install", "claude-code", str(tools)]
    with subprocess.Popen(
        command, stdin=terminal, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=tmp_path
    ) as process:
        assert process.stderr is not None
        asked = b""
        while b"[y/N] " not in asked:
            asked += process.stderr.read(1)
        process.send_signal(signal.SIGINT)
        rest = process.communicate(timeout=60)[1]
    os.close(terminal)
    os.close(leader)

    assert process.returncode == 130
    assert rest == b""
    assert not (tmp_path / ".mcp.json").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("emacs", "tools.py"), "invalid choice: 'emacs'"),
        (("claude", "nowhere.py"), "there is no file"),
        (("claude", "tools.py", "--name", "my tools"), "cannot be a server's name"),
        (("claude", "tools.py", "--env", "TOKEN"), "write --env NAME=VALUE"),
    ],
)
def test_wrong_arguments_are_refused(
    install: Run, arguments: tuple[str, ...], message: str
) -> None:
    done = install(*arguments, "--yes")

    assert done.exit == 2
    assert message in done.stderr


def test_a_link_to_the_file_stays_a_link(install: Run, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.json"
    real.write_text("{}")
    (tmp_path / ".mcp.json").symlink_to(real)

    install("claude-code", "tools.py", "--yes")

    assert (tmp_path / ".mcp.json").is_symlink()
    assert "tools" in json.loads(real.read_text())["mcpServers"]


def test_a_program_with_its_own_app_installs_itself(tools: Path, tmp_path: Path) -> None:
    command = [sys.executable, str(tools), "install", "claude-code", "--yes"]

    subprocess.run(command, check=True, cwd=tmp_path, capture_output=True, timeout=60)

    entry = json.loads((tmp_path / ".mcp.json").read_text())["mcpServers"]["tools"]
    assert entry == {"type": "stdio", "command": sys.executable, "args": [str(tools), "mcp"]}


def test_a_module_of_the_current_folder_gets_that_folder(install: Run, tmp_path: Path) -> None:
    install("claude-code", "tools:app", "--yes")

    entry = json.loads((tmp_path / ".mcp.json").read_text())["mcpServers"]["tools"]
    assert entry["args"] == ["-m", "answerback", "mcp", "tools:app"]
    assert entry["env"] == {"PYTHONPATH": str(tmp_path)}


@pytest.mark.parametrize(
    ("host", "system", "environ", "file"),
    [
        ("claude", "darwin", {}, "H/Library/Application Support/Claude/claude_desktop_config.json"),
        ("claude", "win32", {"APPDATA": "R"}, "R/Claude/claude_desktop_config.json"),
        ("claude", "win32", {}, "H/AppData/Roaming/Claude/claude_desktop_config.json"),
        ("claude", "linux", {"XDG_CONFIG_HOME": "X"}, "X/Claude/claude_desktop_config.json"),
        ("vscode", "darwin", {}, "H/Library/Application Support/Code/User/mcp.json"),
        ("vscode", "win32", {"APPDATA": "R"}, "R/Code/User/mcp.json"),
        ("cursor", "darwin", {}, "H/.cursor/mcp.json"),
        ("cursor", "win32", {"APPDATA": "R"}, "H/.cursor/mcp.json"),
        ("claude-code", "win32", {}, ".mcp.json"),
    ],
)
def test_each_system_has_its_own_places(
    host: str, system: str, environ: dict[str, str], file: str
) -> None:
    assert config_file(host, system, environ, "H") == file.replace("/", os.sep)


def test_what_is_not_a_regular_file_is_not_replaced(install: Run, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    for place in (pipe, Path(os.devnull)):
        done = install("cursor", "tools.py", "--yes", "--config", str(place))
        assert done.exit == 2
        assert "is not a regular file" in done.stderr

    assert stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
def test_a_file_of_another_user_stays_that_users(install: Run, tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    file.write_text("{}")
    os.chown(file, 12345, 23456)

    install("cursor", "tools.py", "--yes", "--config", str(file))

    for each in (file, *tmp_path.glob("mcp.json.*.bak")):
        assert (each.stat().st_uid, each.stat().st_gid) == (12345, 23456)


FULL_DISK = """
import resource, runpy
resource.setrlimit(resource.RLIMIT_FSIZE, (1, 1))
runpy.run_module("answerback", run_name="__main__")
"""


def test_a_full_disk_leaves_the_file_as_it_was_and_nothing_beside_it(
    tools: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "config"
    folder.mkdir()
    file = folder / "mcp.json"
    file.write_text("{}")
    arguments = ("install", "cursor", str(tools), "--yes", "--config", str(file))

    done = subprocess.run(
        [sys.executable, "-B", "-c", FULL_DISK, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 2
    assert "File too large" in done.stderr
    assert "Traceback" not in done.stderr
    assert file.read_text() == "{}"
    assert os.listdir(folder) == ["mcp.json"]


def test_of_many_installations_at_once_each_that_says_written_is_there(
    tools: Path, tmp_path: Path
) -> None:
    file = tmp_path / "mcp.json"
    command = [sys.executable, "-m", "answerback", "install", "cursor", str(tools), "--yes"]
    running = {
        name: subprocess.Popen(
            [*command, "--config", str(file), "--name", name],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for name in map("s{}".format, range(6))
    }
    said = {
        name for name, each in running.items() if "was written" in each.communicate(None, 60)[0]
    }

    assert set(json.loads(file.read_text())["mcpServers"]) == said
    assert said
