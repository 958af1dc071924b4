"""Applies a session's messages in this worker, and sends them to the other workers."""

from __future__ import annotations

from contextlib import suppress

from ...core.request_info import RequestInfo
from ...protocol.jsonrpc import (
    CancelledParams,
    Notification,
    ReadResource,
    Request,
    Response,
    RpcError,
    SetLevel,
    read_params,
)
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
    MessagesLost,
    QuestionAnswered,
    RequestCancelled,
    ResourceSubscribed,
    SessionChanged,
    SessionEnded,
    SessionStates,
    SessionStatesWanted,
    StreamFrame,
    StreamState,
    WorkerBus,
    WorkerLost,
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
        self.questions = PendingQuestions(bus.number)
        self.resumable = ResumableStreams(bus)
        self.active = ActiveStreams(bus.number)

    async def answer(
        self, request: Request, client: HttpClient, described: RequestInfo | None = None
    ) -> bytes:
        """Return the result of a request about the session; raises RpcError or Unavailable.

        *described* has the request's data; None if nothing can be hidden.
        """
        if request.method == "logging/setLevel":
            level = read_params(request.params, SetLevel).level
            await self._change(LogLevelSet(client.nonce, level))
        elif request.method != "ping":
            wanted = request.method == "resources/subscribe"
            if wanted:
                subscribed = self._sessions.subscriptions(client)
                uri = subscribed_uri(self._registry, request.params, subscribed, described)
            else:
                uri = read_params(request.params, ReadResource).uri
            await self._change(ResourceSubscribed(client.nonce, uri, wanted))
        return _EMPTY_RESULT

    async def accept(self, message: Notification | Response, client: HttpClient) -> None:
        """Apply a client's notification or response; raises Unavailable."""
        # Without a session nothing is asked, and nothing can be cancelled.
        if not client.nonce:
            return
        if isinstance(message, Response):
            await self._pass_on(message, client.nonce)
        elif message.method == "notifications/cancelled":
            with suppress(RpcError):
                id = read_params(message.params, CancelledParams).id
                if id is not None and not self._in_flight.cancel(client.nonce, id):
                    await self._bus.broadcast(RequestCancelled(client.nonce, id))

    async def _pass_on(self, response: Response, nonce: bytes) -> None:
        """Pass an answer to the worker whose call asked the question."""
        result = None if response.result is None else bytes(response.result)
        answered = QuestionAnswered(nonce, response.id, result)
        worker = self.questions.worker_of(response.id)
        if self._bus.has(worker):
            await self._bus.send(worker, answered)
        else:
            self.questions.resolve(answered)

    async def end_session(self, client: HttpClient) -> None:
        await self._change(SessionEnded(client.nonce, client.expires))

    async def open_stream(self, client: HttpClient, since: int) -> StreamState:
        """Register a GET stream of the session at this worker; raises Unavailable."""
        stream = self.active.open(client.nonce, since)
        await self._bus.broadcast(stream)
        return stream

    def close_stream(self, stream: StreamState) -> None:
        """Remove a GET stream; a task in the background notifies the other workers."""
        self._bus.forward(self.active.close(stream))

    async def _change(self, message: SessionEnded | LogLevelSet | ResourceSubscribed) -> None:
        # A client without a session has no state to keep.
        if message.nonce:
            # First the others: if they cannot be reached, the client is told that it failed.
            await self._bus.broadcast(message)
            await self.apply(message)

    async def apply(self, message: WorkerMessage) -> None:
        """Apply a message that a client sent to this worker or to another."""
        match message:
            case SessionStatesWanted() | SessionStates():
                await self._share_states(message)
            case SessionEnded() | SessionChanged() | LogLevelSet() | ResourceSubscribed():
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
            case WorkerLost(worker):
                self.active.forget(worker)
                self.resumable.end_streams_of(worker)
            case MessagesLost():
                self.resumable.end_followed()

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
