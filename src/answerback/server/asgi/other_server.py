"""Finds out what other ASGI servers do not report: disconnects, workers, shutdown."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any, TypeAlias

from ...core.log import logger
from .in_flight import TICK
from .request import Receive
from .sse import disconnected

_Handler: TypeAlias = Callable[[int, FrameType | None], Any]
_SEVERAL_WORKERS = "this process seems to be one of several workers. "
_NO_SECRET = (
    "ANSWERBACK_SECRET is not set: a worker does not know the MCP sessions of the others, or the "
    "questions that they asked. Set it to the same value for all of them. "
)
_NOT_SHARED = (
    "The workers do not share what changes in an MCP session: the answers to questions, "
    "cancellations, log levels, subscriptions and the end of a session need sticky sessions. "
    "Clients of 2026-07-28 and `serve --workers` do not need them"
)


class DisconnectWatch:
    """Says whether a call's client has disconnected.

    Most calls end before the watch begins.
    """

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._is_disconnected = False
        self._task: asyncio.Task[None] | None = None
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(TICK, self._begin)

    def is_disconnected(self) -> bool:
        return self._is_disconnected

    def stop(self) -> None:
        self._timer.cancel()
        if self._task is not None:
            self._task.cancel()

    def _begin(self) -> None:
        self._task = self._loop.create_task(self._watch())

    async def _watch(self) -> None:
        with suppress(OSError):  # ASGI allows a server to raise it here.
            await disconnected(self._receive)
        self._is_disconnected = True


def warn_of_several_workers(*, has_secret: bool, has_sessions: bool) -> None:
    """Log what will not work if this process looks like one of several workers."""
    text = ("" if has_secret else _NO_SECRET) + (_NOT_SHARED if has_sessions else "")
    if not text or not _looks_like_one_of_several():
        return
    logger().warning(_SEVERAL_WORKERS + text)


def _looks_like_one_of_several() -> bool:
    count = _worker_count()
    if count is not None and count > 1:
        return True
    is_worker = _is_child() or "gunicorn.arbiter" in sys.modules
    # A settings file may set the number, which is then unknown here.
    return is_worker and count is None and "--reload" not in sys.argv


def _is_child() -> bool:
    """Return whether multiprocessing made this process, as uvicorn, hypercorn and granian do."""
    multiprocessing = sys.modules.get("multiprocessing")
    return multiprocessing is not None and multiprocessing.parent_process() is not None


def _worker_count() -> int | None:
    """Return the number of workers from the server's arguments or environment, if given."""
    arguments = sys.argv[1:]
    values = [os.environ.get("WEB_CONCURRENCY", ""), os.environ.get("GRANIAN_WORKERS", "")]
    for index, argument in enumerate(arguments):
        name, _, value = argument.partition("=")
        if name in ("-w", "--workers"):
            values.append(value or "".join(arguments[index + 1 : index + 2]))
    counts = [int(value) for value in values if value.isdecimal()]
    return counts[-1] if counts else None


def call_before_shutdown(close: Callable[[], None]) -> None:
    """Call *close* in the event loop as soon as a signal tells the server to end.

    Servers wait for all responses to end before they notify the application of a shutdown, and they
    do not notify a mounted application. A stream would keep them from ending. Many servers then end
    the process in a way that skips `atexit`. *close* is a method; the handlers, which stay, do not
    keep its object in memory.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    loop = asyncio.get_running_loop()
    handlers = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
    if handlers[signal.SIGTERM] is signal.SIG_DFL and _is_child():
        signal.signal(signal.SIGTERM, _exit_while_running(loop))
        return
    # A process that does not handle SIGTERM is not a server that waits.
    if not callable(handlers[signal.SIGTERM]):
        return

    found = weakref.WeakMethod(close)

    def close_soon() -> None:
        method = found()
        if method is not None:
            with suppress(RuntimeError):  # The loop is closed.
                loop.call_soon_threadsafe(method)

    for number, handler in handlers.items():
        if callable(handler):
            signal.signal(number, _preceded_by(close_soon, handler))


def _preceded_by(first: Callable[[], None], handler: _Handler) -> _Handler:
    def handle(number: int, frame: FrameType | None) -> object:
        first()
        return handler(number, frame)

    return handle


def _exit_while_running(loop: asyncio.AbstractEventLoop) -> _Handler:
    """Return a handler for a worker of hypercorn, which sends SIGTERM to workers that already end.

    Without a handler the signal would end the process before its records are written.
    """

    def handle(number: int, frame: FrameType | None) -> None:
        if loop.is_running():
            sys.exit(128 + number)

    return handle
