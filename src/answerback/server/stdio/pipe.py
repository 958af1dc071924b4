"""The pipe to the client: lines from stdin, frames to stdout, and the peer of each request."""

from __future__ import annotations

import errno
import os
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import TYPE_CHECKING

import msgspec

from ...calls.runners import ON_LOOP
from ...core.event_loop import running_loop
from ...core.limits import LARGE_BODY
from ...protocol.jsonrpc import (
    INVALID_REQUEST,
    Frame,
    Id,
    Response,
    RpcError,
    error_frame,
    request_frame,
)
from ...protocol.mcp_peer import McpPeer
from ..standard_streams import Stdout

if TYPE_CHECKING:
    from concurrent.futures import Future

    from ...core.json_value import Json

MAX_MESSAGE = 10 * 1024 * 1024
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
MAX_SENDING = 64
"""When this many frames wait for the client, the server stops reading."""
AT_ONCE = 4096
"""A writable pipe takes this many bytes without blocking (PIPE_BUF)."""


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

        Raises RpcError for a huge line, and OSError if the descriptor cannot be read.
        """
        while True:
            end = self._buffer.find(b"\n", self._searched)
            if end < 0:
                if not self._read_more():
                    return None
                continue
            with memoryview(self._buffer) as whole:
                line = bytes(whole[:end])
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
            # The last line may lack its newline.
            self._buffer += b"\n"
            return True
        if len(self._buffer) > MAX_MESSAGE and b"\n" not in chunk:
            self._skip_line()
            raise RpcError(INVALID_REQUEST, f"Message larger than {MAX_MESSAGE} bytes")
        return bool(chunk)

    def _skip_line(self) -> None:
        """Read to the end of a line without keeping it."""
        self._buffer.clear()
        self._searched = 0
        while chunk := self._read_chunk():
            _, newline, rest = chunk.partition(b"\n")
            if newline:
                self._buffer += rest
                return

    def _read_chunk(self) -> bytes:
        while True:
            try:
                chunk = os.read(self._source, 65536)
                if not chunk and self._is_terminal and not os.isatty(self._source):
                    # After a hang-up Linux ends a terminal's input as Ctrl-D does.
                    raise OSError(errno.EIO, os.strerror(errno.EIO))
                return chunk
            except BlockingIOError:
                # Some parents, such as Node, pass a non-blocking pipe.
                import select

                select.select([self._source], [], [])


class Pipe:
    """Reads lines, and sends whole frames, one at a time.

    A sending thread waits while the client does not read. The event loop never does: a frame that
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
        """The frames left by the event loop to the writing thread."""
        self._writer: SimpleQueue[None] | None = None
        self._requests: dict[Id, Future[msgspec.Raw]] = {}
        self._last_request = 0
        self._closed = False

    def send(self, frame: Frame) -> None:
        """Send a frame. Blocks while the client does not read, except on an event loop."""
        if running_loop() is None:
            self._sending.append(None)
            try:
                with self._lock:
                    self._write(frame)
            finally:
                self._sending.pop()
        elif not self._write_at_once(frame):
            self._leave_to_writer(frame)

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
        """Write a frame if that does not block; frames left earlier go first."""
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

    def _leave_to_writer(self, frame: Frame) -> None:
        if self._writer is None:
            self._writer = SimpleQueue()
            threading.Thread(target=self._work, name="answerback-writer", daemon=True).start()
        self._left.append(frame)
        self._writer.put(None)

    def _work(self) -> None:
        assert self._writer is not None
        while True:
            self._writer.get()
            with self._lock:
                self._write(self._left[0])
            # Removed only now, so that no later frame overtakes it.
            self._left.popleft()

    def wait_until_sent(self, give_up: Callable[[], bool]) -> None:
        """Wait until the frames left by the event loop are sent, or *give_up* says so."""
        while self._left and not give_up():
            if self._lock.acquire(timeout=0.1):
                self._lock.release()

    @property
    def unsent(self) -> int:
        """The number of frames waiting for the client to read."""
        return len(self._sending) + len(self._left)

    def read_line(self) -> bytes | None:
        """Return the next line, or None at the end; refuse a line that is too long.

        Raises OSError if stdin cannot be read.
        """
        while True:
            # Stop reading from a client that reads too slowly, so that frames do not pile up.
            while self.unsent > MAX_SENDING:
                with self._lock:
                    pass
            try:
                return self._lines.read()
            except RpcError as error:
                self.send(error_frame(None, error))

    def peer(self) -> McpPeer:
        """Return the peer of a request over this pipe."""
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

        # The call may have stopped waiting meanwhile.
        with suppress(InvalidStateError):
            answer.set_result(response.result)

    def decline_all(self) -> None:
        """Decline open requests: the client has closed its end and answers no more."""
        self._closed = True
        for answer in list(self._requests.values()):
            _decline(answer)

    def is_broken(self) -> bool:
        return self._out.is_broken()


class PipePeer(McpPeer):
    """The peer of a request over stdio."""

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
    """End a wait without an answer, unless it was answered already."""
    from concurrent.futures import InvalidStateError

    from ...tools.elicitation import Declined

    with suppress(InvalidStateError):
        answer.set_exception(Declined(reason))
