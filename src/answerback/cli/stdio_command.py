"""The command with which a host starts a server on stdin and stdout, from any folder."""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING

from .target import absolute_target

if TYPE_CHECKING:
    from .program import Program

# uv keeps the environments of `uvx` in such cache folders.
_UVX_FOLDER = re.compile(r"[/\\]uv[/\\](?:cache[/\\])?[a-z]+-v\d+[/\\]")


def stdio_command(program: Program, target: str | None, env: dict[str, str]) -> list[str]:
    """Return the command; a module in the current folder needs that folder, added to *env*."""
    if program.app is not None:
        return [*_own_command(), "mcp"]
    place, folder = absolute_target(target or "")
    if folder is not None:
        paths = (folder, env.get("PYTHONPATH", ""))
        env["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
    return [sys.executable, "-m", "answerback", "mcp", place]


def _own_command() -> list[str]:
    """Return the start of this program's own command line."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    if spec is not None:
        return [sys.executable, "-m", spec.name.removesuffix(".__main__")]
    started = os.path.abspath(sys.argv[0])
    if started.endswith(".py") or not os.access(started, os.X_OK):
        return [sys.executable, started]
    if not _UVX_FOLDER.search(started):
        return [started]
    # `uvx` started the script, and uv may remove its path from the cache.
    # Imported here: it is slow, and `serve` needs this module too.
    from importlib.metadata import entry_points

    script = os.path.basename(started).removesuffix(".exe")
    found = [
        each.dist.name for each in entry_points(group="console_scripts", name=script) if each.dist
    ]
    package = found[0] if found else script
    return ["uvx", script] if package == script else ["uvx", "--from", package, script]


def name_in_hosts(app_name: str) -> str:
    """Return the name that a server has in the files of hosts, unless its user gives one."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", app_name).strip("-")[:64] or "server"
