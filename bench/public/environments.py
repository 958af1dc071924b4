"""The environments of the contenders, in `.bench/`: each is made at its first use, and kept."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from .contenders import NODE, Environment

ROOT = Path(__file__).parent.parent.parent
FOLDER = ROOT / ".bench"
SERVERS = Path(__file__).parent / "servers"
INSTALL_SECONDS = 900


class NotInstalled(Exception):
    """A contender could not be installed."""


def installed(environment: Environment) -> Path:
    """The folder of an environment, which is made if it is missing or out of date."""
    folder = FOLDER / environment.name
    ready = folder / "ready.json"
    packages = json.dumps([environment.pip, environment.npm])
    if ready.exists() and ready.read_text() == packages:
        return folder
    print(f"installing {', '.join((*environment.pip, *environment.npm))}", file=sys.stderr)
    folder.mkdir(parents=True, exist_ok=True)
    if environment.pip:
        _run([sys.executable, "-m", "venv", str(folder)], folder)
        pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "-q"]
        _run([*pip, "--disable-pip-version-check", *environment.pip], folder)
    else:
        (folder / "package.json").write_text('{"private": true, "type": "module"}')
        npm = ["npm", "install", "--no-package-lock", "--no-audit", "--no-fund"]
        _run([*npm, "--ignore-scripts", "--loglevel=error", *environment.npm], folder)
    ready.write_text(packages)
    return folder


def _run(command: list[str], folder: Path) -> None:
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False
    )
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()[-5:]
        raise NotInstalled(f"{' '.join(command)} failed: {' '.join(said)}")


def program(environment: Environment, command: tuple[str, ...], *, here: bool) -> list[str]:
    """The command with the environment's own interpreter; *here* takes this one instead."""
    interpreter, *arguments = command
    if here:
        return [sys.executable, *arguments]
    folder = installed(environment)
    if interpreter == "python":
        return [str(folder / "bin" / "python"), *arguments]
    # Node finds packages only in the folders above a script.
    for script in SERVERS.glob("*.mjs"):
        (folder / script.name).write_text(script.read_text())
    name = NODE.npm[0].partition("@")[0]
    node = installed(NODE) / "node_modules" / name / "bin" / "node"
    return [str(node), *(str(folder / each) for each in arguments)]


def variables(clients: str) -> dict[str, str]:
    """The environment variables of a server: it imports this checkout, and its own packages."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return {**own, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "SHOP_CLIENTS": clients}
