"""MCP over a child process's stdin and stdout; also its environment, stderr and shutdown."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Protocol, TypeAlias, cast, runtime_checkable

from ..core.limits import LARGE, MAX_BYTES
from ..core.log import logger
from ..core.secrets import mask_command
from ..core.signing import SECRET
from .faults import ConnectError, ConnectionLost
from .frames import Lost, Outgoing, Receiver, Transport

_LOGGER = logger("answerback.client")

# The variables that every child inherits; the first two lists match the official SDK's.
_POSIX = ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER")
_WINDOWS = (
    *("APPDATA", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATH", "PATHEXT", "SYSTEMDRIVE"),
    *("PROCESSOR_ARCHITECTURE", "SYSTEMROOT", "TEMP", "USERNAME", "USERPROFILE"),
)
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY")
_CERTIFICATES = (
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"),
    "NODE_EXTRA_CA_CERTS",
)
_INHERITED = {
    *(_WINDOWS if os.name == "nt" else _POSIX),
    *("LANG", "TZ", "TMPDIR"),
    *_PROXIES,
    *map(str.lower, _PROXIES),
    *_CERTIFICATES,
}


def child_environment(more: Mapping[str, str], *, inherit: bool) -> dict[str, str]:
    """Return the variables that a child inherits from this process, plus *more*."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name != SECRET and (inherit or name in _INHERITED or name.startswith("LC_"))
    }
    return inherited | dict(more)


def windows_program(name: str, env: Mapping[str, str]) -> str:
    """Return the file that a program name refers to on Windows, such as `npx.cmd` for `npx`.

    A name that is not found is returned unchanged. Windows itself only tries `.exe`.
    """
    endings = env.get("PATHEXT", ".COM;.EXE;.BAT;.CMD").lower().split(";")
    if not name.lower().endswith(tuple(endings)):
        folders = [""] if os.path.dirname(name) else env.get("PATH", "").split(os.pathsep)
        for folder in folders:
            for ending in endings:
                file = os.path.join(folder, name + ending)
                if os.path.isfile(file):
                    return file
    return name


_MAX_LINE = 64 * 1024
"""How many bytes of an unterminated line are buffered before it is split."""


@runtime_checkable
class TextStream(Protocol):
    """A text stream, such as `sys.stderr`."""

    def write(self, text: str, /) -> object: ...
    def flush(self) -> object: ...
    def isatty(self) -> bool: ...


StderrOption: TypeAlias = "str | os.PathLike[str] | TextStream | Callable[[str], object]"


def check_stderr(given: object) -> None:
    """Raise TypeError for a value that `stderr=` does not accept."""
    if not isinstance(given, str | os.PathLike | TextStream) and not callable(given):
        text = "should be a file name, a stream such as sys.stderr, or a function"
        raise TypeError(f"stderr={given!r} {text}")


def line_writer(given: StderrOption, server: str) -> Callable[[str], object]:
    """Return a function that writes a line, prefixed with the server's name if there is one."""
    prefix = f"{server}: " if server else ""

    def write(line: str) -> None:
        text = prefix + line
        if isinstance(given, TextStream):
            if given.isatty():
                # A terminal would interpret control characters.
                text = "".join(
                    each
                    if each.isprintable() or each == "\t"
                    else each.encode("unicode_escape").decode()
                    for each in text
                )
            given.write(f"{text}\n")
            given.flush()
        elif callable(given):
            given(text)
        else:
            # It may contain secrets that only this program's user may see.
            file = os.open(given, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            with open(file, "a", encoding="utf-8") as opened:
                opened.write(f"{text}\n")

    return write


class StderrLines:
    """Splits one child's stderr into lines."""

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write: Callable[[str], object] | None = write
        self._rest = b""

    def take(self, data: bytes) -> None:
        *lines, rest = (self._rest + data).split(b"\n")
        if len(rest) > _MAX_LINE:
            lines.append(rest)
            rest = b""
        self._rest = rest
        for line in lines:
            self._give(line)

    def end(self) -> None:
        """Write the last line if it is unterminated."""
        if self._rest:
            self._give(self._rest)
            self._rest = b""

    def _give(self, line: bytes) -> None:
        if self._write is None:
            return
        try:
            self._write(line.decode(errors="replace").rstrip("\r"))
        except Exception:
            self._write = None
            _LOGGER.exception("stderr= failed; it receives no more lines from this server")


_GRACE = 2.0
"""How many seconds a server has to exit after its stdin is closed."""
_LOST_GRACE = 0.1
_TERM_GRACE = 1.0
_READ_BYTES = 64 * 1024
"""The maximum size of one read, and of a pipe on Linux, in bytes."""
_MAX_STDERR = 4000
"""How many bytes of stderr are kept for the log and for error details."""
_MAX_IGNORED = 4 * 1024 * 1024
"""How many bytes from a child are read and discarded after the connection has ended."""
_EDGE = 200
"""How many bytes of an oversized line are kept at each end."""
_MAX_SKIPPED = 1024 * 1024 * 1024
"""How many bytes of a line may be skipped; a longer line ends the connection."""
_SHELL = "/bin/sh"
_SCRIPT = 'read -r group || exit 0; read -r word || kill -s KILL -- "-$group"'
_EXIT_SECONDS = 1.0
"""Seconds to wait for the exit status of a child whose stdout was closed."""


class ChildProcess(Transport):
    """The transport to a server that this process starts as a child, in a new session."""

    can_send_now = True

    def __init__(
        self,
        command: Sequence[str],
        env: Mapping[str, str],
        cwd: str | None,
        stderr: Callable[[str], object] | None,
    ) -> None:
        self._command = list(command)
        self._env = env
        self._cwd = cwd
        self._stderr = stderr
        self._child: _Child | None = None

    async def open(self, receiver: Receiver, lost: Lost) -> None:
        watch = _ChildWatch()
        loop = asyncio.get_running_loop()
        program, *arguments = self._command
        if os.name == "nt":
            program = windows_program(program, self._env)
        lines = None if self._stderr is None else StderrLines(self._stderr)
        child = _Child(receiver, lost, watch, lines)
        try:
            await loop.subprocess_exec(
                lambda: child,
                program,
                *arguments,
                env=self._env,
                cwd=self._cwd,
                # This also starts a process group; uvloop does not support `process_group`.
                start_new_session=True,
            )
        except BaseException as exc:
            watch.close()
            if not isinstance(exc, OSError | ValueError):
                raise
            command = " ".join(mask_command(self._command))
            raise ConnectError(f"cannot start {command!r}: {exc}") from None
        self._child = child

    async def send(self, outgoing: Outgoing) -> None:
        child = self._child
        if child is None:
            raise ConnectionLost("the server process is not running", may_have_run=False)
        if child.is_full:
            await child.turn()
        if not child.write(outgoing.frame):
            await child.loss_reported()
            raise child.loss(may_have_run=False)

    def send_now(self, outgoing: Outgoing) -> bool:
        child = self._child
        return child is not None and not child.is_full and child.write(outgoing.frame)

    async def close(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            await child.close()


class _Child(asyncio.SubprocessProtocol):
    """Reads the child's lines and keeps the end of its stderr."""

    def __init__(
        self, receiver: Receiver, lost: Lost, watch: _ChildWatch, lines: StderrLines | None
    ) -> None:
        self._receiver = receiver
        self._lost = lost
        self._watch = watch
        self._buffer = bytearray()
        self._searched = 0
        self._skipped = 0
        """How many bytes of the buffered line were discarded because it is too large."""
        self._reading: asyncio.Task[None] | None = None
        """Decodes a large line; nothing else is read from the child until it is done."""
        self._ignored = 0
        self._stderr = b""
        self._lines = lines
        self._exited = asyncio.Event()
        self.is_full = False
        """True while the child is not reading its stdin; messages then wait their turn."""
        self._turns: dict[asyncio.Future[None], None] = {}
        self.is_lost = False
        self._report: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._process = cast("asyncio.SubprocessTransport", transport)
        self._watch.begin(self._process.get_pid())
        self._stdin = cast("asyncio.WriteTransport", self._process.get_pipe_transport(0))
        stdout = cast("asyncio.ReadTransport", self._process.get_pipe_transport(1))
        self._stdout = stdout
        if hasattr(stdout, "max_size"):
            # asyncio would allocate 256 KB for each read, however little arrives.
            stdout.max_size = _READ_BYTES
        stdout.set_protocol(_Stdout(stdout.get_protocol(), self._take_stdout))

    def write(self, frame: bytes) -> bool:
        """Write a line; return False if none of it can reach the child."""
        stdin = self._stdin
        if self.is_lost or stdin.is_closing():
            return False
        stdin.write(frame + b"\n")
        # Writing to a pipe without a reader closes it, and the line is dropped.
        return not stdin.is_closing()

    async def loss_reported(self) -> None:
        """Wait until the child's loss has been reported."""
        self.pipe_connection_lost(0, None)
        if self._report is not None:
            await asyncio.wait({self._report})

    async def turn(self) -> None:
        """Wait until the child is reading again; a message cancelled before then is not sent."""
        turn = asyncio.get_running_loop().create_future()
        # In a dict, because thousands of waiters may be cancelled at once.
        self._turns[turn] = None
        try:
            await turn
        finally:
            self._turns.pop(turn, None)

    def pause_writing(self) -> None:
        self.is_full = True

    def resume_writing(self) -> None:
        self.is_full = False
        for turn in self._turns:
            if not turn.done():
                turn.set_result(None)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 2:
            self._stderr = (self._stderr + data)[-_MAX_STDERR:]
            if self._lines is not None:
                self._lines.take(data)
        else:
            self._take_stdout(data)

    def _take_stdout(self, data: bytes) -> None:
        if self.is_lost:
            self._ignored += len(data)
            if self._ignored > _MAX_IGNORED:
                # The server is still sending after the connection has ended.
                self._stdout.pause_reading()
            return
        if not self._buffer and data.find(b"\n") == len(data) - 1:
            # Usually, exactly one complete line arrives.
            if line := data.strip():
                self._receiver.receive(line)
            return
        self._buffer += data
        self._take_lines()

    def _take_lines(self) -> None:
        """Receive the buffered lines; lines after a large one wait until it has been received."""
        buffer = self._buffer
        while self._reading is None and (end := buffer.find(b"\n", self._searched)) >= 0:
            with memoryview(buffer) as view:
                line = bytes(view[:end])
            del buffer[: end + 1]
            is_cut, self._skipped, self._searched = self._skipped > 0, 0, 0
            if is_cut:
                self._receiver.receive_cut(line)
            elif len(line) > LARGE:
                self._stdout.pause_reading()
                self._reading = asyncio.get_running_loop().create_task(self._take_large(line))
            elif line.strip():
                self._receiver.receive(line)
        if self._reading is None:
            self._searched = len(buffer)
            if self._searched > MAX_BYTES or self._skipped:
                # Keep only the edges of an oversized line; one of them contains the message's id.
                del buffer[_EDGE:-_EDGE]
                self._skipped += self._searched - len(buffer)
                self._searched = len(buffer)
                if self._skipped > _MAX_SKIPPED:
                    buffer.clear()
                    self._lose(self.loss("the server sent a message that is too large"))

    async def _take_large(self, line: bytes) -> None:
        try:
            await self._receiver.receive_large(line)
        finally:
            self._reading = None
        if not self.is_lost:
            self._take_lines()
            if self._reading is None:
                self._stdout.resume_reading()

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if fd == 0:
            self.resume_writing()
        elif fd == 2 and self._lines is not None:
            self._lines.end()
        if fd in (0, 1) and self._report is None and not self.is_lost:
            self._report = asyncio.get_running_loop().create_task(self._report_loss())

    def process_exited(self) -> None:
        # Do this immediately, because the group's number may be reused later.
        self._watch.close()
        self._exited.set()

    async def _report_loss(self) -> None:
        """Wait a moment for the exit status and the last lines of stderr, then report the loss."""
        await self._exits_within(_EXIT_SECONDS)
        self._lose(self.loss())

    def _lose(self, error: ConnectionLost) -> None:
        if not self.is_lost:
            self.is_lost = True
            self._lost(error)

    def loss(self, text: str = "", *, may_have_run: bool = True) -> ConnectionLost:
        """Return the error for a lost child, with its stderr in the details, not the message."""
        words = self._stderr.decode(errors="replace").strip()
        details = {"stderr": words} if words else {}
        if not text:
            status = self._process.get_returncode()
            if status is None:
                text = "the server process closed its stdin or stdout"
            elif status < 0:
                name = next((each.name for each in signal.Signals if each == -status), -status)
                text = f"the server process was killed by signal {name}"
            else:
                text = f"the server process ended with exit status {status}"
        return ConnectionLost(text, may_have_run=may_have_run, details=details)

    async def close(self) -> None:
        """Close stdin, wait, then end the whole process group, with increasing force."""
        # A child whose pipe broke gets less time, because its output is no longer read.
        grace = _LOST_GRACE if self.is_lost else _GRACE
        self.is_lost = True
        for task in (self._report, self._reading):
            if task is not None:
                task.cancel()
        try:
            self._stdin.close()
            if not await self._exits_within(grace):
                self._watch.end_group(signal.SIGTERM)
                await self._exits_within(_TERM_GRACE)
        finally:
            # Also kills descendants that the child left behind.
            self._watch.close()
            if not self._exited.is_set():
                with suppress(ProcessLookupError):
                    if os.name == "posix":
                        # asyncio's `kill` would reap the exit status before asyncio's own
                        # watcher sees it.
                        os.kill(self._process.get_pid(), signal.SIGKILL)
                    else:
                        self._process.kill()
            try:
                await self._exits_within(_TERM_GRACE)
            finally:
                self._process.close()

    async def _exits_within(self, seconds: float) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._exited.wait()
        return self._exited.is_set()


class _ChildWatch:
    """Ends a child and its descendants when this process dies, however that happens.

    A shell reads from a pipe whose other end only this process holds. If the pipe closes without a
    message, this process was killed, and the shell kills the child's process group. Without a
    shell, as on Windows, this does nothing.
    """

    def __init__(self) -> None:
        self._shell: subprocess.Popen[bytes] | None = None
        self._group: int | None = None
        if os.name == "posix" and os.access(_SHELL, os.X_OK):
            self._shell = subprocess.Popen(
                [_SHELL, "-c", _SCRIPT],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                # Ctrl-C in a terminal must not end the shell before the child.
                start_new_session=True,
                bufsize=0,
            )

    def begin(self, pid: int) -> None:
        """Watch the child *pid*, which is the leader of its process group."""
        self._group = pid
        if self._shell is not None and self._shell.stdin is not None:
            with suppress(OSError):
                self._shell.stdin.write(b"%d\n" % pid)

    def end_group(self, number: int) -> None:
        """Send a signal to the child and its descendants; on Windows, end them."""
        if self._group is None:
            return
        if os.name == "nt":
            # A `.cmd` file runs in a shell, and ending only that would leave the server running.
            command = ["taskkill", "/T", "/F", "/PID", str(self._group)]
            subprocess.run(command, capture_output=True, check=False)
            return
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._group, number)

    def close(self) -> None:
        """Kill the rest of the group and end the shell."""
        if os.name == "posix":
            self.end_group(signal.SIGKILL)
        has_begun, self._group = self._group is not None, None
        shell, self._shell = self._shell, None
        if shell is not None:
            # The shell exits immediately, because it has now read both lines.
            shell.communicate(b"done\n" if has_begun else b"0\ndone\n")


class _Stdout(asyncio.Protocol):
    """Passes stdout's bytes to *take* immediately, not one event loop iteration later."""

    def __init__(self, given: asyncio.BaseProtocol, take: Callable[[bytes], None]) -> None:
        self._given = given
        self._take = take

    def data_received(self, data: bytes) -> None:
        self._take(data)

    def connection_lost(self, exc: Exception | None) -> None:
        # The event loop's protocol counts the pipes that are still open.
        self._given.connection_lost(exc)
