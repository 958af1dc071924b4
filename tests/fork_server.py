"""Forks a process for each program that `forked.py` sends. It imports little, as programs do."""

from __future__ import annotations

import importlib
import json
import os
import socket
import sys
import types
from typing import Any

MAX_MESSAGE = 100_000
# What programs load that call a tool or check replies. Nothing here imports asyncio or logging.
LOADED = ("answerback.app", "answerback.server.cgi", "answerback.cli.call", "answerback.cli.lint")


def _next_program(channel: socket.socket) -> dict[str, Any]:
    """Fork for each program; returns in the process that is to run it."""
    while True:
        message, fds, _, _ = socket.recv_fds(channel, MAX_MESSAGE, 3)
        if not message:
            sys.exit()
        child = os.fork()
        if child == 0:
            channel.close()
            for place, fd in enumerate(fds):
                os.dup2(fd, place)
                os.close(fd)
            program: dict[str, Any] = json.loads(message)
            return program
        for fd in fds:
            os.close(fd)
        channel.send(str(child).encode())
        _, status = os.waitpid(child, 0)
        channel.send(str(os.waitstatus_to_exitcode(status)).encode())


def _become(program: dict[str, Any]) -> None:
    os.chdir(program["cwd"])
    os.environ.clear()
    os.environ.update(program["environ"])
    arguments = program["arguments"]
    if arguments[0] == "-m":
        import runpy

        sys.path[0], sys.argv = program["cwd"], arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        return
    path = arguments[0]
    sys.path[0], sys.argv = os.path.dirname(os.path.abspath(path)), arguments
    module = types.ModuleType("__main__")
    module.__file__ = path
    sys.modules["__main__"] = module
    with open(path, "rb") as file:
        source = file.read()
    exec(compile(source, path, "exec"), vars(module))


if __name__ == "__main__":
    for name in (*LOADED, sys.argv[2]):
        importlib.import_module(name)
    _become(_next_program(socket.socket(fileno=int(sys.argv[1]))))
