"""The hosts of `install`: where each keeps its configuration, and the form of an entry."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from ..core.json_value import JsonObject


class HostConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A program that starts MCP servers, and the file that names them."""

    title: str
    servers: str
    """The file's member that has the servers by name."""
    has_type: bool = False
    """Whether an entry says that the server uses stdio."""
    afterwards: str
    """The user's step after which the host starts the server."""

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
        afterwards="start gemini again; /mcp shows the server",
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
    """Return the folder in which programs keep their settings."""
    if system == "darwin":
        return os.path.join(home, "Library", "Application Support")
    if system == "win32":
        return environ.get("APPDATA") or os.path.join(home, "AppData", "Roaming")
    return environ.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
