"""MCP over stdio: a server for one client, its input, and its output.

The main thread reads the first message. If that needs no event loop, as `initialize` does not, the
main thread answers it: a client waits for this response, and importing asyncio takes as long as
the rest of the start. From then on everything runs on an event loop in its own thread, as over
HTTP, and the main thread only waits for the end or for a signal. So a tool that blocks the loop
delays other messages, but not the end of the process.
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

from ..calls.call import Call
from ..calls.loop_thread import GivenLoop, LoopThread
from ..calls.runners import execution_in
from ..calls.runtime import Runtime, TaskStorage
from ..calls.thread_pool import OUR_THREADS, ThreadPool
from ..core.event_loop import spawn
from ..core.limits import LARGE_BODY
from ..core.log import logger
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
from ..tools.current_call import CURRENT
from .process import Stdout

if TYPE_CHECKING:
    import asyncio

    from ..core.json_value import Json
    from ..core.signing import Signer
    from ..registry.lifespan import Lifespan, LifespanFailed
MAX_MESSAGE = 10 * 1024 * 1024
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
MAX_SENDING = 64
"""The server stops reading while more frames than this are waiting for the client."""
AT_ONCE = 4096
"""A writable pipe accepts this many bytes without blocking (PIPE_BUF)."""
_CANCEL_SECONDS = 1.0
"""Seconds allowed for the `finally` blocks of cancelled calls when a signal stops the server."""
_LOOK_SECONDS = 0.5
"""How often the main thread looks up. A signal that arrives just before a wait does not end it."""


class StdinUnreadable(AnswerbackError):
    code = "STDIN_UNREADABLE"


class StdioServer:
    """Serves one client until it closes its end. *source* is the descriptor to read from.

    *loop* runs everything instead of the server's own loop. The other arguments are the same as for
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
        self._out = out
        self._input = LineInput(source, self._receive, self._refuse, self._ended.set)
        self._output = output = FrameOutput(out, self._ended.set, self._resume)
        self._loop = LoopThread("answerback-loop") if loop is None else loop
        self._is_interrupted = False
        self._pool = ThreadPool(registry.limits.threads, registry.limits.wait)
        self._runtime = runtime = Runtime(
            registry,
            execution_in(self._pool, ThreadPool(OUR_THREADS)),
            records=records,
            task_store=task_store,
            debug=debug,
        )
        runtime.development = debug
        self._connection = Connection(
            registry, Engine(runtime, _signer), output.send, output.peer, output.resolve
        )
        self._lifespan = registry.lifespan
        self._opening: set[asyncio.Task[None]] = set()
        self._lifespan_failure: LifespanFailed | None = None
        self._starts_now = not (loop is None and task_store is None and registry.lifespan is None)
        """Whether the loop is needed even if the client sends nothing."""

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
        _SERVING.add(self)
        try:
            if self._starts_now or self._answer_first_message():
                self._run_on_loop()
        finally:
            _SERVING.discard(self)
        if self._lifespan_failure is not None:
            raise self._lifespan_failure
        if (failure := self._input.failure) is not None:
            raise StdinUnreadable(f"cannot read stdin: {failure}") from failure

    def leave_client(self) -> None:
        """Leave the client to the parent process: this is a child that a tool has forked."""
        self._input.detach()
        self._out.detach()

    def _answer_first_message(self) -> bool:
        """Answer the first message if that needs no loop; return False if there is none."""
        line = self._input.read_first()
        if line is None:
            return False
        if not self._connection.receive_without_loop(line):
            self._input.put_back(line)
        return True

    def _run_on_loop(self) -> None:
        loop = self._loop.loop
        try:
            if self._runtime.task_store is not None:
                self._loop.run(self._start_tasks())
            loop.call_soon_threadsafe(self._begin)
            # A blocked loop does not notice that the client is gone.
            while not self._ended.wait(_LOOK_SECONDS) and not self._out.is_broken():
                pass
            if self._is_interrupted:
                raise KeyboardInterrupt
            loop.call_soon_threadsafe(self._output.decline_all)
            self._wait_until_answered(self._out.is_broken)
            self._end_tasks(self._runtime.registry.limits.shutdown)
        except (KeyboardInterrupt, SystemExit):
            until = monotonic() + _CANCEL_SECONDS
            loop.call_soon_threadsafe(self._cancel_all)
            self._wait_until_answered(lambda: monotonic() > until)
            self._end_tasks(max(until - monotonic(), 0.0))
            self._end_lifespan()
            raise
        self._end_lifespan()

    async def _start_tasks(self) -> None:
        """Run the tasks that are waiting since an earlier run."""
        from ..tasks.service import task_service

        task_service(self._runtime)

    def _begin(self) -> None:
        """Take over from the main thread, on the loop."""
        self._connection.loop = self._loop.loop
        self._output.loop_thread = threading.get_ident()
        if self._lifespan is not None:
            spawn(self._open(self._lifespan), self._opening)
        self._input.start(self._loop.loop)

    def _receive(self, line: bytes) -> bool:
        """Receive a line; return False if the client must read before the next one."""
        self._connection.receive(line)
        return self._output.has_room()

    def _refuse(self, error: RpcError) -> None:
        self._output.send(error_frame(None, error))

    def _resume(self) -> None:
        """Receive more lines, because the client has read; called from the writing thread."""
        self._loop.loop.call_soon_threadsafe(self._input.resume)

    def _cancel_all(self) -> None:
        self._input.stop()
        self._output.decline_all()
        calls = [context.get(CURRENT) for context in self._pool.running_contexts()]
        self._connection.cancel_all({call.peer for call in calls if isinstance(call, Call)})

    def _wait_until_answered(self, give_up: Callable[[], bool]) -> None:
        """Wait until every message is answered and sent, or *give_up* returns True."""
        import asyncio
        from concurrent.futures import wait

        answered = asyncio.run_coroutine_threadsafe(
            self._connection.wait_until_answered(), self._loop.loop
        )
        while not (answered.done() or give_up()):
            wait([answered], 0.1)
        self._output.wait_until_sent(give_up)

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
            self._loop.run(_nothing(), _CANCEL_SECONDS)
        except TimeoutError:
            logger().warning("a tool is blocking the event loop, so the lifespan was not closed")
            return
        try:
            # Extra time, because `try_to_stop` has the same timeout and a better message.
            failure = self._loop.run(lifespan.try_to_stop(self), lifespan.seconds + 2.0)
        except TimeoutError:
            from ..registry.lifespan import LifespanFailed, log_failure

            seconds = lifespan.seconds
            failure = LifespanFailed(f"the lifespan did not end within {seconds:g} seconds")
            log_failure(failure)
        self._lifespan_failure = failure


async def _nothing() -> None: ...


_SERVING: set[StdioServer] = set()


def _leave_clients() -> None:
    for server in _SERVING:
        server.leave_client()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_clients)


@cache
def _signer() -> Signer:
    from ..core.signing import signer_from_environment

    return signer_from_environment()[0]


class FrameOutput:
    """Sends complete frames, one at a time, and the server's requests to the client.

    A thread that sends a frame blocks until the client reads. The event loop never blocks: a frame
    that cannot be written at once is left to a writing thread. That thread calls *on_room* when the
    client has read, if `has_room` returned False before.
    """

    def __init__(
        self, out: Stdout, on_broken: Callable[[], None], on_room: Callable[[], None]
    ) -> None:
        self._out = out
        self._on_broken = on_broken
        self._on_room = on_room
        self.loop_thread: int | None = None
        """The event loop's thread, once the loop is running."""
        self._lock = threading.Lock()
        self._left: deque[Frame] = deque()
        """Frames that the event loop has left to the writing thread."""
        self._is_awaited = False
        """Whether `has_room` returned False."""
        self._writer: SimpleQueue[None] | None = None
        self._requests: dict[Id, asyncio.Future[msgspec.Raw]] = {}
        self._last_request = 0
        self._closed = False

    def send(self, frame: Frame) -> None:
        """Send a frame. Blocks while the client is not reading, except on the event loop."""
        if threading.get_ident() != self.loop_thread:
            with self._lock:
                self._write(frame)
        elif not self._write_at_once(frame):
            if self._writer is None:
                self._writer = SimpleQueue()
                threading.Thread(target=self._work, name="answerback-writer", daemon=True).start()
            self._left.append(frame)
            self._writer.put(None)

    def has_room(self) -> bool:
        """Return whether few frames are waiting; otherwise, *on_room* is called later."""
        if len(self._left) <= MAX_SENDING:
            return True
        self._is_awaited = True
        # Looked up again: the writing thread may have just missed the flag.
        return len(self._left) <= MAX_SENDING

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
            return self._out.write_if_ready(frame + b"\n")
        except OSError:
            self._on_broken()
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
            if self._is_awaited and len(self._left) <= MAX_SENDING:
                self._is_awaited = False
                self._on_room()

    def wait_until_sent(self, give_up: Callable[[], bool]) -> None:
        """Wait until the frames left by the event loop are sent, or *give_up* returns True."""
        while self._left and not give_up():
            if self._lock.acquire(timeout=0.1):
                self._lock.release()

    def peer(self) -> McpPeer:
        """Return the peer for a request of this client."""
        peer = StdioPeer()
        peer.output = self
        return peer

    async def request(self, method: str, params: Json) -> msgspec.Raw:
        """Send a request to the client and wait for its result."""
        import asyncio

        answer: asyncio.Future[msgspec.Raw] = asyncio.get_running_loop().create_future()
        self._last_request += 1
        id = f"ask-{self._last_request}"
        self._requests[id] = answer
        try:
            self.send(request_frame(id, method, params))
            if self._closed:
                _decline(answer)
            return await answer
        finally:
            self._requests.pop(id, None)

    def resolve(self, response: Response) -> None:
        """Pass a client's response to the waiting call."""
        answer = self._requests.get(response.id)
        if answer is None or answer.done():
            return
        if response.result is None:
            _decline(answer, "The client refused")
        else:
            answer.set_result(response.result)

    def decline_all(self) -> None:
        """Decline open requests: the client has closed its end and will not answer."""
        self._closed = True
        for answer in self._requests.values():
            _decline(answer)


def _decline(
    answer: asyncio.Future[msgspec.Raw], reason: str = "The client did not answer"
) -> None:
    """End a wait without an answer, unless one has already arrived."""
    from ..tools.elicitation import Declined

    if not answer.done():
        answer.set_exception(Declined(reason))


class StdioPeer(McpPeer):
    """The peer for a request over stdio."""

    output: FrameOutput

    def send(self, frame: bytes) -> None:
        self.output.send(frame)

    async def send_request(self, method: str, params: Json) -> msgspec.Raw:
        return await self.output.request(method, params)


class LineInput:
    """Reads lines: the first one in a thread that may block, the others on an event loop.

    *receive* gets each line, and returns False if no more lines may be read until `resume` is
    called. *refuse* gets the error of a line that is too long, and *end* is called at the end.
    """

    def __init__(
        self,
        source: int,
        receive: Callable[[bytes], bool],
        refuse: Callable[[RpcError], None],
        end: Callable[[], None],
    ) -> None:
        self.failure: OSError | None = None
        """Why stdin cannot be read."""
        self._source = source
        self._is_terminal = os.isatty(source)
        self._receive = receive
        self._refuse = refuse
        self._end = end
        self._lines = Lines()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_watched = False
        """Whether the loop watches the descriptor."""
        self._wanted: threading.Semaphore | None = None
        """Lets the reading thread read once, if the loop cannot watch the descriptor."""
        self._is_stopped = False

    def read_first(self) -> bytes | None:
        """Wait for the first line and return it; None at the end."""
        while True:
            try:
                line = self._lines.next()
            except RpcError as error:
                self._refuse(error)
                continue
            if line is not None or self._lines.has_ended:
                return line
            if os.name != "nt":  # There, only sockets can be waited for.
                import select

                while not select.select([self._source], [], [], _LOOK_SECONDS)[0]:
                    pass
            with suppress(BlockingIOError):
                self._lines.feed(self._read())

    def put_back(self, line: bytes) -> None:
        """Let the loop receive the first line."""
        self._lines.put_back(line)

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Read on *loop* from now on."""
        self._loop = loop
        self.resume()

    def resume(self) -> None:
        """Receive the lines already read, then read on."""
        while not self._is_stopped:
            try:
                line = self._lines.next()
            except RpcError as error:
                self._refuse(error)
                continue
            if line is None:
                break
            if not self._receive(line):
                self._unwatch()
                return
        if self._is_stopped:
            return
        if self._lines.has_ended:
            self.stop()
            self._end()
        elif self._wanted is not None:
            self._wanted.release()
        elif not self._is_watched:
            self._watch()

    def stop(self) -> None:
        """Read no more."""
        self._is_stopped = True
        self._unwatch()

    def detach(self) -> None:
        """Read from an empty file from now on."""
        empty = os.open(os.devnull, os.O_RDONLY)
        os.dup2(empty, self._source, inheritable=False)
        os.close(empty)

    def _watch(self) -> None:
        """Let the loop watch the descriptor; if it cannot, let a thread read."""
        import asyncio

        assert self._loop is not None
        # Windows can only watch sockets. uvloop would make the descriptor non-blocking, and the
        # parent process or stdout may share it.
        if os.name != "nt" and isinstance(self._loop, asyncio.SelectorEventLoop):
            # epoll refuses regular files and /dev/null.
            with suppress(PermissionError):
                self._loop.add_reader(self._source, self._on_readable)
                self._is_watched = True
                return
        self._wanted = threading.Semaphore(1)
        threading.Thread(target=self._read_in_thread, name="answerback-reader", daemon=True).start()

    def _unwatch(self) -> None:
        if self._is_watched:
            assert self._loop is not None
            self._loop.remove_reader(self._source)
            self._is_watched = False

    def _on_readable(self) -> None:
        try:
            chunk = self._read()
        except BlockingIOError:
            return  # Some parents, such as Node, pass a non-blocking pipe.
        self._feed(chunk)

    def _read_in_thread(self) -> None:
        assert self._loop is not None
        assert self._wanted is not None
        chunk = b" "
        while chunk:
            self._wanted.acquire()
            chunk = self._read()
            self._loop.call_soon_threadsafe(self._feed, chunk)

    def _feed(self, chunk: bytes) -> None:
        self._lines.feed(chunk)
        self.resume()

    def _read(self) -> bytes:
        """Return the next bytes; none at the end. Raises BlockingIOError if there are none yet."""
        try:
            chunk = os.read(self._source, 65536)
            if not chunk and self._is_terminal and not os.isatty(self._source):
                # After a hang-up, Linux ends a terminal's input as Ctrl-D would.
                raise OSError(errno.EIO, os.strerror(errno.EIO))
        except BlockingIOError:
            raise
        except OSError as exc:
            self.failure = exc
            return b""
        return chunk


class Lines:
    """Splits bytes into lines, each up to a limit."""

    def __init__(self) -> None:
        self.has_ended = False
        self._buffer = bytearray()
        self._searched = 0
        self._is_first = True
        self._is_skipping = False
        """Whether the line that is being read is too long."""

    def feed(self, chunk: bytes) -> None:
        """Add the bytes that were read; none at the end."""
        if not chunk:
            self.has_ended = True
            # The last line may lack a newline.
            chunk = b"\n"
        if self._is_skipping:
            _, newline, chunk = chunk.partition(b"\n")
            self._is_skipping = not newline
        self._buffer += chunk

    def put_back(self, line: bytes) -> None:
        self._buffer[:0] = line + b"\n"

    def next(self) -> bytes | None:
        """Return the next non-blank line, or None if it is not complete yet.

        Raises RpcError for a line that is too long.
        """
        while True:
            end = self._buffer.find(b"\n", self._searched)
            if end < 0:
                self._searched = len(self._buffer)
                if self._searched <= MAX_MESSAGE:
                    return None
                self._buffer.clear()
                self._searched = 0
                self._is_skipping = True
                raise RpcError(INVALID_REQUEST, f"Message larger than {MAX_MESSAGE} bytes")
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
