"""What a client of the legacy era says of its session: done here, and told to every worker."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from ...mcp import params
from ...mcp.mcp_peer import Exchange
from ...mcp.messages import Id, Notification, Request, Response, RpcError
from ...mcp.subscriptions import subscribed_uri
from .pending_questions import Questions
from .session_streams import Streams
from .sessions import Visitor, Visitors
from .turns import Turns
from .worker_bus import (
    Answered,
    Bus,
    Cancelled,
    Ended,
    Follow,
    Levelled,
    Listens,
    Note,
    Said,
    Subscribed,
)

if TYPE_CHECKING:
    from ...app import App

OF_SESSION = frozenset({"ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"})
"""The requests that are about the session itself."""
_DONE = b"{}"


class Telling:
    def __init__(self, app: App, bus: Bus, visitors: Visitors) -> None:
        self._app = app
        self._bus = bus
        self._visitors = visitors
        self.questions = Questions()
        self.streams = Streams(bus)
        self.turns = Turns(bus.number)
        self._leaving: set[asyncio.Task[None]] = set()
        self.running: dict[tuple[bytes, Id], Exchange] = {}

    async def answer(self, request: Request, visitor: Visitor) -> bytes:
        """The result of a request about the session; raises RpcError."""
        if request.method == "logging/setLevel":
            level = params.read(request.params, params.SetLevel).level
            await self._share(Levelled(visitor.nonce, level))
        elif request.method != "ping":
            wanted = request.method == "resources/subscribe"
            if wanted:
                subscribed = self._visitors.subscriptions(visitor)
                uri = subscribed_uri(self._app, request.params, subscribed)
            else:
                uri = params.read(request.params, params.ReadResource).uri
            await self._share(Subscribed(visitor.nonce, uri, wanted))
        return _DONE

    async def take(self, message: Notification | Response, visitor: Visitor) -> None:
        """What nobody waits for an answer to."""
        if isinstance(message, Response):
            result = None if message.result is None else bytes(message.result)
            error = None if message.error is None else bytes(message.error)
            await self._share(Answered(visitor.nonce, message.id, result, error))
        elif message.method == "notifications/cancelled":
            with suppress(RpcError):
                id = params.read(message.params, params.Cancelled).id
                if id is not None:
                    await self._share(Cancelled(visitor.nonce, id))

    async def end(self, visitor: Visitor) -> None:
        await self._share(Ended(visitor.nonce))

    async def listen(self, visitor: Visitor) -> Listens:
        """A stream of the session begins at this worker."""
        stream = self.turns.open(visitor.nonce)
        await self._bus.tell_all(stream)
        return stream

    def leave(self, stream: Listens) -> None:
        """It has ended; not to be waited for, because who ended it may be in a hurry."""
        telling = asyncio.get_running_loop().create_task(
            self._bus.tell_all(self.turns.close(stream))
        )
        self._leaving.add(telling)
        telling.add_done_callback(self._leaving.discard)

    async def _share(self, note: Ended | Levelled | Subscribed | Cancelled | Answered) -> None:
        """One without a session has nothing to share."""
        if note.nonce:
            await self.hear(note)
            await self._bus.tell_all(note)

    async def hear(self, note: Note) -> None:
        """What a client said, to this worker or to another."""
        match note:
            case Ended() | Levelled() | Subscribed():
                self._visitors.hear(note)
                if isinstance(note, Ended):
                    self.questions.give_up(note.nonce)
                    self.turns.forget(note.nonce)
            case Listens():
                self.turns.hear(note)
            case Cancelled(nonce, id):
                if (nonce, id) in self.running:
                    self.running[nonce, id].cancel()
            case Answered():
                self.questions.settle(note)
            case Follow() | Said():
                self.streams.hear(note)
