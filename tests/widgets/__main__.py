"""`python -m tests.widgets` shows a widget in hosts of others, and makes the pictures of the docs.

It runs, and prints the outcome of: the Apps host of the MCP Inspector, in Chromium; MCPJam's
checks of MCP Apps; the TypeScript compiler on the bridge. What `make setup` does not install is
installed into the folder `.apps`.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.conftest import ROOT, serving
from tests.ports import free_port
from tests.protocol.official_tools import INSPECTOR, node_command, node_environment
from tests.widgets.browser_driver import BRIDGE, PAGES, Browser, chromium, sandbox
from tests.widgets.two_hosts import WIDGETS, two_hosts

INSTALLED = ROOT / ".apps" / "packages"
PICTURES = ROOT / "docs" / "guides" / "images"
# @mcpjam/cli 1.1.6 has no command `apps`; the checks are in @mcpjam/sdk, which needs this client.
PACKAGES = ("@mcpjam/sdk@1.14.0", "@modelcontextprotocol/client@2.0.0-alpha.2", "typescript@5.9.3")
INSTALL = ("npm", "install", "--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts")
ROWS = "[...document.querySelectorAll('tr')].map((row) => row.innerText.replace(/\\s+/, ' '))"


def main() -> int:
    install()
    with chromium() as browser, sandbox() as frames, serving(WIDGETS) as server:
        outcomes = [
            run("MCP Inspector, Apps", lambda: inspector(browser, f"{server.url}/mcp")),
            run("MCPJam, checks of MCP Apps", lambda: mcpjam(f"{server.url}/mcp")),
            run("TypeScript, bridge.js", typescript),
            run("pictures", lambda: pictures(browser, frames.url)),
        ]
    return 0 if all(outcomes) else 1


def run(name: str, part: Callable[[], str]) -> bool:
    """Run one part and print its outcome."""
    try:
        outcome, passed = part(), True
    except AssertionError as exc:
        outcome, passed = str(exc), False
    sys.stdout.write(f"{'passed' if passed else 'FAILED'}  {name}\n")
    sys.stdout.write("".join(f"        {line}\n" for line in outcome.splitlines()))
    sys.stdout.flush()
    return passed


def install() -> None:
    wanted = "\n".join(PACKAGES)
    done = INSTALLED / "installed.txt"
    if done.exists() and done.read_text() == wanted:
        return
    INSTALLED.mkdir(parents=True, exist_ok=True)
    (INSTALLED / "package.json").write_text('{"private": true}\n')
    command = [*INSTALL, "--loglevel=error", "--prefix", str(INSTALLED), *PACKAGES]
    subprocess.run(command, cwd=INSTALLED, check=True, timeout=900)
    done.write_text(wanted)


@contextmanager
def inspector_page(url: str) -> Iterator[str]:
    """The address of the Inspector's page, for the server at *url*."""
    ports = {name: str(free_port()) for name in ("CLIENT_PORT", "MCP_SANDBOX_PORT")}
    (INSTALLED / "home").mkdir(exist_ok=True)
    environment = {**node_environment(INSTALLED / "home"), **ports}
    environment |= {"MCP_AUTO_OPEN_ENABLED": "false", "MCP_INSPECTOR_SECRET_STORE": "memory"}
    command = node_command(INSPECTOR, "--web", "--transport", "http", "--server-url", url)
    # The Inspector starts processes of its own, so the group is ended.
    process = subprocess.Popen(
        command,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        lines = iter(process.stdout.readline, "")
        found = next(
            (match for line in lines if (match := re.search(r"http\S+TOKEN=\S+", line))), None
        )
        assert found, "the Inspector ended before it printed its address"
        yield found.group()
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(60)


def inspector(browser: Browser, url: str) -> str:
    """Open the widget in the Inspector, and let it call a tool back."""
    with inspector_page(url) as address:
        browser.open(address)
        browser.until("!!document.querySelector('[role=switch]')")
        browser.run("document.querySelector('[role=switch]').click()")
        browser.click("text=Apps")
        browser.click("text=Show the accounts of one owner.")
        browser.click("button:has-text('Open App')")
        rows = browser.until(f"{ROWS}.length && {ROWS}", "innermost")
        browser.click("text=Savings", "innermost")
        payments = browser.until("document.querySelector('ul').innerText", "innermost")
        browser.open("about:blank")
    assert rows == ["Checking €1,250.00", "Savings €18,400.50"], rows
    assert payments == "Savings: rent -800.00\nSavings: salary 2100.00", payments
    return "the widget shows the data and calls a tool back"


def mcpjam(url: str) -> str:
    command = node_command(PAGES / "mcpjam.mjs", str(INSTALLED), url)
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    checks = "\n".join(f"{check['status']:8}{check['id']}" for check in result["checks"])
    assert result["passed"], f"{result['summary']}\n{checks}"
    return f"{result['summary']}\n{checks}"


def typescript() -> str:
    compiler = INSTALLED / "node_modules" / "typescript" / "bin" / "tsc"
    flags = "--noEmit --checkJs --allowJs --strict --target es2022 --lib es2022,dom,dom.iterable"
    flags += " --moduleDetection force --module esnext --moduleResolution bundler"
    command = node_command(compiler, *flags.split(), str(BRIDGE))
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout
    return "the types of bridge.js agree with bridge.d.ts"


def pictures(browser: Browser, frames: str) -> str:
    """Write the pictures of the docs."""
    PICTURES.mkdir(exist_ok=True)
    shown = [PICTURES / "widget.png", PICTURES / "widget-refusal.png"]
    with two_hosts(browser, frames) as hosts:
        hosts.show("AppsHost")
        browser.until(f"{ROWS}.length", "widget")
        browser.click("text=Savings", "widget")
        browser.until("!!document.querySelector('li')", "widget")
        take(browser, shown[0])
        hosts.show("AppsHost", owner="Bob", context={"theme": "dark"})
        browser.until("!!document.querySelector('[role=alert]')", "widget")
        take(browser, shown[1])
    return "\n".join(f"{path.relative_to(ROOT)}  {path.stat().st_size} bytes" for path in shown)


def take(browser: Browser, path: Path) -> None:
    """Write a picture when the frame has the height that the widget wants."""
    height = "document.documentElement.offsetHeight"
    browser.until(f"Math.abs({height} - innerHeight) <= 1", "widget")
    browser.screenshot("iframe", path)
    assert path.stat().st_size < 60_000, path


if __name__ == "__main__":
    raise SystemExit(main())
