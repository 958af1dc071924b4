"""Stateful-era sessions over HTTP: a signed id holds the session, and a store holds its changes.

Resumable streams are here too. `SessionSync` keeps both in sync across all workers.
"""

from __future__ import annotations

import asyncio
import os
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import OrderedDict
from collections.abc import Set as AbstractSet
from contextlib import suppress
from functools import lru_cache
from hashlib import sha256

import msgspec

from ...core.event_loop import spawn
from ...core.peer import Level
from ...core.request_info import RequestInfo
from ...core.signing import Signer
from ...core.versions import ASSUMED_STATEFUL, STATEFUL, Version
from ...errors import Unavailable
from ...protocol.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    CancelledParams,
    Id,
    Notification,
    ReadResource,
    Request,
    Response,
    RpcError,
    SetLevel,
    error_frame,
    read_params,
)
from ...protocol.session import DEFAULT_LEVEL, ClientCapabilities, Session
from ...protocol.session_id import MAX_LENGTH, SessionId
from ...protocol.subscriptions import subscribed_uri
from ...registry.composition import apply_switch, switches_of
from ...registry.declarations import Change, Registry
from .in_flight import InFlight, PendingQuestions
from .request import Headers, HttpRequest
from .sse import EventStream
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

SESSION_HEADER = b"mcp-session-id"
VERSION_HEADER = b"mcp-protocol-version"
LIFETIME = 24 * 3600
"""A session's lifetime in seconds."""
_CLOCKS_DIFFER = 60
"""Seconds by which two hosts' clocks may differ."""
MAX_STATES = 10_000
"""Beyond this many changed sessions, the one that has been idle longest is dropped."""
MAX_ENDED = 100_000
"""Beyond this many ended sessions, the first is dropped; all sessions at least as old end too."""


class HttpError(Exception):
    """Refuses a request with *status*, *error* and *headers*."""

    def __init__(self, status: int, error: RpcError, **headers: str) -> None:
        super().__init__(error.message)
        self.status = status
        self.error = error
        self.headers = [(name.lower().encode(), value.encode()) for name, value in headers.items()]


class HttpClient(msgspec.Struct, frozen=True):
    """The client that sent a request: with a session, or with only a protocol version."""

    version: Version
    capabilities: ClientCapabilities = ClientCapabilities()
    session: SessionId | None = None
    nonce: bytes = b""
    """The random part of the session id, which identifies the session; empty without a session."""
    expires: float = 0.0
    """When the session ends, in seconds since the epoch."""


_WITHOUT_SESSION = {name.encode(): HttpClient(version) for name, version in STATEFUL.items()}
"""The clients without a session, by the version in their header."""
_OF_NO_VERSION = HttpClient(ASSUMED_STATEFUL)


class SessionState(msgspec.Struct):
    """A session's changes: its log level and its subscriptions."""

    level: Level | None = None
    subscriptions: set[str] = set()
    seen: float = 0.0


class Sessions:
    """Identifies clients by their session id, and stores changes to sessions."""

    def __init__(
        self, signer: Signer, worker: int, *, is_bound: bool = False, are_kept: bool = True
    ) -> None:
        self._signer = signer
        self._worker = worker
        self._is_bound = is_bound
        """Whether a session belongs to the user who opened it."""
        self.are_kept = are_kept
        """Whether sessions are enabled; without them, every session id is unknown."""
        self._states: OrderedDict[bytes, SessionState] = OrderedDict()
        self._ended: OrderedDict[bytes, float] = OrderedDict()
        """When each ended session would have expired."""
        self.ended_until = 0.0
        """All sessions that expire by this time have ended, even those not listed."""
        # The cache is bounded, so abandoned sessions do not accumulate.
        self._verified = lru_cache(1024)(self._verify)

    def new_id(self, session: Session, http: HttpRequest) -> bytes:
        """Return the signed id of a new session, which belongs to the request's user."""
        subject = _user_key(http) if self._is_bound else b""
        id = SessionId.issue(session.version, session.client, self._worker, subject, session.info)
        return id.sign(self._signer).encode()

    def identify(self, http: HttpRequest) -> HttpClient:
        """Return the client that sent a request; raises HttpError for an unknown session.

        Another user's session counts as unknown. Without a session id, only the version is used.
        """
        headers = http.headers
        token = headers.get(SESSION_HEADER)
        if token is None:
            return _WITHOUT_SESSION.get(headers.get(VERSION_HEADER, b"").strip(), _OF_NO_VERSION)
        client = self._verified(token) if self.are_kept and len(token) < MAX_LENGTH else None
        if self._is_bound and client is not None:
            client = _of_user(client, _user_key(http))
        if client is not None:
            has_ended = client.nonce in self._ended or client.expires <= self.ended_until
            # The verified signature is cached; the session may have expired since.
            if not has_ended and time.time() <= client.expires:
                return client
        raise HttpError(404, RpcError(INVALID_REQUEST, "Session not found; initialize again"))

    def _verify(self, token: bytes) -> HttpClient | None:
        id = SessionId.verify(token.decode("latin-1"), self._signer)
        if id is None or id.issued > time.time() + _CLOCKS_DIFFER:
            return None
        return HttpClient(id.version, id.client, id, id.nonce, id.issued + LIFETIME)

    def level(self, client: HttpClient) -> Level | None:
        """Return the log level of the client's session; without a session, no logs are sent."""
        if not self.are_kept:
            return None
        state = self._states.get(client.nonce)
        return DEFAULT_LEVEL if state is None or state.level is None else state.level

    def subscriptions(self, client: HttpClient) -> AbstractSet[str]:
        state = self._states.get(client.nonce)
        return frozenset() if state is None else state.subscriptions

    def wants(self, client: HttpClient, change: Change) -> bool:
        """Return whether to notify the client of a change."""
        return change.kind != "resource" or change.uri in self.subscriptions(client)

    def apply(
        self, message: SessionEnded | SessionChanged | LogLevelSet | ResourceSubscribed
    ) -> None:
        """Apply a change to a session, received by this or another worker."""
        match message:
            case SessionEnded():
                self._states.pop(message.nonce, None)
                self._ended[message.nonce] = message.expires
                now = time.time()
                while self._ended:
                    nonce, expires = next(iter(self._ended.items()))
                    if len(self._ended) <= MAX_ENDED and expires > now:
                        break
                    del self._ended[nonce]
                    self.ended_until = max(self.ended_until, expires)
            case SessionChanged():
                state = self._keep(message.nonce)
                state.level, state.subscriptions = message.level, set(message.subscriptions)
                self._forget_default(message.nonce)
            case LogLevelSet():
                self._keep(message.nonce).level = message.level
            case ResourceSubscribed():
                uris = self._keep(message.nonce).subscriptions
                uris.add(message.uri) if message.wanted else uris.discard(message.uri)
                self._forget_default(message.nonce)

    def changes(self) -> list[SessionEnded | SessionChanged]:
        """Return the messages that bring another worker's store up to date with this one."""
        return [
            *(
                SessionChanged(nonce, state.level, frozenset(state.subscriptions))
                for nonce, state in self._states.items()
            ),
            *(SessionEnded(nonce, expires) for nonce, expires in self._ended.items()),
        ]

    def _keep(self, nonce: bytes) -> SessionState:
        state = self._states.get(nonce)
        if state is None:
            limit = time.monotonic() - LIFETIME
            while self._states:
                oldest = next(iter(self._states.values()))
                if len(self._states) < MAX_STATES and oldest.seen > limit:
                    break
                self._states.popitem(last=False)
            state = self._states[nonce] = SessionState()
        state.seen = time.monotonic()
        self._states.move_to_end(nonce)
        return state

    def _forget_default(self, nonce: bytes) -> None:
        state = self._states[nonce]
        if not (state.level or state.subscriptions):
            del self._states[nonce]


def _user_key(http: HttpRequest) -> bytes:
    user = http.scope.get("user")
    return b"" if user is None else bytes(user.key)


def _of_user(client: HttpClient, key: bytes) -> HttpClient | None:
    """Return the client as the user with that key sees it; None if the session is another user's.

    A session opened without a login continues after a login, under a different name: messages to
    the user must not reach anyone who knows the anonymous session.
    """
    id = client.session
    if id is None or id.subject == key or not (key or any(id.subject)):
        return client
    if any(id.subject):
        return None
    nonce = sha256(id.nonce + key).digest()[: len(id.nonce)]
    id = msgspec.structs.replace(id, nonce=nonce, subject=key)
    return HttpClient(client.version, client.capabilities, id, nonce, client.expires)


_MAX_STREAMS = 256
"""Maximum number of resumable streams; beyond that, the oldest is dropped."""
_MAX_BYTES = 32 * 1024 * 1024
"""Maximum total bytes kept by these streams; beyond that, the oldest is dropped."""

_MAX_REQUEST_ID = 64
"""Maximum length of an encoded request id inside its stream's id."""
_AFTER_FAILURE = 1.0
"""Seconds to wait before sending a frame again."""
_LOST = "The process that ran this call has ended; the call may have had an effect"


class ActiveStreams:
    """Tracks each session's GET streams across all workers."""

    def __init__(self) -> None:
        self._streams: dict[bytes, dict[int, int]] = {}
        """For each session: the worker of each stream, by the time the stream was opened."""

    def apply(self, message: StreamState) -> None:
        streams = self._streams.setdefault(message.nonce, {})
        if message.open:
            streams[message.since] = message.worker
        else:
            streams.pop(message.since, None)
        if not streams:
            del self._streams[message.nonce]

    def end_session(self, nonce: bytes) -> None:
        self._streams.pop(nonce, None)

    def forget(self, worker: int) -> None:
        """Remove the streams of a worker that has ended."""
        for nonce, streams in list(self._streams.items()):
            for since in [since for since, each in streams.items() if each == worker]:
                self.apply(StreamState(nonce, since, worker, False))

    def is_active(self, stream: StreamState) -> bool:
        """Return whether the stream is the newest in its session."""
        return stream.since == max(self._streams.get(stream.nonce, (0,)))


class ResumableStreams:
    """Streams that a client can resume on any worker."""

    def __init__(self, bus: WorkerBus) -> None:
        self._bus = bus
        self._streams: OrderedDict[str, tuple[bytes, EventStream]] = OrderedDict()
        self._followed: dict[str, _Followed] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def new(self, client: HttpClient, request: Id | None) -> EventStream:
        """Return a new stream; its id contains this worker's number and the *request*'s id.

        Another worker can then answer the request if this worker has ended.
        """
        packed = urlsafe_b64encode(msgspec.json.encode(request)).decode()
        if len(packed) > _MAX_REQUEST_ID:
            packed = ""
        id = f"{self._bus.number}.{os.urandom(8).hex()}.{packed}"
        stream = EventStream(asyncio.get_running_loop(), id)
        self._streams[id] = (client.nonce, stream)
        while (
            len(self._streams) > _MAX_STREAMS
            or sum(each.size for _, each in self._streams.values()) > _MAX_BYTES
        ):
            self._streams.popitem(last=False)
        return stream

    async def resume(self, client: HttpClient, headers: Headers) -> tuple[EventStream | None, int]:
        """Return the stream a client is resuming, from any worker, and the last event it saw."""
        last = headers.get(b"last-event-id", b"").decode("ascii", "replace")
        id, _, number = last.rpartition("-")
        worker = id.partition(".")[0]
        if not (number.isdigit() and worker.isdigit() and len(number) < 10 and len(worker) < 6):
            return None, 0
        if self._bus.has(int(worker)):
            # Another worker's stream has no id here: its events get new numbers.
            followed = _Followed(EventStream(asyncio.get_running_loop()), int(worker), id)
            reader = os.urandom(8).hex()
            self._followed[reader] = followed
            wanted = FollowStream(id, client.nonce, int(number), self._bus.number, reader)
            try:
                is_there = await self._bus.send(followed.worker, wanted)
            except Unavailable:
                self._followed.pop(reader, None)
                raise
            if not is_there:
                self._followed.pop(reader, None)
                followed.end_with_error()
            return followed.stream, 0
        owner, stream = self._streams.get(id, (b"", None))
        return (stream, int(number)) if owner == client.nonce else (None, 0)

    def stop_following(self, stream: EventStream) -> None:
        """Stop following another worker's stream, because its client has disconnected."""
        for reader, followed in list(self._followed.items()):
            if followed.stream is stream:
                del self._followed[reader]

    def apply(self, message: FollowStream | StreamFrame) -> None:
        if isinstance(message, FollowStream):
            spawn(self._forward(message), self._tasks)
        elif (followed := self._followed.get(message.reader)) is not None:
            if message.last:
                followed.stream.end()
                del self._followed[message.reader]
            else:
                followed.stream.append(message.frame)

    def end_streams_of(self, worker: int) -> None:
        """End the streams followed from a worker that has ended, each with an error."""
        for reader, followed in list(self._followed.items()):
            if followed.worker == worker:
                del self._followed[reader]
                followed.end_with_error()

    def end_followed(self) -> None:
        """Close the streams followed from other workers: frames may be lost, so clients resume."""
        for followed in self._followed.values():
            followed.stream.end()
        self._followed.clear()

    async def _forward(self, message: FollowStream) -> None:
        """Send a local stream's frames to the worker where its client resumed it."""
        owner, stream = self._streams.get(message.stream, (b"", None))
        if stream is not None and owner == message.nonce:
            async for frame in stream.read(message.start):
                sent = StreamFrame(message.reader, frame, last=False)
                if not await self._send_with_retries(message.worker, sent):
                    return
        await self._send_with_retries(message.worker, StreamFrame(message.reader, b"", last=True))

    async def _send_with_retries(self, worker: int, message: StreamFrame) -> bool:
        """Send, retrying while the database is unavailable; return whether the worker exists."""
        while True:
            try:
                return await self._bus.send(worker, message)
            except Unavailable:
                await asyncio.sleep(_AFTER_FAILURE)


class _Followed:
    """A stream read here and written by another worker."""

    def __init__(self, stream: EventStream, worker: int, id: str) -> None:
        self.stream = stream
        self.worker = worker
        self.id = id

    def end_with_error(self) -> None:
        """Answer the stream's request with an error, because its worker has ended."""
        request: Id | None = None
        # A client can send anything, and a request id that is too long is left out.
        with suppress(ValueError, msgspec.DecodeError):
            packed = urlsafe_b64decode(self.id.rpartition(".")[2])
            request = msgspec.json.decode(packed, type=Id | None)
        error = RpcError(INTERNAL_ERROR, _LOST, {"code": "WORKER_LOST", "retryable": False})
        self.stream.append(error_frame(request, error))
        self.stream.end()


SESSION_METHODS = frozenset(
    {"ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"}
)
"""The requests about the session itself."""


class SessionSync:
    """Keeps the parts that hold a session's state in sync across all workers."""

    def __init__(
        self, registry: Registry, bus: WorkerBus, sessions: Sessions, in_flight: InFlight
    ) -> None:
        self._registry = registry
        self._bus = bus
        self._sessions = sessions
        self._in_flight = in_flight
        self.questions = PendingQuestions(bus.number)
        self.resumable = ResumableStreams(bus)
        self.active = ActiveStreams()

    async def answer(
        self, request: Request, client: HttpClient, described: RequestInfo | None
    ) -> bytes:
        """Return the result of a request about the session; raises RpcError or Unavailable.

        *described* is the request's data; None if nothing can be hidden.
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
        return b"{}"

    async def accept(self, message: Notification | Response, client: HttpClient) -> None:
        """Apply a client's notification or response; raises Unavailable."""
        # Without a session, no questions are asked, and nothing can be cancelled.
        if not client.nonce:
            return
        if isinstance(message, Response):
            # The call that asked the question may be running in another worker.
            result = None if message.result is None else bytes(message.result)
            answered = QuestionAnswered(client.nonce, message.id, result)
            worker = self.questions.worker_of(message.id)
            if self._bus.has(worker):
                await self._bus.send(worker, answered)
            else:
                self.questions.resolve(answered)
        elif message.method == "notifications/cancelled":
            with suppress(RpcError):
                id = read_params(message.params, CancelledParams).id
                if id is not None and not self._in_flight.cancel(client.nonce, id):
                    await self._bus.broadcast(RequestCancelled(client.nonce, id))

    async def end_session(self, client: HttpClient) -> None:
        await self._change(SessionEnded(client.nonce, client.expires))

    async def open_stream(self, client: HttpClient, since: int) -> StreamState:
        """Register one of the session's GET streams with this worker; raises Unavailable."""
        opened = StreamState(client.nonce, since, self._bus.number, open=True)
        self.active.apply(opened)
        await self._bus.broadcast(opened)
        return opened

    def close_stream(self, opened: StreamState) -> None:
        """Remove a GET stream; a background task notifies the other workers."""
        closed = msgspec.structs.replace(opened, open=False)
        self.active.apply(closed)
        self._bus.forward(closed)

    async def _change(self, message: SessionEnded | LogLevelSet | ResourceSubscribed) -> None:
        # A client without a session has no state to keep.
        if message.nonce:
            # The other workers come first: if they cannot be reached, the client gets an error.
            await self._bus.broadcast(message)
            await self.apply(message)

    async def apply(self, message: WorkerMessage) -> None:
        """Apply a message that a client sent to this worker or to another one."""
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
