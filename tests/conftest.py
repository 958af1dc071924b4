"""Fixtures of all tests: the app with every case, the examples, and a served app."""

from __future__ import annotations

import importlib.util
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

import httpx
import httpx._transports.default
import pytest
from hypothesis import HealthCheck, settings
from tests.state.postgres import Postgres, open_folder

from answerback import App

# The tests start hundreds of interpreters, and each is up twice as fast from compiled modules.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# A shell starts a background job with SIGINT ignored, and the processes of the tests inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Each client of httpx reads all certificates again, which takes longer than most requests.
httpx._transports.default.create_ssl_context = lru_cache(  # type: ignore[attr-defined]
    httpx.create_ssl_context
)

# On a busy machine, examples are made slowly.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

ROOT = Path(__file__).parent.parent
SERVERS = ("apache2", "fcgiwrap", "lighttpd", "nginx", "pgbouncer")
"""The servers that `make webservers` installs."""
EVERYTHING = ROOT / "tests" / "apps" / "everything.py"


def pytest_configure() -> None:
    """Make one folder for the programs of all workers, before they start."""
    open_folder()


def load_app(path: Path) -> App:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    app: App = module.app
    return app


@pytest.fixture(scope="session")
def everything() -> App:
    return load_app(EVERYTHING)


@pytest.fixture(scope="session")
def example() -> Callable[[str], App]:
    """Loads a fresh copy of an example, so that tests do not share its changes."""
    return lambda name: load_app(ROOT / "examples" / f"{name}.py")


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL server that does not wait for the disk."""
    server = Postgres()
    yield server
    server.close()


@pytest.fixture
def state_url(postgres: Postgres) -> Iterator[str]:
    """The URL of an empty database."""
    url = postgres.new_database()
    yield url
    postgres.drop(url)


class Server:
    """The process that serves an app, its address, and its stderr."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        assert process.stderr is not None
        self.stderr: IO[bytes] = process.stderr
        self.announced = ""
        while "Ctrl-C" not in self.announced:
            line = self.stderr.readline().decode()
            assert line, f"the server ended: {self.announced}"
            self.announced += line
        found = re.search(r"http://\S+?:\d+", self.announced)
        assert found is not None
        self.url = found.group()
        self.port = int(self.url.rsplit(":", 1)[1])


@contextmanager
def serving(path: Path, *flags: str) -> Iterator[Server]:
    """Serve the app at *path* on a free port, and end the server afterwards."""
    command = [sys.executable, str(path), "serve", "--port", "0", *flags]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
    try:
        yield Server(process)
    finally:
        process.terminate()
        process.communicate(timeout=60)


@pytest.fixture(scope="session")
def serve() -> Callable[..., Any]:
    return serving


@pytest.fixture(scope="session")
def everything_served() -> Iterator[Server]:
    with serving(EVERYTHING) as server:
        yield server


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say in one line what was not run, and how to run it."""
    skipped = terminalreporter.stats.get("skipped", [])
    if skipped:
        reasons = {str(report.longrepr[-1]).removeprefix("Skipped: ") for report in skipped}
        missing = {f"{name} is not installed" for name in SERVERS}
        hint = "; `make webservers` installs the servers" if reasons & missing else ""
        line = f"not run: {len(skipped)} tests ({', '.join(sorted(reasons))}){hint}"
        terminalreporter.write_line(line)
