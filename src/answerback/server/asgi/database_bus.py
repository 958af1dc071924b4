"""DatabaseBus: messages between the processes of several hosts, through their shared database.

A session's changes and the switches of tools are kept in tables, so a new process knows them too.
Other messages are rows that their receivers take. A notice says that there is something new; who
misses it finds it two seconds later.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from math import inf
from time import monotonic
from typing import Any, TypeVar

import msgspec

from ...calls.failures import log_internal_error
from ...errors import Unavailable
from ...registry.declarations import Registry
from ...registry.enabling import Switch, apply_switches
from ...state.homes import Homes
from ...state.mailbox import Mailbox
from ...state.session_rows import SessionRow, SessionRows
from ...state.shared import SharedState
from ...state.switch_rows import SwitchRows
from .worker_sockets import (
    LogLevelSet,
    OnMessage,
    ResourceSubscribed,
    SessionChanged,
    SessionEnded,
    WorkerBus,
    WorkerLost,
    WorkerMessage,
    decode_message,
    encode_message,
)

T = TypeVar("T")
_TOPIC = "bus"
_ALL = "all"
"""The id of a notice for all processes; other ids are numbers of processes."""
_POLL = 2.0
"""Seconds after which a process looks for messages without a notice, and shows that it lives."""
_PATIENCE = 15.0
"""Seconds after which a process that did not show that it lives has ended."""
_LENIENCE = 3_600.0
"""The same, for a short time after the database was away: all processes missed their time."""
_THREADS = 2

_session_changes = msgspec.msgpack.Decoder(SessionChanged)


class DatabaseBus(WorkerBus):
    """The number of this process comes from the database."""

    def __init__(self, shared: SharedState, registry: Registry) -> None:
        super().__init__()
        self._registry = registry
        self._notices = shared.notices
        self._homes = Homes(shared.database, registry.name)
        self._mailbox = Mailbox(shared, registry.name)
        self._sessions = SessionRows(shared, registry.name)
        self._switches = SwitchRows(shared.database, registry.name)
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="answerback-bus")
        self._living: frozenset[int] = frozenset()
        self._next_beat = 0.0
        self._lenient_until = 0.0
        self._catching_up = asyncio.Lock()
        self._woken = asyncio.Event()
        self._watching: asyncio.Task[None] | None = None

    async def start(self, on_message: OnMessage) -> None:
        self._loop = asyncio.get_running_loop()
        self._on_message = on_message
        self.number = await self._in_thread(self._homes.take)
        self._notices.listen(_TOPIC, self._on_notice)
        await self.catch_up()
        self._watching = self._loop.create_task(self._watch())

    async def close(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
            with suppress(asyncio.CancelledError):
                await self._watching
            with suppress(Unavailable):
                await self._in_thread(self._homes.leave, self.number)
                # The others look at once, and find that this process has left.
                self._notices.send(_TOPIC, _ALL)
        self._loop = None
        self._threads.shutdown(wait=False)

    def has(self, worker: int) -> bool:
        return worker != self.number

    async def broadcast(self, message: WorkerMessage) -> None:
        match message:
            case SessionEnded(nonce, expires):
                await self._in_thread(self._sessions.end, nonce, expires)
                self._tell_all()
            case LogLevelSet(nonce) | ResourceSubscribed(nonce):
                await self._in_thread(self._sessions.change, nonce, partial(_changed, message))
                self._tell_all()
            case _:
                await self._put(message, None)

    async def send(self, worker: int, message: WorkerMessage) -> bool:
        return await self._put(message, worker)

    async def catch_up(self) -> int:
        async with self._catching_up:
            found = await self._in_thread(self._look)
            for row in found.sessions:
                await self._deliver(_message_of(row))
            # The messages come last: one may say that a list has changed.
            apply_switches(self._registry, found.switches)
            for message in found.messages:
                await self._deliver(decode_message(message))
        return int(found.time * 1e9)

    def forward_switch(self, switch: Switch) -> None:
        """Keep a switch for all processes before it is applied here. It blocks the thread."""
        self._switches.keep(switch.app, switch.what, switch.value, on=switch.on)
        self._tell_all()

    async def _put(self, message: WorkerMessage, receiver: int | None) -> bool:
        sealed = encode_message(message)
        put = self._mailbox.put
        receivers = await self._in_thread(put, sealed, self.number, receiver, self._patience())
        for each in receivers:
            self._notices.send(_TOPIC, str(each))
        return bool(receivers)

    def _tell_all(self) -> None:
        self._notices.send(_TOPIC, _ALL)
        # Another process may have changed the same thing: read here, too, what holds.
        self._wake()

    def _look(self) -> _Found:
        # In this order: the sender of a message has kept its switches before.
        messages = self._mailbox.take(self.number)
        time, sessions = self._sessions.changed()
        switches = [msgspec.convert(row, Switch) for row in self._switches.all()]
        return _Found(messages, sessions, switches, time)

    async def _deliver(self, message: WorkerMessage) -> None:
        try:
            await self._on_message(message)
        except Exception:  # noqa: BLE001 -- the other messages still need to be applied
            log_internal_error("applying a message from another process")

    async def _watch(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(_POLL):
                    await self._woken.wait()
            self._woken.clear()
            try:
                await self._beat()
                await self.catch_up()
            except Unavailable:
                self._lenient_until = inf  # Already logged.
            except Exception:  # noqa: BLE001 -- the sessions of this process need the watch
                log_internal_error("looking for messages from other processes")

    async def _beat(self) -> None:
        """Show that this process lives, and report those that do no longer."""
        now = monotonic()
        if now < self._next_beat:
            return
        living = await self._in_thread(self._homes.beat, self.number, self._patience())
        await self._in_thread(self._mailbox.remove_old)
        await self._in_thread(self._sessions.remove_expired)
        if self._lenient_until == inf:
            self._lenient_until = now + _PATIENCE
        lost, self._living = self._living - living, living
        for worker in lost:
            await self._deliver(WorkerLost(worker))
        self._next_beat = now + _POLL

    def _patience(self) -> float:
        return _PATIENCE if monotonic() >= self._lenient_until else _LENIENCE

    def _on_notice(self, id: str | None) -> None:
        """Called in the thread that listens."""
        if id is None:
            self._sessions.read_all_again()
        if id in (None, _ALL, str(self.number)):
            self._wake()

    def _wake(self) -> None:
        """Look for messages at once. Any thread may call it."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._woken.set)

    async def _in_thread(self, function: Callable[..., T], *arguments: Any) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, function, *arguments)


class _Found(msgspec.Struct, frozen=True):
    messages: list[bytes]
    sessions: list[SessionRow]
    switches: list[Switch]
    time: float


def _changed(message: LogLevelSet | ResourceSubscribed, before: bytes | None) -> bytes:
    """Return a session's state after a change."""
    session = SessionChanged(message.nonce) if before is None else _session_changes.decode(before)
    if isinstance(message, LogLevelSet):
        return encode_message(msgspec.structs.replace(session, level=message.level))
    uri = frozenset({message.uri})
    uris = session.subscriptions | uri if message.wanted else session.subscriptions - uri
    return encode_message(msgspec.structs.replace(session, subscriptions=uris))


def _message_of(row: SessionRow) -> WorkerMessage:
    if row.has_ended:
        return SessionEnded(row.nonce, row.expires)
    if row.state is None:
        return SessionChanged(row.nonce)
    return _session_changes.decode(row.state)
