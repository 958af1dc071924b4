"""Applies a session's messages in this worker, and sends them to the other workers."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from ...core.background import spawn
from ...core.request_info import RequestInfo
from ...protocol.jsonrpc import Notification, Request, Response, RpcError, read_params
from ...protocol.params import CancelledParams, ReadResource, SetLevel
from ...protocol.subscriptions import subscribed_uri
from ...registry.declarations import Registry
from ...registry.enabling import apply_switch, switches_of
from .in_flight import InFlight
from .pending_questions import PendingQuestions
from .session_streams import ActiveStreams, ResumableStreams
from .sessions import HttpClient, Sessions
from .worker_sockets import (
    FollowStream,
    LogLevelSet,
    QuestionAnswered,
    RequestCancelled,
    ResourceSubscribed,
    SessionEnded,
    SessionStates,
    SessionStatesWanted,
    StreamFrame,
    StreamState,
    WorkerBus,
    WorkerMessage,
)

SESSION_METHODS = frozenset(
    {"ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"}
)
"""The requests that are about the session itself."""
_EMPTY_RESULT = b"{}"


class SessionSync:
    """The parts that hold a session's state, kept the same in all workers."""

    def __init__(
        self, registry: Registry, bus: WorkerBus, sessions: Sessions, in_flight: InFlight
    ) -> None:
        self._registry = registry
        self._bus = bus
        self._sessions = sessions
        self._in_flight = in_flight
        self.questions = PendingQuestions()
        self.resumable = ResumableStreams(bus)
        self.active = ActiveStreams(bus.number)
        self._sending: set[asyncio.Task[None]] = set()

    async def answer(
        self, request: Request, client: HttpClient, described: RequestInfo | None = None
    ) -> bytes:
        """Return the result of a request about the session; raises RpcError.

        *described* has the request's data; None if nothing can be hidden.
        """
        if request.method == "logging/setLevel":
            level = read_params(request.params, SetLevel).level
            await self._apply_everywhere(LogLevelSet(client.nonce, level))
        elif request.method != "ping":
            wanted = request.method == "resources/subscribe"
            if wanted:
                subscribed = self._sessions.subscriptions(client)
                uri = subscribed_uri(self._registry, request.params, subscribed, described)
            else:
                uri = read_params(request.params, ReadResource).uri
            await self._apply_everywhere(ResourceSubscribed(client.nonce, uri, wanted))
        return _EMPTY_RESULT

    async def accept(self, message: Notification | Response, client: HttpClient) -> None:
        """Apply a client's notification or response."""
        if isinstance(message, Response):
            result = None if message.result is None else bytes(message.result)
            await self._apply_everywhere(QuestionAnswered(client.nonce, message.id, result))
        elif message.method == "notifications/cancelled":
            with suppress(RpcError):
                id = read_params(message.params, CancelledParams).id
                if id is not None:
                    await self._apply_everywhere(RequestCancelled(client.nonce, id))

    async def end_session(self, client: HttpClient) -> None:
        await self._apply_everywhere(SessionEnded(client.nonce, client.expires))

    async def open_stream(self, client: HttpClient) -> StreamState:
        """Register a GET stream of the session at this worker."""
        stream = self.active.open(client.nonce)
        await self._bus.broadcast(stream)
        return stream

    def close_stream(self, stream: StreamState) -> None:
        """Remove a GET stream; a task in the background notifies the other workers."""
        spawn(self._bus.broadcast(self.active.close(stream)), self._sending)

    async def _apply_everywhere(
        self,
        message: SessionEnded
        | LogLevelSet
        | ResourceSubscribed
        | RequestCancelled
        | QuestionAnswered,
    ) -> None:
        # A client without a session has no state to keep.
        if message.nonce:
            await self.apply(message)
            await self._bus.broadcast(message)

    async def apply(self, message: WorkerMessage) -> None:
        """Apply a message that a client sent to this worker or to another."""
        match message:
            case SessionStatesWanted() | SessionStates():
                await self._share_states(message)
            case SessionEnded() | LogLevelSet() | ResourceSubscribed():
                self._sessions.apply(message)
                if isinstance(message, SessionEnded):
                    self.questions.decline_all(message.nonce)
                    self.active.end_session(message.nonce)
            case StreamState():
                self.active.apply(message)
            case RequestCancelled(nonce, id):
                self._in_flight.cancel(nonce, id)
            case QuestionAnswered():
                self.questions.resolve(message)
            case FollowStream() | StreamFrame():
                self.resumable.apply(message)

    async def _share_states(self, message: SessionStatesWanted | SessionStates) -> None:
        """Send all sessions' changes to a new worker, or apply them there."""
        sessions = self._sessions
        if isinstance(message, SessionStates):
            sessions.ended_until = max(sessions.ended_until, message.ended_until)
            for change in message.changes:
                sessions.apply(change)
            for switch in message.switches:
                apply_switch(self._registry, switch)
            return
        changes, switches = sessions.changes(), switches_of(self._registry)
        # A worker that has just started has no changes to send, so two workers that start
        # together do not wait for each other.
        if changes or switches:
            states = SessionStates(changes, sessions.ended_until, switches)
            await self._bus.send(message.worker, states)
