"""MCP over stdio: a server for one client, and the pipe that reads lines and sends frames.

A separate thread reads, so messages arrive while calls are running; the main thread just waits.
"""

from __future__ import annotations

import errno
import os
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from queue import SimpleQueue
from time import monotonic
from typing import TYPE_CHECKING

import msgspec

from ..calls.loop_thread import GivenLoop, LoopThread
from ..calls.runners import ON_LOOP, execution_in
from ..calls.runtime import Runtime, TaskStorage
from ..calls.thread_pool import ThreadPool
from ..core.event_loop import running_loop
from ..core.limits import LARGE_BODY
from ..errors import AnswerbackError
from ..protocol.connection import Connection
from ..protocol.engine import Engine
from ..protocol.jsonrpc import (
    INVALID_REQUEST,
    Frame,
    Id,
    Response,
    RpcError,
    error_frame,
    request_frame,
)
from ..protocol.mcp_peer import McpPeer
from ..registry.declarations import Recording, Registry
from .process import Stdout

if TYPE_CHECKING:
    import asyncio
    from concurrent.futures import Future

    from ..core.json_value import Json
    from ..core.signing import Signer
    from ..registry.lifespan import Lifespan, LifespanFailed
MAX_MESSAGE = 10 * 1024 * 1024
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
MAX_SENDING = 64
"""The server stops reading while this many frames are waiting for the client."""
AT_ONCE = 4096
"""A writable pipe accepts this many bytes without blocking (PIPE_BUF)."""
_CANCEL_SECONDS = 1.0
"""Seconds allowed for the `finally` blocks of cancelled calls when a signal stops the server."""


class StdinUnreadable(AnswerbackError):
    code = "STDIN_UNREADABLE"


class StdioServer:
    """Serves one client until it closes its end. *source* is the descriptor to read from.

    *loop* runs coroutines instead of the server's own loop. The other arguments are the same as for
    `Runtime`.
    """

    def __init__(
        self,
        registry: Registry,
        out: Stdout,
        source: int,
        *,
        records: Recording | None = None,
        task_store: TaskStorage | None = None,
        debug: bool = False,
        loop: GivenLoop | None = None,
    ) -> None:
        self._ended = threading.Event()
        self._has_loop = threading.Event()
        """Set once calls may use the event loop: the lifespan is scheduled first."""
        self._out = out
        self._pipe = pipe = Pipe(source, out, self._ended.set)
        self._loop = LoopThread("answerback-loop") if loop is None else loop
        self._is_interrupted = False
        pool = ThreadPool(registry.limits.threads, registry.limits.wait)
        self._runtime = runtime = Runtime(
            registry,
            execution_in(pool, self._loop),
            records=records,
            task_store=task_store,
            debug=debug,
        )
        runtime.development = debug
        runtime.get_loop = self._get_loop
        if task_store is not None:
            from ..tasks.service import task_service

            # Tasks from an earlier run may be waiting.
            task_service(runtime)
        self._connection = Connection(
            registry,
            Engine(runtime, _signer),
            pipe.send,
            pipe.peer,
            pipe.resolve,
            self._post_to_loop,
        )
        self._lifespan = registry.lifespan
        self._lifespan_failure: LifespanFailed | None = None
        self._reading_failure: Exception | None = None

    def interrupt(self) -> None:
        """Stop the server as Ctrl-C would; for a server that is not running in the main thread."""
        self._is_interrupted = True
        self._ended.set()

    def run(self) -> None:
        """Serve until the client has closed its end and all its requests have been answered.

        An exception raised here by a signal cancels the calls, which have a second to finish.
        The lifespan starts while requests are being read, and ends after the last response.
        Raises StdinUnreadable if stdin cannot be read, and LifespanFailed.
        """
        try:
            threading.Thread(target=self._read, name="answerback-reader", daemon=True).start()
            if self._lifespan is not None:
                import asyncio

                asyncio.run_coroutine_threadsafe(self._open(self._lifespan), self._loop.loop)
            self._has_loop.set()
            self._ended.wait()
            if self._is_interrupted:
                raise KeyboardInterrupt
            self._pipe.decline_all()
            self._wait_until_answered(self._out.is_broken)
            self._end_tasks(self._runtime.registry.limits.shutdown)
        except (KeyboardInterrupt, SystemExit):
            self._ended.set()
            self._pipe.decline_all()
            self._connection.cancel_all()
            until = monotonic() + _CANCEL_SECONDS
            self._wait_until_answered(lambda: monotonic() > until)
            self._end_tasks(max(until - monotonic(), 0.0))
            self._end_lifespan()
            raise
        self._end_lifespan()
        if self._lifespan_failure is not None:
            raise self._lifespan_failure
        if (failure := self._reading_failure) is not None:
            raise StdinUnreadable(f"cannot read stdin: {failure}") from failure

    def _read(self) -> None:
        try:
            while not self._ended.is_set() and (line := self._pipe.read_line()) is not None:
                self._connection.receive(line)
        except Exception as exc:  # noqa: BLE001 -- whatever stops the reader ends the server
            self._reading_failure = exc
        self._ended.set()

    def _get_loop(self) -> asyncio.AbstractEventLoop:
        self._has_loop.wait()
        return self._loop.loop

    def _post_to_loop(self, callback: Callable[[asyncio.AbstractEventLoop], object]) -> None:
        self._has_loop.wait()
        self._loop.post(callback)

    def _wait_until_answered(self, give_up: Callable[[], bool]) -> None:
        self._connection.wait_until_answered(give_up)
        self._pipe.wait_until_sent(give_up)

    async def _open(self, lifespan: Lifespan) -> None:
        """Start the lifespan; a failure stops the server, unless it is already stopping."""
        failure = await lifespan.try_to_start(self)
        if failure is not None:
            self._lifespan_failure = failure
            self._ended.set()

    def _end_tasks(self, seconds: float) -> None:
        """Let tasks stored in a file finish; no one could read the results of the others later."""
        tasks = self._runtime.tasks
        if tasks is not None and self._runtime.task_store is not None:
            # A function that blocks the event loop must not keep the process alive.
            with suppress(TimeoutError):
                self._loop.run(tasks.stop(seconds), seconds + _CANCEL_SECONDS)

    def _end_lifespan(self) -> None:
        """Close the lifespan, unless it has failed."""
        lifespan = self._lifespan
        if lifespan is None or self._lifespan_failure is not None:
            return
        try:
            # Extra time, because `try_to_stop` has the same time-out and a better message.
            failure = self._loop.run(lifespan.try_to_stop(self), lifespan.seconds + 2.0)
        except TimeoutError:
            from ..registry.lifespan import LifespanFailed, log_failure

            seconds = lifespan.seconds
            failure = LifespanFailed(f"the lifespan did not end within {seconds:g} seconds")
            log_failure(failure)
        self._lifespan_failure = failure


@cache
def _signer() -> Signer:
    from ..core.signing import signer_from_environment

    return signer_from_environment()[0]


class Pipe:
    """Reads lines, and sends complete frames, one at a time.

    A sending thread blocks until the client reads. The event loop never blocks: a frame that
    cannot be written at once is left to a writing thread.
    """

    def __init__(self, source: int, out: Stdout, on_broken: Callable[[], None]) -> None:
        self._lines = LineReader(source)
        self._out = out
        self._on_broken = on_broken
        self._lock = threading.Lock()
        self._sending: deque[None] = deque()
        """One item per sending thread; a count would need a lock."""
        self._left: deque[Frame] = deque()
        """Frames that the event loop has left to the writing thread."""
        self._writer: SimpleQueue[None] | None = None
        self._requests: dict[Id, Future[msgspec.Raw]] = {}
        self._last_request = 0
        self._closed = False

    def send(self, frame: Frame) -> None:
        """Send a frame. Blocks while the client is not reading, except on an event loop."""
        if running_loop() is None:
            self._sending.append(None)
            try:
                with self._lock:
                    self._write(frame)
            finally:
                self._sending.pop()
        elif not self._write_at_once(frame):
            if self._writer is None:
                self._writer = SimpleQueue()
                threading.Thread(target=self._work, name="answerback-writer", daemon=True).start()
            self._left.append(frame)
            self._writer.put(None)

    def _write(self, frame: Frame) -> None:
        try:
            if isinstance(frame, bytes) and len(frame) < LARGE_BODY:
                self._out.write(frame + b"\n")
            else:
                # Writing the line break by itself is cheaper than copying the frame.
                pieces = (frame,) if isinstance(frame, bytes) else frame
                for piece in (*pieces, b"\n"):
                    self._out.write(piece)
        except OSError:
            self._on_broken()

    def _write_at_once(self, frame: Frame) -> bool:
        """Write a frame if that would not block; frames left over from earlier go first."""
        if self._left or not isinstance(frame, bytes) or len(frame) >= AT_ONCE:
            return False
        if not self._lock.acquire(blocking=False):
            return False
        try:
            if not self._out.is_ready():
                return False
            self._write(frame)
            return True
        finally:
            self._lock.release()

    def _work(self) -> None:
        assert self._writer is not None
        while True:
            self._writer.get()
            with self._lock:
                self._write(self._left[0])
            # Removed only now, so that no later frame overtakes it.
            self._left.popleft()

    def wait_until_sent(self, give_up: Callable[[], bool]) -> None:
        """Wait until the frames left by the event loop are sent, or *give_up* returns True."""
        while self._left and not give_up():
            if self._lock.acquire(timeout=0.1):
                self._lock.release()

    def read_line(self) -> bytes | None:
        """Return the next line, or None at the end; refuse a line that is too long.

        Raises OSError if stdin cannot be read.
        """
        while True:
            # Stop reading from a client that reads too slowly, so that frames do not pile up.
            while len(self._sending) + len(self._left) > MAX_SENDING:
                with self._lock:
                    pass
            try:
                return self._lines.read()
            except RpcError as error:
                self.send(error_frame(None, error))

    def peer(self) -> McpPeer:
        """Return the peer for a request over this pipe."""
        peer = PipePeer()
        peer.pipe = self
        return peer

    def request(self, method: str, params: Json) -> Future[msgspec.Raw]:
        """Send a request to the client; the future receives its result."""
        from concurrent.futures import Future

        answer: Future[msgspec.Raw] = Future()
        with self._lock:
            self._last_request += 1
            id = f"ask-{self._last_request}"
            self._requests[id] = answer
        answer.add_done_callback(lambda _: self._requests.pop(id, None))
        self.send(request_frame(id, method, params))
        if self._closed:
            _decline(answer)
        return answer

    def resolve(self, response: Response) -> None:
        """Pass a client's response to the waiting call."""
        answer = self._requests.pop(response.id, None)
        if answer is None:
            return
        if response.result is None:
            _decline(answer, "The client refused")
            return
        from concurrent.futures import InvalidStateError

        # The call may have stopped waiting by now.
        with suppress(InvalidStateError):
            answer.set_result(response.result)

    def decline_all(self) -> None:
        """Decline open requests: the client has closed its end and will not answer."""
        self._closed = True
        for answer in list(self._requests.values()):
            _decline(answer)


class PipePeer(McpPeer):
    """The peer for a request over stdio."""

    pipe: Pipe

    def send(self, frame: bytes) -> None:
        self.pipe.send(frame)

    async def send_request(self, method: str, params: Json) -> msgspec.Raw:
        await ON_LOOP
        import asyncio

        answer = self.pipe.request(method, params)
        try:
            return await asyncio.wrap_future(answer)
        finally:
            answer.cancel()


def _decline(answer: Future[msgspec.Raw], reason: str = "The client did not answer") -> None:
    """End a wait without an answer, unless one has already arrived."""
    from concurrent.futures import InvalidStateError

    from ..tools.elicitation import Declined

    with suppress(InvalidStateError):
        answer.set_exception(Declined(reason))


class LineReader:
    """Reads lines from a file descriptor, each up to a limit."""

    def __init__(self, source: int) -> None:
        self._source = source
        self._is_terminal = os.isatty(source)
        self._buffer = bytearray()
        self._searched = 0
        self._is_first = True

    def read(self) -> bytes | None:
        """Return the next non-blank line, or None at the end.

        Raises RpcError for a line that is too long, and OSError if the descriptor cannot be read.
        """
        while True:
            end = self._buffer.find(b"\n", self._searched)
            if end < 0:
                if not self._read_more():
                    return None
                continue
            with memoryview(self._buffer) as view:
                line = bytes(view[:end])
            del self._buffer[: end + 1]
            self._searched = 0
            if self._is_first:
                # PowerShell writes a byte-order mark first.
                self._is_first = False
                line = line.removeprefix(BYTE_ORDER_MARK)
            if line.strip():
                return line

    def _read_more(self) -> bool:
        self._searched = len(self._buffer)
        chunk = self._read_chunk()
        if chunk:
            self._buffer += chunk
        elif self._buffer:
            # The last line may lack a newline.
            self._buffer += b"\n"
            return True
        if len(self._buffer) > MAX_MESSAGE and b"\n" not in chunk:
            # Read to the end of the line without keeping it.
            self._buffer.clear()
            self._searched = 0
            while chunk := self._read_chunk():
                _, newline, rest = chunk.partition(b"\n")
                if newline:
                    self._buffer += rest
                    break
            raise RpcError(INVALID_REQUEST, f"Message larger than {MAX_MESSAGE} bytes")
        return bool(chunk)

    def _read_chunk(self) -> bytes:
        while True:
            try:
                chunk = os.read(self._source, 65536)
                if not chunk and self._is_terminal and not os.isatty(self._source):
                    # After a hang-up, Linux ends a terminal's input as Ctrl-D would.
                    raise OSError(errno.EIO, os.strerror(errno.EIO))
                return chunk
            except BlockingIOError:
                # Some parents, such as Node, pass a non-blocking pipe.
                import select

                select.select([self._source], [], [])
