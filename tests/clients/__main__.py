"""`python -m tests.clients` calls one app with many clients of others, and prints a table.

Each client is installed in an environment of its own, in the folder `.clients`.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from pathlib import Path

from tests.clients.calls import CALLS, faults
from tests.clients.packages import Client, read_clients
from tests.fuzz.http_client import served_app
from tests.ports import free_port

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
APP = HERE / "app.py"
ENVIRONMENTS = ROOT / ".clients"
SECONDS = 600
INSTALL_SECONDS = 900
# MCP clients start a server without most variables, so the command sets this one itself.
STDIO = ["env", f"PYTHONPATH={ROOT / 'src'}", sys.executable, str(APP), "mcp"]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.clients", description=__doc__)
    parser.add_argument(
        "--only", metavar="NAME", action="append", help="a part of a client's name; may be repeated"
    )
    parser.add_argument("--list", action="store_true", help="list the clients and end")
    arguments = parser.parse_args()
    wanted = arguments.only or [""]
    clients = [each for each in read_clients() if any(part in each.name for part in wanted)]
    if not clients:
        parser.error(f"no client is called {' or '.join(wanted)}; --list lists them")
    if arguments.list:
        sys.stdout.write("".join(f"{each.name}\n" for each in clients))
        return 0
    return _run_all(clients)


def _run_all(clients: list[Client]) -> int:
    rows, broken = [], 0
    with served_app(APP) as served:
        for client in clients:
            found = _try(client, f"http://127.0.0.1:{served.port}")
            broken += sum(map(bool, found.values()))
            for wire, lines in found.items():
                for line in dict.fromkeys(lines):
                    sys.stderr.write(f"  {client.name} {wire}: {line}\n")
            rows.append(client.row({wire: _cell(client, lines) for wire, lines in found.items()}))
            sys.stderr.write(rows[-1])
            sys.stderr.flush()
    head = "| client | stdio | HTTP | does not show |\n|---|---|---|---|\n"
    sys.stdout.write("\n" + head + "".join(rows))
    sys.stdout.write(f"\n{broken} broken\n")
    return min(1, broken)


def _cell(client: Client, lines: list[str]) -> str:
    if client.judge:
        return "broken" if lines else "ok"
    return f"{len(CALLS) - len(lines)}/{len(CALLS)}"


def _try(client: Client, url: str) -> dict[str, list[str]]:
    """What is wrong, by wire; nothing if all is well."""
    try:
        folder = install(client)
    except subprocess.SubprocessError as exc:
        output = getattr(exc, "stderr", None) or str(exc)
        last = "not installed: " + output.strip().splitlines()[-1][:300]
        return {wire: [last] * len(CALLS) for wire in client.wires}
    return {wire: _drive(client, folder, wire, url) for wire in client.wires}


def install(client: Client) -> Path:
    """The folder of the client's environment, which is made if it is missing or out of date."""
    folder = ENVIRONMENTS / re.sub(r"[^\w.-]+", "-", client.name).strip("-")
    ready = folder / "ready.json"
    packages = json.dumps([client.pip, client.npm])
    if ready.exists() and ready.read_text() == packages:
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    if client.pip:
        _run([sys.executable, "-m", "venv", str(folder)])
        pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "-q"]
        _run([*pip, "--disable-pip-version-check", *client.pip])
    else:
        (folder / "package.json").write_text('{"private": true, "type": "module"}')
        npm = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"]
        _run([*npm, *client.npm], folder)
    ready.write_text(packages)
    return folder


def _run(command: list[str], folder: Path = ROOT) -> None:
    subprocess.run(
        command, cwd=folder, check=True, capture_output=True, text=True, timeout=INSTALL_SECONDS
    )


def _drive(client: Client, folder: Path, wire: str, url: str) -> list[str]:
    """One line for each call with a wrong answer; for every call if the driver failed."""
    variables = {
        "CLIENTS_URL": url,
        "CLIENTS_PORT": str(free_port()),
        "CLIENTS_COMMAND": json.dumps(STDIO),
        "CLIENTS_CALLS": json.dumps([[call.tool, call.arguments] for call in CALLS]),
        "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
    }
    if client.ours:
        folders = (ROOT / "src", ROOT, ROOT / "examples")
        variables["PYTHONPATH"] = os.pathsep.join(map(str, folders))
    own = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    try:
        done = subprocess.run(
            [*_command(client, folder), wire],
            cwd=folder,
            env=own | variables,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return [f"no answers in {SECONDS} seconds"] * len(CALLS)
    if client.judge:
        # A judge that crashed says why in its stderr only.
        said = done.stdout.strip() or done.stderr.strip() or f"exit status {done.returncode}"
        return said.splitlines()[-20:] if done.returncode else []
    line = next((each for each in done.stdout.splitlines() if each.startswith("ANSWERS ")), None)
    if line is None:
        last = (done.stderr.strip() or done.stdout.strip() or "no output").splitlines()[-1]
        return [last[:300]] * len(CALLS)
    return _wrong(client, json.loads(line.removeprefix("ANSWERS ")))


def _wrong(client: Client, answers: list[dict[str, object]]) -> list[str]:
    return [
        f"{call.tool} {call.arguments}: {', '.join(parts)} in {str(answer)[:300]}"
        for call, answer in zip(CALLS, answers, strict=True)
        if (parts := faults(call, answer, client.lacks))
    ]


def _command(client: Client, folder: Path) -> list[str]:
    """The command of the driver. Node finds packages only in folders above a script."""
    source = HERE / "drivers" / client.driver
    if client.pip:
        return [str(folder / "bin" / "python"), str(source)]
    for each in source.parent.glob("*.mjs"):
        (folder / each.name).write_text(each.read_text())
    return ["node", str(folder / source.name)]


if __name__ == "__main__":
    sys.exit(main())
