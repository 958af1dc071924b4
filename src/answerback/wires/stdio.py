"""MCP over stdin and stdout, one message a line, without an event loop.

Leader and followers: one thread at a time reads. When it has read what may take long it
lets another thread read on and answers by itself, so that a call is handed to nobody and
many run at once. A loop is started only for the first tool that is `async`.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Coroutine
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import msgspec

from ..mcp.connection import Connection, Job
from ..mcp.engine import Engine
from ..mcp.exchange import current
from ..mcp.messages import (
    INVALID_REQUEST,
    Id,
    Response,
    RpcError,
    error_frame,
    request_frame,
)
from ..paths import paths
from ..runners import in_place
from .stdout import Stdout

if TYPE_CHECKING:
    import asyncio
    from concurrent.futures import Future

    from ..app import App
    from ..seal import Sealer

MAX_MESSAGE = 10 * 1024 * 1024
MAX_THREADS = 64


class Stdio:
    """Serves one client until it closes its end."""

    def __init__(self, app: App, out: Stdout, source: int = 0) -> None:
        self._pipe = _Pipe(out)
        self._lines = _Lines(source)
        self._loop = _Loop()
        engine = Engine(app, paths(app, in_place(self._loop.run)), _sealer)
        self._connection = Connection(app, engine, self._pipe, self._pipe.settle)
        self._reading = threading.Lock()
        self._waiting = 0
        self._threads = 0
        self._ended = threading.Event()
        self._idle = threading.Condition()
        self._busy = 0

    def run(self) -> None:
        """Serve; gives back when the client has closed its end and is answered."""
        self._start_one()
        self._ended.wait()
        with self._idle:
            while self._busy and not self._pipe.is_broken():
                self._idle.wait(0.1)

    def _start_one(self) -> None:
        self._threads += 1
        threading.Thread(target=self._follow, daemon=True).start()

    def _follow(self) -> None:
        while not self._ended.is_set():
            self._waiting += 1
            with self._reading:
                self._waiting -= 1
                job = self._lead()
            if job is not None:
                self._work(job)

    def _lead(self) -> Job | None:
        """Read until there is something to do that may take long."""
        while not self._ended.is_set():
            try:
                line = self._lines.read()
            except RpcError as error:
                self._pipe.send(error_frame(None, error))
                continue
            if line is None:
                self._ended.set()
                return None
            job = self._connection.take(line)
            if job is not None:
                with self._idle:
                    self._busy += 1
                if not self._waiting:
                    self._start_one()
                return job
        return None

    def _work(self, job: Job) -> None:
        try:
            job()
        except BrokenPipeError:
            self._ended.set()
        finally:
            with self._idle:
                self._busy -= 1
                self._idle.notify()


@cache
def _sealer() -> Sealer:
    from ..seal import sealer_from_environment

    return sealer_from_environment()[0]


class _Lines:
    """The lines of a file descriptor, each up to a limit."""

    def __init__(self, source: int) -> None:
        self._source = source
        self._buffer = bytearray()
        self._searched = 0

    def read(self) -> bytes | None:
        """The next line that is not blank, or None at the end; raises RpcError for a huge one."""
        while True:
            end = self._buffer.find(b"\n", self._searched)
            if end < 0:
                if not self._more():
                    return None
                continue
            line = bytes(self._buffer[:end])
            del self._buffer[: end + 1]
            self._searched = 0
            if line.strip():
                return line

    def _more(self) -> bool:
        self._searched = len(self._buffer)
        chunk = os.read(self._source, 65536)
        if chunk:
            self._buffer += chunk
        elif self._buffer:
            # The last line may lack its end.
            self._buffer += b"\n"
            return True
        if len(self._buffer) > MAX_MESSAGE and b"\n" not in chunk:
            self._skip()
            raise RpcError(INVALID_REQUEST, f"Message larger than {MAX_MESSAGE} bytes")
        return bool(chunk)

    def _skip(self) -> None:
        """Drop the rest of a line, without keeping any of it."""
        self._buffer.clear()
        self._searched = 0
        while chunk := os.read(self._source, 65536):
            _, newline, rest = chunk.partition(b"\n")
            if newline:
                self._buffer += rest
                return


class _Pipe:
    """The way to the client: frames whole, one at a time; and its answers to our questions."""

    def __init__(self, out: Stdout) -> None:
        self._out = out
        self._lock = threading.Lock()
        self._asked: dict[Id, Future[msgspec.Raw]] = {}
        self._last = 0

    def send(self, frame: bytes) -> None:
        with self._lock:
            self._out.write(frame + b"\n")

    def hang_up(self) -> None:
        """A pipe is not taken up again."""

    async def ask(self, method: str, params: Any) -> msgspec.Raw:
        """On a thread of its own it waits; on a loop it lets others go on."""
        from concurrent.futures import Future

        answer: Future[msgspec.Raw] = Future()
        with self._lock:
            self._last += 1
            id = f"ask-{self._last}"
            self._asked[id] = answer
        self.send(request_frame(id, method, params))
        try:
            return await _wait(answer)
        finally:
            self._asked.pop(id, None)

    def settle(self, response: Response) -> None:
        answer = self._asked.pop(response.id, None)
        if answer is None:
            return
        if response.result is not None:
            answer.set_result(response.result)
        else:
            answer.set_exception(RpcError(INVALID_REQUEST, bytes(response.error or b"").decode()))

    def is_broken(self) -> bool:
        return self._out.is_broken()


async def _wait(answer: Future[msgspec.Raw]) -> msgspec.Raw:
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return answer.result()
    return await asyncio.wrap_future(answer)


class _Loop:
    """An event loop in a thread, from the first `async` tool on."""

    def run(self, awaited: Coroutine[Any, Any, Any]) -> Any:
        """Run it there, and wait for it here; a cancelled exchange ends it."""
        import asyncio

        task = asyncio.run_coroutine_threadsafe(awaited, self._loop)
        exchange = current()
        if exchange is not None:
            exchange.on_cancel = task.cancel
            if exchange.cancelled:
                task.cancel()
        return task.result()

    @cached_property
    def _loop(self) -> asyncio.AbstractEventLoop:
        import asyncio

        loop = asyncio.new_event_loop()
        threading.Thread(target=loop.run_forever, daemon=True).start()
        return loop
