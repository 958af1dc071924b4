"""MCP over HTTP in the stateful era: sessions in signed ids, and streams that can be resumed."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from ...core.versions import V2025_11_25
from ...errors import Unavailable
from ...protocol.engine import Engine
from ...protocol.jsonrpc import (
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    Frame,
    Id,
    Message,
    Meta,
    Notification,
    Request,
    Response,
    RpcError,
    error_frame,
    joined,
    meta_of,
    parse,
    result_frame,
)
from ...protocol.listing import described_if_hiding, is_gated
from ...protocol.refusals import batch_challenge
from ...protocol.session import ClientCapabilities
from ...protocol.subscriptions import change_frame
from ...registry.declarations import Change, Registry
from .application import HttpError, unavailable
from .in_flight import BatchPeer, HttpPeer, InFlight
from .request import JSON_HEADERS, HttpRequest, expiry_of
from .sessions import SESSION_HEADER, SESSION_METHODS, HttpClient, Sessions, SessionSync
from .sse import EventStream, write_until_disconnected
from .worker_sockets import WorkerBus


class Stateful:
    """Answers POST, GET and DELETE of clients up to 2025-11-25."""

    def __init__(
        self,
        registry: Registry,
        engine: Engine,
        sessions: Sessions,
        bus: WorkerBus,
        in_flight: InFlight,
    ) -> None:
        self._registry = registry
        self._engine = engine
        self._bus = bus
        self._in_flight = in_flight
        self._sessions = sessions
        self.sync = SessionSync(registry, bus, sessions, in_flight)
        self._open_streams: set[EventStream] = set()

    async def post(self, request: Request, meta: Meta | None, http: HttpRequest) -> None:
        """Answer one request."""
        if request.method == "initialize":
            await self._initialize(request, http)
            return
        client = self._sessions.identify(http)
        level = self._sessions.level(client)
        peer = HttpPeer(request.id, client.version, client.capabilities, http)
        peer.level = level
        if self._registry.has_gates:
            peer.is_held = is_gated(self._registry, request, self._engine.tool_name(request))
        if meta is not None:
            peer.progress_token = meta.token
        if client.session is not None:
            peer.key = (client.nonce, request.id)
            peer.session = client.session
            peer.questions = self.sync.questions
        # A client that names the event stream first gets one at once.
        if http.accept.lstrip().lower().startswith(b"text/event-stream"):
            self._begin_stream(peer, client, request.id)
        # Nothing is lost by it: the client can wait for the same task again.
        peer.cancel_on_disconnect = request.method == "tasks/result" and peer.stream.id is None
        if request.method in SESSION_METHODS:
            await peer.finish(await self._answer_session(request, client, peer))
        elif peer.cancel_on_disconnect:
            await self._answer(request, peer)
        elif _can_be_asked(client.capabilities) and self._engine.may_ask(request):
            await self._in_flight.run_detachable(peer, self._answer(request, peer))
        else:
            await self._answer(request, peer)

    async def _answer(self, request: Request, peer: HttpPeer) -> None:
        await peer.finish(await self._in_flight.run(self._engine, request, peer))

    async def accept(self, message: Notification | Response, http: HttpRequest) -> None:
        """Acknowledge a message that gets no response."""
        await self.sync.accept(message, self._sessions.identify(http))
        await http.respond(202, (), b"")

    async def post_batch(self, texts: list[bytes], http: HttpRequest) -> None:
        """Answer the messages of a batch, one by one."""
        client = self._sessions.identify(http)
        if not client.version.batches or not texts:
            reason = "The batch is empty" if not texts else "This protocol version has no batches"
            raise HttpError(400, RpcError(INVALID_REQUEST, reason))
        messages = [_parsed(text) for text in texts]
        unanswered = [each for each in messages if isinstance(each, Notification | Response)]
        if len(unanswered) == len(messages):
            for each in unanswered:
                await self.sync.accept(each, client)
            await http.respond(202, (), b"")
            return
        requests = [each for each in messages if isinstance(each, Request)]
        batch = HttpPeer(0, client.version, client.capabilities, http)
        if self._registry.has_gates:
            _refuse_batch(self._engine, requests, batch)
        batch.level = self._sessions.level(client)
        batch.questions = self.sync.questions if client.session is not None else None
        if http.accept.lstrip().lower().startswith(b"text/event-stream"):
            self._begin_stream(batch, client, None)
        answering = self._answer_batch(messages, client, batch)
        if _can_be_asked(client.capabilities) and any(map(self._engine.may_ask, requests)):
            await self._in_flight.run_detachable(batch, answering)
        else:
            await answering
            batch.stop_watching()

    async def _answer_batch(
        self, messages: list[Message | RpcError], client: HttpClient, batch: HttpPeer
    ) -> None:
        responses = [await self._answer_part(each, client, batch) for each in messages]
        frames = [joined(frame) for frame in responses if frame is not None]
        await batch.finish(b"[%b]" % b",".join(frames) if frames else None)

    async def get(self, http: HttpRequest) -> None:
        """Send the notifications of a session, or the rest of a resumed stream."""
        client = self._sessions.identify(http)
        if client.session is None:
            raise HttpError(405, RpcError(INVALID_REQUEST, "No session"), Allow="POST, DELETE")
        resumed, start = await self.sync.resumable.resume(client, http.headers)
        if resumed is not None:
            await self._write(resumed, http, start)
            return
        since = await self._bus.catch_up()
        # The session may have ended at another host.
        client = self._sessions.identify(http)
        stream = EventStream(asyncio.get_running_loop())
        opened = await self.sync.open_stream(client, since)

        def on_change(change: Change) -> None:
            if self._sessions.wants(client, change) and self.sync.active.is_active(opened):
                stream.offer_or_end(change_frame(change))

        unsubscribe = self._registry.changes.subscribe(on_change)
        try:
            await self._write(stream, http, start)
        finally:
            unsubscribe()
            self.sync.close_stream(opened)

    async def delete(self, http: HttpRequest) -> None:
        """End a session."""
        client = self._sessions.identify(http)
        if client.session is None:
            raise HttpError(400, RpcError(INVALID_REQUEST, "Missing Mcp-Session-Id"))
        await self.sync.end_session(client)
        if self._registry.has_budgets:
            await self._engine.runtime.wholes.forget_session(client.nonce.hex())
        await http.respond(204, (), b"")

    def open(self) -> None:
        """Serve, even after a shutdown."""
        self.sync.questions.open()

    def close(self) -> None:
        """End open streams and questions."""
        for stream in self._open_streams:
            stream.end()
        self.sync.questions.close()
        self._in_flight.close()

    async def _write(self, stream: EventStream, http: HttpRequest, start: int) -> None:
        self._open_streams.add(stream)
        try:
            expires = expiry_of(http)
            await write_until_disconnected(stream, http, start=start, expires=expires)
        finally:
            self.sync.resumable.stop_following(stream)
            self._open_streams.discard(stream)

    async def _initialize(self, request: Request, http: HttpRequest) -> None:
        try:
            session, result = self._engine.server_info.initialize(
                request.params,
                has_user=http.scope.get("user") is not None,
                has_session=self._sessions.are_kept,
            )
        except RpcError as error:
            await http.respond(200, JSON_HEADERS, error_frame(request.id, error))
            return
        headers = JSON_HEADERS
        if self._sessions.are_kept:
            headers = ((SESSION_HEADER, self._sessions.new_id(session, http)), *headers)
        await http.respond(200, headers, result_frame(request.id, result))

    def _begin_stream(self, peer: HttpPeer, client: HttpClient, request: Id | None) -> None:
        """Respond with an event stream; the client of a session can resume it."""
        if client.session is None:
            peer.begin_stream()
            return
        # Older clients try to read the empty event as JSON.
        peer.prime = client.version is V2025_11_25
        peer.begin_stream(self.sync.resumable.new(client, request))

    async def _answer_session(self, request: Request, client: HttpClient, peer: HttpPeer) -> bytes:
        described = described_if_hiding(self._registry, peer)
        try:
            if request.method != "ping" and not self._sessions.are_kept:
                message = f"{request.method} needs a session, and this server has none"
                raise RpcError(METHOD_NOT_FOUND, message)
            return result_frame(request.id, await self.sync.answer(request, client, described))
        except RpcError as error:
            return error_frame(request.id, error)
        except Unavailable as exc:
            if peer.can_refuse_by_status:
                raise
            return error_frame(request.id, unavailable(exc))

    async def _answer_part(
        self, message: Message | RpcError, client: HttpClient, batch: HttpPeer
    ) -> Frame | None:
        """Return the response to one message of a batch, if it gets one."""
        if isinstance(message, RpcError):
            return error_frame(message.id, message)
        if not isinstance(message, Request):
            # A batch with requests has a response, whose status does not depend on this.
            with suppress(Unavailable):
                await self.sync.accept(message, client)
            return None
        if message.method == "initialize":
            error = RpcError(INVALID_REQUEST, "initialize is not for batches")
            return error_frame(message.id, error)
        try:
            meta = meta_of(message)
        except RpcError as error:
            return error_frame(message.id, error)
        if message.method in SESSION_METHODS:
            return await self._answer_session(message, client, BatchPeer(message.id, batch))
        peer = BatchPeer(message.id, batch)
        peer.level = batch.level
        if meta is not None:
            peer.progress_token = meta.token
        if client.session is not None:
            peer.key = (client.nonce, message.id)
            peer.session = client.session
        return await self._in_flight.run(self._engine, message, peer)


def _refuse_batch(engine: Engine, requests: list[Request], batch: HttpPeer) -> None:
    """Raise HttpError if the client must log in for one of the requests; none of them runs."""
    for request in requests:
        error = batch_challenge(engine.runtime, request, engine.tool_name(request), batch)
        if error is not None and error.challenge is not None:
            status, challenge = error.challenge
            headers = {"www-authenticate": challenge, "cache-control": "no-store"}
            raise HttpError(status, error, **headers)


def _can_be_asked(client: ClientCapabilities) -> bool:
    return client.form or client.url or client.sampling or client.roots


def _parsed(text: bytes) -> Message | RpcError:
    try:
        return parse(text)
    except RpcError as error:
        return error
