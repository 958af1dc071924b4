"""Runs programs as `python PROGRAM` does, each in a process forked from one with Answerback loaded.

`run` is for tests of output and exit statuses: an interpreter that loads everything anew takes
five times as long. A test of what is loaded, or of how a process starts, starts one itself.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

SERVER = Path(__file__).with_name("fork_server.py")
MAX_MESSAGE = 100_000
READ_AT_START = ("PYTHON", "LC_", "LANG", "TZ")
NOT_INHERITED = {"PYTHONUNBUFFERED"}
"""The output is in buffers, as in a process of users: what is not flushed is not printed."""


def run(
    arguments: Sequence[str],
    *,
    input: bytes = b"",
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    timeout: float = 60,
    loaded: str = "answerback",
) -> subprocess.CompletedProcess[bytes]:
    """Run `python ARGUMENTS`, with pipes for its streams; ARGUMENTS may begin with `-m`.

    The module *loaded* is loaded before the fork.
    """
    inherited = {key: os.environ[key] for key in os.environ if key not in NOT_INHERITED}
    given = os.environ if env is None else env
    environ = {key: given[key] for key in given if key not in NOT_INHERITED}
    program = {"arguments": list(arguments), "environ": environ, "cwd": str(cwd or os.getcwd())}
    message = json.dumps(program).encode()
    if len(message) > MAX_MESSAGE or _at_start(environ) != _at_start(inherited):
        command = [sys.executable, *arguments]
        return subprocess.run(
            command, input=input, env=environ, cwd=cwd, capture_output=True, timeout=timeout
        )
    return _run_forked(_channel(loaded), message, input, timeout)


def _at_start(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that an interpreter reads only as it starts."""
    return {key: environ[key] for key in environ if key.startswith(READ_AT_START)}


def _run_forked(
    channel: socket.socket, message: bytes, input: bytes, timeout: float
) -> subprocess.CompletedProcess[bytes]:
    (stdin, typed), (printed, stdout), (logged, stderr) = os.pipe(), os.pipe(), os.pipe()
    socket.send_fds(channel, [message], [stdin, stdout, stderr])
    for fd in (stdin, stdout, stderr):
        os.close(fd)
    child = int(channel.recv(100))
    with ThreadPoolExecutor(3) as pool:
        pool.submit(_write, typed, input)
        output, errors = pool.submit(_read, printed), pool.submit(_read, logged)
        try:
            found = output.result(timeout), errors.result(timeout)
        except TimeoutError:
            os.kill(child, signal.SIGKILL)
            raise
        finally:
            status = int(channel.recv(100))
    return subprocess.CompletedProcess([], status, *found)


def _write(fd: int, data: bytes) -> None:
    try:
        with open(fd, "wb") as pipe:
            pipe.write(data)
    except BrokenPipeError:
        pass  # The program does not read all of its input.


def _read(fd: int) -> bytes:
    with open(fd, "rb") as pipe:
        return pipe.read()


@cache
def _channel(loaded: str) -> socket.socket:
    """The connection to a server of this process, which ends when the connection is closed."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        server = subprocess.Popen(
            [sys.executable, str(SERVER), str(theirs.fileno()), loaded],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            env={key: os.environ[key] for key in os.environ if key not in NOT_INHERITED},
        )
    atexit.register(server.wait, 60)
    atexit.register(ours.close)
    return ours
