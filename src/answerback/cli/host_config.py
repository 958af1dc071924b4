"""The hosts for `install`: where each keeps its configuration, and what an entry looks like."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from .target import absolute_target

if TYPE_CHECKING:
    from ..core.json_value import JsonObject
    from .program import Program


# uv keeps `uvx` environments in cache folders like this one.
_UVX_FOLDER = re.compile(r"[/\\]uv[/\\](?:cache[/\\])?[a-z]+-v\d+[/\\]")


def stdio_command(program: Program, target: str | None, env: dict[str, str]) -> list[str]:
    """Return the command; for a module in the current folder, add that folder to *env*."""
    if program.app is not None:
        return [*_program_command(), "mcp"]
    place, folder = absolute_target(target or "")
    if folder is not None:
        paths = (folder, env.get("PYTHONPATH", ""))
        env["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
    return [sys.executable, "-m", "answerback", "mcp", place]


def _program_command() -> list[str]:
    """Return the command line that starts this program, without its arguments."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    if spec is not None:
        return [sys.executable, "-m", spec.name.removesuffix(".__main__")]
    started = os.path.abspath(sys.argv[0])
    if started.endswith(".py") or not os.access(started, os.X_OK):
        return [sys.executable, started]
    if not _UVX_FOLDER.search(started):
        return [started]
    # `uvx` started the script, and uv may remove its path from the cache.
    # Imported here because it is slow, and `serve` needs this module too.
    from importlib.metadata import entry_points

    script = os.path.basename(started).removesuffix(".exe")
    found = [
        each.dist.name for each in entry_points(group="console_scripts", name=script) if each.dist
    ]
    package = found[0] if found else script
    return ["uvx", script] if package == script else ["uvx", "--from", package, script]


def name_in_hosts(app_name: str) -> str:
    """Return the server's default name in a host's file."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", app_name).strip("-")[:64] or "server"


class HostConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A program that starts MCP servers, and the file that lists them."""

    title: str
    servers: str
    """The member of the file that maps names to servers."""
    has_type: bool = False
    """Whether an entry says that the server uses stdio."""
    afterwards: str
    """What the user has to do before the host starts the server."""

    def entry(self, command: list[str], env: Mapping[str, str]) -> JsonObject:
        """Return the configuration of a stdio server."""
        made: JsonObject = {"type": "stdio"} if self.has_type else {}
        made |= {"command": command[0], "args": command[1:]}
        return made | {"env": dict(env)} if env else made


_CLAUDE_DESKTOP = HostConfig(
    title="Claude Desktop",
    servers="mcpServers",
    afterwards="quit Claude Desktop and start it again",
)
HOSTS = {
    "claude": _CLAUDE_DESKTOP,
    "claude-desktop": _CLAUDE_DESKTOP,
    "claude-code": HostConfig(
        title="Claude Code",
        servers="mcpServers",
        has_type=True,
        afterwards="start claude in this folder; it asks whether the server may run",
    ),
    "cursor": HostConfig(
        title="Cursor", servers="mcpServers", afterwards="switch the server on in Cursor's settings"
    ),
    "gemini-cli": HostConfig(
        title="Gemini CLI",
        servers="mcpServers",
        afterwards="restart gemini; /mcp shows the server",
    ),
    "vscode": HostConfig(
        title="VS Code",
        servers="servers",
        has_type=True,
        afterwards="run the command `MCP: List Servers` in VS Code and start the server",
    ),
}


def config_file(host: str, system: str, environ: Mapping[str, str], home: str) -> str:
    """Return a host's file for this user; for Claude Code, the one in the current folder.

    *system* is `sys.platform`.
    """
    match host:
        case "claude-code":
            return ".mcp.json"
        case "cursor":
            return os.path.join(home, ".cursor", "mcp.json")
        case "gemini-cli":
            return os.path.join(home, ".gemini", "settings.json")
        case "vscode":
            place = settings_folder(system, environ, home)
            return os.path.join(place, "Code", "User", "mcp.json")
    place = settings_folder(system, environ, home)
    return os.path.join(place, "Claude", "claude_desktop_config.json")


def settings_folder(system: str, environ: Mapping[str, str], home: str) -> str:
    """Return the folder where programs keep their settings."""
    if system == "darwin":
        return os.path.join(home, "Library", "Application Support")
    if system == "win32":
        return environ.get("APPDATA") or os.path.join(home, "AppData", "Roaming")
    return environ.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
