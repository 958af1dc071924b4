"""A program that runs its own App: `python calculator.py COMMAND`, or a console script."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
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
        if f"{app_name}.run".encode() in source.read():
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
    _say_if_loaded_twice(app)
    if arguments is None:
        arguments = _own_arguments()
    status = run_program(Program(program_name(sys.argv[0]), app), arguments)
    if status:
        sys.exit(status)


async def run_app_async(app: App, arguments: Sequence[str] | None = None) -> None:
    """Run a command in a thread, with its coroutines on the loop that runs.

    A cancelled task ends the server, and so do SIGINT and SIGTERM in the main thread.
    """
    if LOADING.get():
        return
    _say_if_loaded_twice(app)
    import asyncio
    import threading
    from concurrent.futures import Future

    from ..calls.loop_thread import GivenLoop

    loop = asyncio.get_running_loop()
    given = GivenLoop(loop)
    program = Program(program_name(sys.argv[0]), app, given)
    words = _own_arguments() if arguments is None else arguments
    done: Future[int] = Future()

    def run() -> None:
        done.set_running_or_notify_cancel()
        try:
            done.set_result(run_program(program, words))
        except BaseException as exc:  # noqa: BLE001 -- it is raised where the task waits
            done.set_exception(exc)

    # Not a thread of the loop's own pool, which the program's end would wait for.
    thread = threading.Thread(target=run, name="answerback-run", daemon=True)
    ended = asyncio.wrap_future(done)

    def interrupt() -> None:
        if not given.stop():
            ended.cancel()

    with _signals_to(lambda: loop.call_soon_threadsafe(interrupt)) as signalled:
        thread.start()
        try:
            status = await asyncio.shield(ended)
        except asyncio.CancelledError:
            if ended.cancelled():
                sys.exit(128 + signalled[0])
            if given.stop():
                await asyncio.wait((ended,))
            raise
    if status:
        sys.exit(128 + signalled[0] if signalled else status)


def _say_if_loaded_twice(app: App) -> None:
    """Warn of a program that another file imports: Python loads it again, with a second App."""
    main = sys.modules["__main__"]
    path = getattr(main, "__file__", None) or ""
    spec = getattr(main, "__spec__", None)
    name = os.path.basename(path).removesuffix(".py") if spec is None else spec.name
    other = sys.modules.get(name)
    if other is None or other is main or getattr(other, "__file__", None) != os.path.abspath(path):
        return
    if any(type(value) is type(app) and value is not app for value in vars(other).values()):
        write_stderr(
            f"{os.path.basename(path)} was loaded twice, as the program and as the module {name!r} "
            "that another file imports; there are two Apps now, and what that file registers is "
            "missing here: make the App in a file of its own, which both import"
        )


@contextmanager
def _signals_to(stop: Callable[[], object]) -> Iterator[list[int]]:
    """Let SIGINT and SIGTERM call *stop* in the block, and list those that came."""
    import signal
    import threading

    signalled: list[int] = []

    def handle(number: int, frame: object) -> None:
        signalled.append(number)
        stop()

    before = {}
    # Only the main thread may set a handler.
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            before[number] = signal.signal(number, handle)
    try:
        yield signalled
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


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
