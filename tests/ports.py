"""Ports for programs that cannot choose one themselves; ours listen on port 0 and print theirs."""

from __future__ import annotations

import re
import socket
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from random import SystemRandom
from time import monotonic, sleep
from typing import Any, NamedTuple

_SYSTEM_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_SECONDS = 60
_TRIES = 20


def free_port() -> int:
    """Return a port of this machine that no server listens on.

    It is below those that the system gives to connections, so none of them takes it meanwhile.
    """
    end = int(_SYSTEM_RANGE.read_text().split()[0]) if _SYSTEM_RANGE.exists() else 32_768
    # Some containers give every port to connections.
    ports = range(10_000, end if end > 11_000 else 32_000)
    while True:
        # Not the generator that tests seed: all workers would try the same ports.
        port = SystemRandom().choice(ports)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


def says_taken(text: str) -> bool:
    """Whether a program says that another one listens on its port."""
    return re.search(r"already in use|connection in use|EADDRINUSE", text, re.I) is not None


class NotStarted(Exception):
    """A program ended, or does not listen."""


class Listening(NamedTuple):
    """A program that accepts connections."""

    process: subprocess.Popen[bytes]
    port: int


@contextmanager
def listening(
    command: Callable[[int], Sequence[str | Path]], log: Path, **options: Any
) -> Iterator[Listening]:
    """Run a program that must be told its port, and wait until it accepts connections.

    *command* gets a port and returns the words; it gets another one if the program says in *log*
    that the port is taken.
    """
    for _ in range(_TRIES):
        port = free_port()
        with log.open("wb") as output:
            process = subprocess.Popen(command(port), stdout=output, stderr=output, **options)
        try:
            if _accepts(process, port, log):
                yield Listening(process, port)
                return
        finally:
            process.terminate()
            try:
                process.wait(_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
    raise NotStarted(f"it says of {_TRIES} ports that each is taken; see {log}")


def _accepts(process: subprocess.Popen[bytes], port: int, log: Path) -> bool:
    """Wait until the program accepts connections; false if its port is taken."""
    end = monotonic() + _SECONDS
    while process.poll() is None:
        with suppress(OSError):
            socket.create_connection(("127.0.0.1", port), 1).close()
            return True
        if monotonic() > end:
            raise NotStarted(f"nothing listens on port {port} after {_SECONDS} seconds; see {log}")
        sleep(0.02)
    said = log.read_text(errors="replace")
    if not says_taken(said):
        last = " ".join(said.strip().splitlines()[-5:])
        raise NotStarted(f"it ended with the status {process.returncode}: {last}")
    return False
