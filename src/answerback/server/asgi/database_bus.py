"""DatabaseBus: messages between processes on several hosts, through their shared database.

Session changes and tool switches are stored in tables, so that new processes can read them too.
Other messages are rows that their receivers remove. A notice announces that there is something new;
a process that misses it checks two seconds later.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from time import monotonic

import msgspec

from ...calls.failures import log_internal_error
from ...core.event_loop import OffLoop, spawn
from ...core.log import logger
from ...errors import Unavailable
from ...registry.composition import Switch, apply_switches
from ...registry.declarations import Registry
from ...state.database import unavailable
from ...state.mailbox import Mailbox, SessionRow, SessionRows, SwitchRows
from ...state.shared import BEAT, SharedState
from .worker_sockets import (
    LogLevelSet,
    MessagesLost,
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

_TOPIC = "bus"
_ALL, _MEMBERS, _APPLIED = "all", "members", "applied"
"""The first words of notices: for all processes, about a process that joined or left, and from a
process that has applied a change. A notice for one process begins with its number."""
_CONFIRMED = 0.5
"""Seconds to wait for all processes to apply a change."""
_POLL = BEAT
"""Seconds between heartbeats, when a process checks for messages even without a notice."""
_DEADLINE = 2.5
"""Seconds after which a request stops waiting for the database."""

_session_changes = msgspec.msgpack.Decoder(SessionChanged)


class DatabaseBus(WorkerBus):
    """A bus whose process number comes from the database."""

    def __init__(self, shared: SharedState, registry: Registry, off_loop: OffLoop) -> None:
        super().__init__()
        self._registry = registry
        self._notices = shared.notices
        self._members = shared.members(registry.name)
        self._mailbox = Mailbox(shared, registry.name)
        self._sessions = SessionRows(shared, registry.name)
        self._switches = SwitchRows(shared.database, registry.name)
        self._off_loop = off_loop
        self._living: frozenset[int] = frozenset()
        self._next_beat = 0.0
        self._was_away = self._others_changed = False
        self._catching_up = asyncio.Lock()
        self._woken = asyncio.Event()
        self._watching: asyncio.Task[None] | None = None
        self._must_read_all = False
        self._taken: list[bytes] = []
        self._looking: set[asyncio.Task[float | None]] = set()
        self._to_confirm: list[str] = []
        """Other processes' changes that this one must confirm once it has applied them."""
        self._unconfirmed: dict[str, tuple[set[int], asyncio.Event]] = {}
        """For each local change: the processes yet to apply it, and an event set when all have."""

    async def start(self, on_message: OnMessage) -> None:
        self._loop = asyncio.get_running_loop()
        self._on_message = on_message
        self.number = await self._off_loop(self._members.join)
        self._notices.listen(_TOPIC, self._on_notice)
        await self.catch_up()
        await self._beat()
        self._notices.send(_TOPIC, _MEMBERS)
        self._watching = self._loop.create_task(self._watch())

    async def close(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
            with suppress(asyncio.CancelledError):
                await self._watching
            with suppress(Unavailable):
                await self._off_loop(self._members.leave)
                self._notices.send(_TOPIC, _MEMBERS)
        self._loop = None

    def has(self, worker: int) -> bool:
        return worker != self.number

    async def broadcast(self, message: WorkerMessage) -> None:
        match message:
            case SessionEnded(nonce, expires):
                await self._off_loop(self._sessions.end, nonce, expires)
                await self._wait_for_all()
            case LogLevelSet(nonce) | ResourceSubscribed(nonce):
                await self._off_loop(self._sessions.change, nonce, partial(_changed, message))
                await self._wait_for_all()
            case _:
                await self._put(message, None)

    async def send(self, worker: int, message: WorkerMessage) -> bool:
        return await self._put(message, worker)

    async def catch_up(self) -> int:
        # In a separate task: if a request ends first, the messages are still applied.
        looking = spawn(self._catch_up(), self._looking)
        await asyncio.wait({looking}, timeout=_DEADLINE)
        time = looking.result() if looking.done() else None
        if time is None:
            raise unavailable()
        return int(time * 1e9)

    async def _catch_up(self) -> float | None:
        """Apply all changes and messages; return the time, or None if the database is down."""
        async with self._catching_up:
            confirmed, self._to_confirm = self._to_confirm, []
            try:
                messages, sessions, switches, time = await self._off_loop(self._look)
            except Unavailable:
                return None
            for row in sessions:
                if row.has_ended:
                    await self._deliver(SessionEnded(row.nonce, row.expires))
                else:
                    await self._deliver(_state_in(row.state) or SessionChanged(row.nonce))
            # Messages come last, because one may announce that a list has changed.
            apply_switches(self._registry, switches)
            for message in messages:
                await self._deliver(message)
            for change in confirmed:
                self._notices.send(_TOPIC, f"{_APPLIED} {change} {self.number}")
        return time

    def forward_switch(self, switch: Switch) -> None:
        """Store a switch for all processes before it is applied here. Blocks the thread."""
        self._switches.keep(switch.app, switch.what, switch.value, on=switch.on)
        self._notices.send(_TOPIC, _ALL)
        # Another process may have changed the same thing: read the current state here too.
        self._soon(self._woken.set)

    async def _put(self, message: WorkerMessage, receiver: int | None) -> bool:
        receivers = await self._off_loop(self._mailbox.put, encode_message(message), receiver)
        for each in receivers:
            self._notices.send(_TOPIC, str(each))
        return bool(receivers)

    async def _wait_for_all(self) -> None:
        """Wait until the other processes have applied a change, unless that takes too long.

        Whichever process gets the client's next request then knows about the change.
        """
        change = os.urandom(8).hex()
        missing, complete = set(self._living - {self.number}), asyncio.Event()
        self._unconfirmed[change] = missing, complete
        self._notices.send(_TOPIC, f"{_ALL} {change}")
        # Another process may have changed the same thing: read the current state here too.
        self._woken.set()
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(_CONFIRMED):
                    if missing:
                        await complete.wait()
        finally:
            del self._unconfirmed[change]

    def _look(self) -> tuple[list[WorkerMessage], list[SessionRow], list[Switch], float]:
        # Read in this order, because a sender stores its switches before it sends a message.
        self._taken += self._mailbox.take()
        switches = [msgspec.convert(row, Switch) for row in self._switches.all()]
        if self._must_read_all:
            self._must_read_all = False
            self._sessions.read_all_again()
        # Last, because it returns each change only once, and the database may fail in between.
        # `_taken` keeps the messages until here for the same reason.
        time, sessions = self._sessions.changed()
        messages = []
        for taken in self._taken:
            try:
                messages.append(decode_message(taken))
            except msgspec.DecodeError as exc:
                logger().warning("ignored a message from a process on another version: %s", exc)
        self._taken = []
        return messages, sessions, switches, time

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
                self._was_away = True  # Already logged.
            except Exception:  # noqa: BLE001 -- this process's sessions depend on the watch
                log_internal_error("looking for messages from other processes")

    async def _beat(self) -> None:
        """Write this process's heartbeat, and report processes that have stopped."""
        now = monotonic()
        if now < self._next_beat and not self._others_changed:
            return
        self._next_beat = now + _POLL
        at_once, self._others_changed = self._others_changed, False
        living = await self._off_loop(partial(self._members.beat, at_once=at_once))
        await self._off_loop(self._mailbox.remove_old)
        await self._off_loop(self._sessions.remove_expired)
        if self._was_away:
            self._was_away = False
            # A database that crashes loses its messages.
            await self._deliver(MessagesLost())
        lost, self._living = self._living - living, living
        for worker in lost:
            await self._deliver(WorkerLost(worker))

    def _on_notice(self, id: str | None) -> None:
        """Called in the listening thread."""
        # Without an id, notices may have been lost, and the database may have been restored.
        self._must_read_all = self._must_read_all or id is None
        self._soon(self._receive_notice, *(id or _MEMBERS).split(" "))

    def _receive_notice(self, word: str, change: str = "", worker: str = "") -> None:
        if word == _APPLIED:
            if change in self._unconfirmed:
                missing, complete = self._unconfirmed[change]
                missing.discard(int(worker))
                if not missing:
                    complete.set()
            return
        if word not in (_ALL, _MEMBERS, str(self.number)):
            return
        if word == _MEMBERS:
            self._others_changed = True
        if change:
            self._to_confirm.append(change)
        self._woken.set()

    def _soon(self, function: Callable[..., object], *arguments: str) -> None:
        """Call a function on the event loop. May be called from any thread."""
        if self._loop is not None:
            with suppress(RuntimeError):  # The loop is closed.
                self._loop.call_soon_threadsafe(function, *arguments)


def _changed(message: LogLevelSet | ResourceSubscribed, before: bytes | None) -> bytes:
    session = _state_in(before) or SessionChanged(message.nonce)
    if isinstance(message, LogLevelSet):
        return encode_message(msgspec.structs.replace(session, level=message.level))
    uri = frozenset({message.uri})
    uris = session.subscriptions | uri if message.wanted else session.subscriptions - uri
    return encode_message(msgspec.structs.replace(session, subscriptions=uris))


def _state_in(stored: bytes | None) -> SessionChanged | None:
    try:
        return None if stored is None else _session_changes.decode(stored)
    except msgspec.DecodeError as exc:
        logger().warning("ignored the state of a session, written by a different version: %s", exc)
        return None
