"""`python -m tests.clients [NAME…]` calls one app with many clients, and prints a table.

Each client is installed in an environment of its own, in the folder `.clients`.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.clients.calls import CALLS, SECRET
from tests.fuzz.http_client import served_app

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
APP = HERE / "app.py"
ENVIRONMENTS = ROOT / ".clients"
SECONDS = 240


def main(names: list[str]) -> int:
    clients = tomllib.loads((HERE / "packages.toml").read_text())["client"]
    chosen = [each for each in clients if not names or any(name in each["name"] for name in names)]
    failed = 0
    with served_app(APP) as served:
        url = f"http://127.0.0.1:{served.port}"
        for client in chosen:
            folder = _install(client)
            cells = []
            for wire in ("stdio", "http"):
                wanted = wire in client.get("wires", ("stdio", "http"))
                faults = _faults(client, folder, wire, url) if wanted else None
                cells.append(_cell(faults))
                failed += bool(faults)
                for fault in dict.fromkeys(faults or ()):
                    sys.stdout.write(f"  {wire}: {fault}\n")
            sys.stdout.write(f"{client['name']:<50} stdio {cells[0]:<8} HTTP {cells[1]}\n")
            sys.stdout.flush()
    return min(1, failed)


def _cell(faults: list[str] | None) -> str:
    if faults is None:
        return "-"
    return f"{len(CALLS) - len(faults)}/{len(CALLS)}"


def _install(client: dict[str, Any]) -> Path:
    """The folder of the client's environment, which is made if it is missing or out of date."""
    folder = ENVIRONMENTS / re.sub(r"[^\w.-]+", "-", client["name"]).strip("-")
    ready = folder / "ready.json"
    packages = json.dumps([client.get("pip"), client.get("npm")])
    if ready.exists() and ready.read_text() == packages:
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    if "pip" in client:
        _run([sys.executable, "-m", "venv", str(folder)])
        pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "-q"]
        _run([*pip, "--disable-pip-version-check", *client["pip"]])
    else:
        (folder / "package.json").write_text('{"private": true, "type": "module"}')
        npm = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"]
        _run([*npm, *client["npm"]], folder)
    ready.write_text(packages)
    return folder


def _run(command: list[str], folder: Path = ROOT) -> None:
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL, timeout=600)


def _faults(client: dict[str, Any], folder: Path, wire: str, url: str) -> list[str]:
    """The calls that were answered otherwise than expected; all of them if the driver failed."""
    with _driver(client, folder) as command:
        variables = {
            "CLIENTS_URL": url,
            "CLIENTS_COMMAND": json.dumps([sys.executable, str(APP), "mcp"]),
            "CLIENTS_CALLS": json.dumps([[*call] for call in CALLS]),
            "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
        }
        try:
            done = subprocess.run(
                [*command, wire],
                cwd=folder,
                env=os.environ | variables,
                capture_output=True,
                text=True,
                timeout=SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return [f"no answers in {SECONDS} seconds"] * len(CALLS)
    line = next((each for each in done.stdout.splitlines() if each.startswith("ANSWERS ")), None)
    if line is None:
        last = (done.stderr.strip() or done.stdout.strip() or "no output").splitlines()[-1]
        return [last[:300]] * len(CALLS)
    answers: list[str] = json.loads(line.removeprefix("ANSWERS "))
    return [
        f"{call.tool} {call.arguments}: {answer[:200]}"
        for call, answer in zip(CALLS, answers, strict=True)
        if SECRET in answer or not all(text in answer for text in call.expected)
    ]


@contextmanager
def _driver(client: dict[str, Any], folder: Path) -> Iterator[list[str]]:
    """The command that runs the driver. Node finds packages only in folders above a script."""
    source = HERE / "drivers" / client["driver"]
    if "pip" in client:
        yield [str(folder / "bin" / "python"), str(source)]
        return
    for each in source.parent.glob("*.mjs"):
        (folder / each.name).write_text(each.read_text())
    yield ["node", str(folder / source.name)]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
