"""MCP over stdin and stdout, one message a line, without an event loop.

Leader and followers: one thread at a time reads. When it has read what may take long it
lets another thread read on and answers by itself, so that a call is handed to nobody and
many run at once. A loop is started only for the first tool that is `async`.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, Any

import msgspec

from ...calls.handlers import paths
from ...calls.runners import Runner, in_place
from ...errors import ToolError
from ...mcp.connection import Connection, Job
from ...mcp.engine import Engine, log_fault
from ...mcp.mcp_peer import current
from ...mcp.messages import INVALID_REQUEST, Id, Response, RpcError, error_frame, request_frame
from ...peer import NeedsInput
from ..stdout import Stdout

if TYPE_CHECKING:
    import asyncio
    from concurrent.futures import Future

    from ...app import App
    from ...mcp.signing import Sealer
    from ...tools.tool import Tool

MAX_MESSAGE = 10 * 1024 * 1024
BRIEF = 0.002
"""Seconds that a tool may take with the reading in its hands."""
QUIET = 500
"""So many looks without a call, and nobody looks any more."""
MAX_SENDING = 64
"""With so many answers waiting for the client to read, no more is read from it."""


class Stdio:
    """Serves one client until it closes its end."""

    def __init__(self, app: App, out: Stdout, source: int) -> None:
        self._ended = threading.Event()
        self._pipe = _Pipe(out, self._ended.set)
        self._lines = _Lines(source)
        self._loop = _Loop()
        engine = Engine(app, paths(app, _contained(in_place(self._loop.run))), _sealer)
        self._connection = Connection(app, engine, self._pipe, self._pipe.settle)
        self._reading = threading.Lock()
        self._waiting = 0
        self._brief: set[str] = set()
        """The tools that were brief the last time."""
        self._sentry = _Sentry(self._hand_on)
        self._idle = threading.Condition()
        self._busy = 0

    def run(self) -> None:
        """Serve; gives back when the client has closed its end and is answered."""
        self._start_one()
        self._ended.wait()
        self._pipe.give_up()
        with self._idle:
            while self._busy and not self._pipe.is_broken():
                self._idle.wait(0.1)

    def _start_one(self) -> None:
        threading.Thread(target=self._follow, daemon=True).start()

    def _follow(self) -> None:
        while not self._ended.is_set():
            self._waiting += 1
            self._reading.acquire()
            self._waiting -= 1
            job = self._lead()
            if job is not None:
                self._work(job)

    def _lead(self) -> Job | None:
        """Read until there is something that may take long, then let another one read."""
        while not self._ended.is_set():
            self._pipe.wait_for_reader()
            try:
                line = self._lines.read()
            except RpcError as error:
                self._pipe.send(error_frame(None, error))
                continue
            if line is None:
                self._ended.set()
                break
            job = self._connection.take(line)
            if job is None:
                continue
            # Counted before another one reads on, who may come to the end at once.
            with self._idle:
                self._busy += 1
            if job.name not in self._brief:
                self._hand_on()
                return job
            if not self._sentry.keeps(partial(self._work, job)):
                return None  # It took longer than it used to, and another one reads.
        self._reading.release()
        return None

    def _hand_on(self) -> None:
        self._reading.release()
        if not self._waiting:
            self._start_one()

    def _work(self, job: Job) -> None:
        began = time.perf_counter()
        try:
            job.run()
        except Exception:  # noqa: BLE001 -- a fault of ours ends one answer, not the reading
            log_fault("an answer")
        finally:
            brief = time.perf_counter() - began < BRIEF
            self._brief.add(job.name) if brief and job.name else self._brief.discard(job.name)
            with self._idle:
                self._busy -= 1
                self._idle.notify()


class _Sentry:
    """Lets the reader run what is brief by itself, and looks that it does not take long.

    Handing on wakes a thread, which costs more than most tools do. A tool that was brief the
    last time is run in place; if it is not brief this time, the reading is taken from its thread.
    """

    def __init__(self, hand_on: Callable[[], None]) -> None:
        self._hand_on = hand_on
        self._lock = threading.Lock()
        self._turn = 0
        self._running = False
        self._seen = -1
        self._needed = threading.Event()
        self._started = False

    def keeps(self, work: Callable[[], None]) -> bool:
        """Do the work; whether the thread that did it is still the one to read."""
        if not self._needed.is_set():
            self._wake()
        self._turn += 1
        turn = self._turn
        self._running = True
        work()
        with self._lock:
            kept = self._running and self._turn == turn
            if kept:
                self._running = False
            return kept

    def _wake(self) -> None:
        self._needed.set()
        if not self._started:
            self._started = True
            threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        quiet = 0
        while True:
            time.sleep(BRIEF)
            with self._lock:
                late = self._running and self._turn == self._seen
                quiet = 0 if self._running or self._turn != self._seen else quiet + 1
                self._seen = self._turn
                if late:
                    self._running = False
            if late:
                self._hand_on()
            elif quiet > QUIET:
                # Nobody calls: it sleeps until somebody does.
                self._needed.clear()
                self._needed.wait()
                quiet = 0


@cache
def _sealer() -> Sealer:
    from ...mcp.signing import sealer_from_environment

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

    def __init__(self, out: Stdout, on_broken: Callable[[], None]) -> None:
        self._out = out
        self._on_broken = on_broken
        self._lock = threading.Lock()
        self._sending = 0
        self._asked: dict[Id, Future[msgspec.Raw]] = {}
        self._last = 0
        self._closed = False

    def send(self, frame: bytes) -> None:
        """Blocks while the client does not read; what nobody will read is dropped."""
        self._sending += 1
        try:
            with self._lock:
                self._out.write(frame + b"\n")
        except OSError:
            self._on_broken()
        finally:
            self._sending -= 1

    def wait_for_reader(self) -> None:
        """A client that reads nothing is not read from either: its answers would pile up."""
        while self._sending > MAX_SENDING:
            with self._lock:
                pass

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
        if self._closed:
            _decline(answer)
        try:
            return await _wait(answer)
        finally:
            self._asked.pop(id, None)

    def settle(self, response: Response) -> None:
        answer = self._asked.pop(response.id, None)
        if answer is None:
            return
        if response.result is None:
            _decline(answer)
            return
        from concurrent.futures import InvalidStateError

        # Whoever asked may have given up meanwhile.
        with suppress(InvalidStateError):
            answer.set_result(response.result)

    def give_up(self) -> None:
        """The client will answer no more."""
        self._closed = True
        for answer in list(self._asked.values()):
            _decline(answer)

    def is_broken(self) -> bool:
        return self._out.is_broken()


async def _wait(answer: Future[msgspec.Raw]) -> msgspec.Raw:
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return _wait_here(answer)
    return await asyncio.wrap_future(answer)


def _wait_here(answer: Future[msgspec.Raw]) -> msgspec.Raw:
    exchange = current()
    if exchange is not None:
        exchange.on_cancel = partial(_decline, answer)
        if exchange.cancelled:
            _decline(answer)
    return answer.result()


def _decline(answer: Future[msgspec.Raw]) -> None:
    """There will be no answer; unless there is one already."""
    from concurrent.futures import InvalidStateError

    from ...elicitation import Declined

    with suppress(InvalidStateError):
        answer.set_exception(Declined("The client did not answer"))


def _contained(run: Runner) -> Runner:
    """No signal reaches a call's thread: what would end a program is of the tool's own making."""

    def contained(tool: Tool, kwargs: dict[str, Any]) -> Any:
        try:
            return run(tool, kwargs)
        except BaseException as exc:
            if isinstance(exc, Exception | NeedsInput):
                raise
            raise RuntimeError(f"the tool raised {exc!r}") from exc

    return contained


async def _to_its_end(awaited: Coroutine[Any, Any, Any]) -> Any:
    try:
        return await awaited
    except (SystemExit, KeyboardInterrupt) as exc:
        # They would end the loop, and with it every other call.
        raise RuntimeError(f"the tool raised {exc!r}") from exc


class _Loop:
    """An event loop in a thread, from the first `async` tool on."""

    def run(self, awaited: Coroutine[Any, Any, Any]) -> Any:
        """Run it there, and wait for it here; a cancelled exchange ends it."""
        import asyncio
        from concurrent.futures import CancelledError

        task = asyncio.run_coroutine_threadsafe(_to_its_end(awaited), self._loop)
        exchange = current()
        if exchange is not None:
            exchange.on_cancel = task.cancel
            if exchange.cancelled:
                task.cancel()
        try:
            return task.result()
        except CancelledError:
            if exchange is None or not exchange.cancelled:
                raise
            raise ToolError("The call was cancelled", code="CANCELLED") from None

    @cached_property
    def _loop(self) -> asyncio.AbstractEventLoop:
        import asyncio

        loop = asyncio.new_event_loop()
        threading.Thread(target=loop.run_forever, daemon=True).start()
        return loop
