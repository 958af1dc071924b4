"""Networks in which single members of a cluster are cut off: nothing passes, and nothing is closed.

Each member has a network namespace of its own where these can be made. Elsewhere each reaches
PostgreSQL through a proxy of its own, which stops.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, field
from typing import Protocol

from tests.state.postgres import Postgres
from tests.state.tcp_proxy import Proxy

_INSIDE = "FAULTS_IN_A_NAMESPACE"
_ADDRESSES = "10.231.0"
"""In a network namespace of ours all addresses are free."""
_BRIDGE = "cluster"
_UNSHARE = {
    "root": ["unshare", "--net", "--mount"],
    "user": ["unshare", "--net", "--mount", "--user", "--map-current-user", "--keep-caps"],
}


@dataclass
class Place:
    """Where a member runs, and how it reaches PostgreSQL."""

    address: str = "127.0.0.1"
    prefix: list[str] = field(default_factory=list)
    """What comes before the member's command."""
    flags: list[str] = field(default_factory=list)
    database: tuple[str, int] | None = None
    """The address and port of PostgreSQL; None for its own."""


class Network(Protocol):
    how: str
    """How the network is cut, for people."""

    def place(self, name: str, postgres: Postgres) -> Place:
        """Make the place of a member."""

    def cut(self, name: str) -> None:
        """Let nothing pass between this member and the others."""

    def heal(self, name: str) -> None: ...

    def close(self) -> None: ...


class Namespaces:
    """A namespace for each member, all of which are joined by a bridge."""

    how = "network namespaces"
    address = f"{_ADDRESSES}.1"
    """The address of what does not run in a member's namespace: PostgreSQL and the clients."""

    def __init__(self) -> None:
        self._holders: dict[str, subprocess.Popen[bytes]] = {}
        """The processes that keep the namespaces, by the members' names."""
        _ip("link", "add", _BRIDGE, "type", "bridge")
        _ip("address", "add", f"{self.address}/24", "dev", _BRIDGE)
        _ip("link", "set", _BRIDGE, "up")

    def place(self, name: str, postgres: Postgres) -> Place:
        holds = ["unshare", "--net", "sh", "-c", "echo; exec sleep infinity"]
        holder = self._holders[name] = subprocess.Popen(holds, stdout=subprocess.PIPE)
        assert holder.stdout is not None
        holder.stdout.readline()
        address = f"{_ADDRESSES}.{len(self._holders) + 1}"
        pid = str(holder.pid)
        inside = ["nsenter", "--target", pid, "--net"]
        _ip("link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", pid)
        _ip("link", "set", name, "master", _BRIDGE, "up")
        _ip("address", "add", f"{address}/24", "dev", "eth0", before=inside)
        for device in ("lo", "eth0"):
            _ip("link", "set", device, "up", before=inside)
        flags = ["--host", "0.0.0.0"]
        return Place(address, inside, flags, (self.address, postgres.port))

    def cut(self, name: str) -> None:
        _ip("link", "set", name, "down")

    def heal(self, name: str) -> None:
        _ip("link", "set", name, "up")

    def close(self) -> None:
        for holder in self._holders.values():
            holder.kill()
            holder.communicate()
        _ip("link", "delete", _BRIDGE)


class Proxies:
    """A proxy between each member and PostgreSQL."""

    how = "proxies before PostgreSQL, for want of network namespaces"

    def __init__(self) -> None:
        self._proxies: dict[str, Proxy] = {}

    def place(self, name: str, postgres: Postgres) -> Place:
        proxy = self._proxies[name] = Proxy([postgres.port])
        return Place(database=("127.0.0.1", proxy.port))

    def cut(self, name: str) -> None:
        self._proxies[name].stall()

    def heal(self, name: str) -> None:
        self._proxies[name].resume()

    def close(self) -> None:
        for proxy in self._proxies.values():
            proxy.close()


def new_network() -> Namespaces | Proxies:
    return Namespaces() if _INSIDE in os.environ else Proxies()


def enter_namespaces() -> None:
    """Start this program again in namespaces of its own, if they can be made.

    All that the program makes there ends with it. NETWORK=proxy leaves it where it is.
    """
    if _INSIDE in os.environ:
        _ip("link", "set", "lo", "up")
        return
    if os.environ.get("NETWORK") == "proxy":
        return
    enter = _UNSHARE["root" if os.geteuid() == 0 else "user"]
    tried = [*enter, "ip", "link", "add", _BRIDGE, "type", "bridge"]
    try:
        can_enter = subprocess.run(tried, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        can_enter = False
    if can_enter:
        program = [sys.executable, *sys.orig_argv[1:]]
        os.execvpe(enter[0], [*enter, *program], {**os.environ, _INSIDE: "1"})


def _ip(*arguments: str, before: list[str] | None = None) -> None:
    subprocess.run([*(before or ()), "ip", *arguments], check=True)
