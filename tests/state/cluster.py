"""Servers and workers on one machine that share a PostgreSQL, behind a round-robin proxy.

`make cluster` starts one, sends it some calls and tasks, and shows what happens until Ctrl-C.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
from contextlib import ExitStack, suppress
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import httpx
import psycopg
from tests.ports import free_port
from tests.state.networks import Network, Place
from tests.state.postgres import Postgres
from tests.state.tcp_proxy import Proxy

APP = Path(__file__).with_name("fault_app.py")
SECRET = "s" * 32
FINAL = ("completed", "failed", "cancelled")
"""The states in which a task has ended."""
_SECONDS = 60.0


class Member:
    """A server or a worker with a port of its own, which can be killed and started again."""

    def __init__(self, cluster: Cluster, name: str, *arguments: str) -> None:
        self.name = name
        self.port = free_port()
        self.environment: dict[str, str] = {}
        """What only this member has in its environment."""
        self.flags: list[str] = []
        """Further flags of this member."""
        self.process: subprocess.Popen[bytes] | None = None
        self.place = Place()
        self._cluster = cluster
        self._command = [sys.executable, str(APP), *arguments, "--port", str(self.port)]

    @property
    def url(self) -> str:
        return f"http://{self.place.address}:{self.port}"

    def start(self) -> None:
        place = self.place
        with open(self._cluster.folder / f"{self.name}.log", "ab") as log:
            self.process = subprocess.Popen(
                [*place.prefix, *self._command, *place.flags, *self.flags],
                stdout=log,
                stderr=log,
                env={**self._cluster.environment, **self.environment},
                # Ctrl-C ends the cluster in order, not all its processes at once.
                start_new_session=True,
            )

    def wait_until_ready(self) -> None:
        ends = monotonic() + _SECONDS
        while True:
            with suppress(httpx.HTTPError):
                # Without the certificates, which take longer to read than the answer.
                if httpx.get(f"{self.url}/readyz", timeout=5, verify=False).status_code == 200:
                    return
            assert monotonic() < ends, f"{self.name} is not ready"
            sleep(0.05)

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        if self.process is not None:
            self.process.send_signal(how)
            self.wait_until_ended()

    def wait_until_ended(self) -> None:
        if self.process is not None:
            self.process.wait(_SECONDS)
            self.process = None

    def restart(self, how: signal.Signals = signal.SIGTERM) -> None:
        self.stop(how)
        self.start()
        self.wait_until_ready()


class Cluster:
    """PostgreSQL, three servers and two workers. The first server also runs tasks.

    With *cuts* the processes reach PostgreSQL through a proxy that can cut their connections. In a
    *network* each of them can be cut off.
    """

    def __init__(
        self,
        folder: Path,
        postgres: Postgres,
        *,
        cuts: bool = False,
        database: str | None = None,
        network: Network | None = None,
    ) -> None:
        self.folder = folder
        self.postgres = postgres
        self.database = database or postgres.new_database()
        self.wire = Proxy([postgres.port]) if cuts else None
        url = self.database
        if self.wire is not None:
            url = url.replace(f":{postgres.port}/", f":{self.wire.port}/")
        self.environment = {
            **os.environ,
            "ANSWERBACK_STATE": url,
            "ANSWERBACK_SECRET": SECRET,
            "STARTS": str(folder / "starts"),
        }
        self.servers = [
            Member(self, "server-1", "serve"),
            Member(self, "server-2", "serve", "--no-tasks"),
            Member(self, "server-3", "serve", "--no-tasks"),
        ]
        self.workers = [
            Member(self, f"worker-{number}", "worker", "--concurrency", "10") for number in (1, 2)
        ]
        if network is not None:
            self._spread_over(network)
        self.proxy = Proxy([(server.place.address, server.port) for server in self.servers])

    def _spread_over(self, network: Network) -> None:
        own = f"127.0.0.1:{self.postgres.port}"
        for member in self.members:
            member.place = network.place(member.name, self.postgres)
            if member.place.database is not None:
                address, port = member.place.database
                url = self.database.replace(own, f"{address}:{port}")
                member.environment["ANSWERBACK_STATE"] = url

    @property
    def members(self) -> list[Member]:
        return [*self.servers, *self.workers]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.proxy.port}"

    def start(self) -> None:
        (self.folder / "starts").touch()
        self.command("state", "init")
        for member in self.members:
            member.start()
        for member in self.members:
            member.wait_until_ready()

    def command(self, *arguments: str) -> str:
        """Run a command of Answerback with the cluster's state; return what it printed."""
        done = subprocess.run(
            [sys.executable, "-m", "answerback", *arguments],
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=_SECONDS,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def states(self) -> dict[str, int]:
        """How many tasks have each state, as the database says."""
        query = "SELECT state, count(*) FROM answerback.tasks GROUP BY 1 ORDER BY 1"
        with psycopg.connect(self.database, connect_timeout=5) as connection:
            return dict(connection.execute(query).fetchall())

    def final_states(self) -> dict[str, str]:
        """The states of the tasks that have ended, by id."""
        query = "SELECT id, state FROM answerback.tasks WHERE tool IN ('once', 'again')"
        with psycopg.connect(self.database, connect_timeout=5) as connection:
            found: dict[str, str] = dict(connection.execute(query).fetchall())
        return {id: state for id, state in found.items() if state in FINAL}

    def close(self) -> None:
        for member in self.members:
            if member.process is not None:
                member.process.terminate()
        for member in self.members:
            member.wait_until_ended()
        self.proxy.close()
        if self.wire is not None:
            self.wire.close()


class _Load(threading.Thread):
    """Some calls and tasks each second, so that there is something to see."""

    def __init__(self, url: str) -> None:
        super().__init__(daemon=True)
        self._url = url
        self._ended = threading.Event()
        self.calls = self.failures = 0

    def run(self) -> None:
        with httpx.Client(
            base_url=self._url, limits=httpx.Limits(max_keepalive_connections=0)
        ) as client:
            n = 0
            while not self._ended.wait(0.1):
                n += 1
                tool = ("once", "again")[n % 2] if n % 4 == 0 else "add"
                arguments: dict[str, Any] = {"x": n, "y": n} if tool == "add" else {"n": n}
                try:
                    client.post(f"/functions/{tool}", json=arguments).raise_for_status()
                    self.calls += 1
                except httpx.HTTPError:
                    self.failures += 1

    def end(self) -> None:
        self._ended.set()
        self.join()


def _show(text: str, end: str = "\n") -> None:
    sys.stdout.write(text + end)
    sys.stdout.flush()


def main() -> int:
    with ExitStack() as stack:
        folder = Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="answerback-cluster-"))
        )
        _show("starting PostgreSQL, three servers, two workers and a proxy ...")
        postgres = Postgres(durable=True)
        stack.callback(postgres.close)
        cluster = Cluster(folder, postgres)
        stack.callback(cluster.close)
        try:
            cluster.start()
            _show(f"proxy      {cluster.url}")
            for member in cluster.members:
                assert member.process is not None
                _show(f"{member.name:10} {member.url}  pid {member.process.pid}")
            _show(f"PostgreSQL {cluster.database}")
            _show(f"logs       {folder}")
            _show(f"""try        curl {cluster.url}/functions/add -d '{{"x": 1, "y": 2}}'""")
            load = _Load(cluster.url)
            load.start()
            stack.callback(load.end)
            _show("Ctrl-C ends it")
            _watch(cluster, load)
        except KeyboardInterrupt:
            _show("\nending ...")
    _show("everything has ended")
    return 0


def _watch(cluster: Cluster, load: _Load) -> None:
    """Show a line each second: on a terminal always the same one."""
    start = "\r\x1b[K" if sys.stdout.isatty() else ""
    end = "" if sys.stdout.isatty() else "\n"
    began = monotonic()
    while True:
        try:
            states = ", ".join(f"{count} {state}" for state, count in cluster.states().items())
        except psycopg.Error:
            states = "the database does not answer"
        seconds = int(monotonic() - began)
        _show(
            f"{start}{seconds:4} s  {load.calls} calls, {load.failures} failed; tasks: {states}",
            end,
        )
        sleep(1)


if __name__ == "__main__":
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())
