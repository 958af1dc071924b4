"""A program that runs its own App: `python calculator.py COMMAND`, or a console script."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from .program import COMMANDS, LOADING, Program, run_program, write_stderr

if TYPE_CHECKING:
    from ..app import App


def remind_to_run(app_name: str, app: App) -> None:
    """Say what is missing in a program that did nothing with its App."""
    path, command = sys.argv[0], "".join(sys.argv[1:2])
    if not path.endswith(".py") or (command and command not in COMMANDS):
        return
    with suppress(OSError), open(path, "rb") as source:
        if f"{app_name}.run(".encode() in source.read():
            return  # The program ended itself before, for example with sys.exit().
    from .target import module_with

    if module_with(app) is not None:
        return  # The program imports the App of another file, and may use its functions.
    file = os.path.basename(path)
    so_far = ", so nothing was done" if command else ""
    write_stderr(
        f"{file} has an App but does not run it{so_far}; "
        f"add {app_name}.run() at its end, or type: answerback {command or 'list'} {file}"
    )


def run_app(app: App, arguments: Sequence[str] | None = None) -> None:
    """Run `python calculator.py COMMAND …`; exits the process unless the status is 0."""
    if LOADING.get():
        return
    if arguments is None:
        arguments = _own_arguments()
    status = run_program(Program(program_name(sys.argv[0]), app), arguments)
    if status:
        sys.exit(status)


def _own_arguments() -> Sequence[str]:
    """Return the program's arguments; programs that a web server or a host starts need none."""
    if "GATEWAY_INTERFACE" in os.environ:
        # A web server may turn the query string into arguments (RFC 3875), and any client can
        # choose that, so under CGI the arguments are ignored.
        return ("cgi",)
    if len(sys.argv) > 1 or os.isatty(0) or os.isatty(1):
        return sys.argv[1:]
    # Hosts start `python server.py` without arguments, as the servers of other frameworks expect.
    if not _can_send(0):
        write_stderr(
            "no command was given, and no MCP client is on stdin; --help shows the commands"
        )
    return ("mcp",)


def _can_send(fd: int) -> bool:
    """Return whether a host may write to the descriptor; False for /dev/null or a closed one."""
    try:
        return not stat.S_ISCHR(os.fstat(fd).st_mode)
    except OSError:
        return False


def program_name(started: str) -> str:
    """Return how to type the program that runs its own App; *started* is `sys.argv[0]`.

    That is `mytool` for a console script, its path if it is not on the PATH, `python -m tools` or
    `python calculator.py`.
    """
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    if spec is not None:
        return f"python -m {spec.name.removesuffix('.__main__')}"
    if started.endswith(".py") or not os.access(started, os.X_OK):
        return f"python {started}"
    folder, name = os.path.split(os.path.abspath(started))
    is_on_path = folder in os.environ.get("PATH", "").split(os.pathsep)
    return name.removesuffix(".exe") if is_on_path else started
