"""Requests in flight over HTTP: each MCP request's peer and response, and one shared timer.

Questions waiting for a client's answer are here too, and so is the disconnect watch for REST calls.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

import msgspec

from ...calls.failures import log_internal_error
from ...core.json_value import Json
from ...core.versions import Version
from ...protocol.jsonrpc import (
    INVALID_REQUEST,
    Frame,
    Id,
    Request,
    RpcError,
    error_frame,
    joined,
    request_frame,
)
from ...protocol.mcp_peer import McpPeer
from ...protocol.refusals import LIFETIME
from ...protocol.session import ClientCapabilities
from ...tools.current_call import CURRENT
from ...tools.elicitation import Declined
from .request import JSON_HEADERS, HttpRequest, Receive, challenge_headers
from .sse import KEEP_ALIVE, EventStream, disconnected
from .worker_sockets import QuestionAnswered

if TYPE_CHECKING:
    from ...protocol.engine import Engine


_ASKED = re.compile(r"ask-([0-9]{1,5})_[0-9a-f]{16}")
_NO_ANSWER = "The client did not answer"
_SHUTTING_DOWN = "The server is shutting down, so the client cannot answer"


class PendingQuestions:
    """The questions waiting for an answer, by session and request id."""

    def __init__(self, worker: int) -> None:
        self._worker = worker
        self._open: dict[tuple[bytes, Id], asyncio.Future[msgspec.Raw]] = {}
        self._closed = False

    async def ask(
        self, nonce: bytes, stream: EventStream, method: str, params: Json
    ) -> msgspec.Raw:
        """Ask a session's client, and wait for its answer."""
        if self._closed:
            raise Declined(_SHUTTING_DOWN)
        id = f"ask-{self._worker}_{os.urandom(8).hex()}"
        answer = asyncio.get_running_loop().create_future()
        self._open[nonce, id] = answer
        stream.append(request_frame(id, method, params))
        try:
            async with asyncio.timeout(LIFETIME):
                result: msgspec.Raw = await answer
            return result
        except TimeoutError:
            raise Declined(_NO_ANSWER) from None
        finally:
            self._open.pop((nonce, id), None)

    def resolve(self, message: QuestionAnswered) -> None:
        """Pass an answer to the waiting call, if it is in this worker."""
        answer = self._open.get((message.nonce, message.id))
        if answer is None or answer.done():
            return
        if message.result is not None:
            answer.set_result(msgspec.Raw(message.result))
        else:
            answer.set_exception(Declined("The client refused"))

    def worker_of(self, id: Id | None) -> int:
        """Return the worker that asked the question with this id."""
        found = _ASKED.fullmatch(id) if isinstance(id, str) else None
        return self._worker if found is None else int(found[1])

    def decline_all(self, nonce: bytes) -> None:
        """Decline all questions in a session that has ended."""
        self._decline([answer for key, answer in self._open.items() if key[0] == nonce], _NO_ANSWER)

    def open(self) -> None:
        """Allow questions, even after a shutdown."""
        self._closed = False

    def close(self) -> None:
        """Decline all questions, because the server is shutting down."""
        self._closed = True
        self._decline(self._open.values(), _SHUTTING_DOWN)

    def _decline(self, answers: Iterable[asyncio.Future[msgspec.Raw]], reason: str) -> None:
        for answer in answers:
            if not answer.done():
                answer.set_exception(Declined(reason))


TICK = 0.1
"""Seconds between timer ticks; a request still running at its second tick is slow."""


class HttpPeer(McpPeer):
    """One MCP request in flight over HTTP: its client, and the response to its POST.

    The response is plain JSON, or an event stream if a frame is sent before the result.
    Nothing is written before that, so that the response's status can still change.
    """

    on_disconnect: Callable[[], object] | None = None
    """Called when a slow request's client disconnects; None if that does not matter."""
    cancel_on_disconnect = False
    """Cancel a slow request when its client disconnects."""
    key: tuple[bytes, Id] | None = None
    """The session and id of a request that its client can cancel by notification."""
    questions: PendingQuestions | None = None
    """Where questions to a session's client wait for their answers."""
    task: asyncio.Task[Any] | None = None
    """The task answering the request, while it is running; cancelled with the request."""
    prime = False
    """Start the event stream with an empty event that has an id, so that it can be resumed."""
    http: HttpRequest
    can_refuse_by_status = True
    is_held = False
    """Whether gates have yet to decide on the request; no stream starts before they do."""
    _wants_stream = False
    _stream: EventStream | None = None
    _writing: asyncio.Task[None] | None = None
    _watching: asyncio.Task[None] | None = None
    _closed = False
    _detached = False
    _ticks = 0

    def __init__(
        self, id: Id, version: Version, client: ClientCapabilities, request: HttpRequest
    ) -> None:
        self.id = id
        self.version = version
        self.client = client
        self.caller = request.caller
        self.http = request
        self.loop = request.loop

    def cancel(self) -> None:
        super().cancel()
        if self.task is not None:
            self.task.cancel()

    @property
    def stream(self) -> EventStream:
        if self._stream is None:
            self._stream = EventStream(self.loop)
        return self._stream

    def send(self, frame: bytes) -> None:
        """Send a notification; it is dropped if the client reads too slowly."""
        if self._is_unreadable():
            return
        if not self._closed and self.stream.offer(frame) and self._writing is None:
            self.loop.call_soon_threadsafe(self.begin_stream)

    async def send_request(self, method: str, params: Json) -> msgspec.Raw:
        if self.questions is None or self.key is None:
            raise RuntimeError("the client cannot be asked on this wire")
        if self._is_unreadable():
            raise Declined(_NO_ANSWER)
        answer = self.questions.ask(self.key[0], self.stream, method, params)
        self.begin_stream()
        return await answer

    def close_stream(self) -> None:
        if self.stream.id is not None:
            self.stream.close_connections()

    def begin_stream(self, stream: EventStream | None = None) -> None:
        """Respond with an event stream from now on."""
        self._stream = stream or self._stream
        if self.is_held:
            self._wants_stream = True
        elif self._writing is None and not (self._closed or self._detached):
            self.can_refuse_by_status = False
            expires = self.http.expires
            writing = self.stream.write_to(
                self.http.send, start=0, prime=self.prime, expires=expires
            )
            # The task must not keep the call alive, because the call keeps the task alive.
            context = copy_context()
            context.run(CURRENT.set, None)
            self._writing = self.loop.create_task(writing, context=context)
            if expires is not None:
                self._writing.add_done_callback(self._stop_if_expired)

    def release_stream(self) -> None:
        """Allow a stream, because the gates have let the request through."""
        self.is_held = False
        if self._wants_stream:
            self.begin_stream()

    async def finish(self, frame: Frame | None, status: int = 200) -> None:
        """Send the last frame: as plain JSON, or as the last event if the stream has begun."""
        if self.error is not None and self.error.challenge is not None and frame is not None:
            self._closed = True
            if self._stream is not None:
                self._stream.end()
            status, challenge = self.error.challenge
            await self.http.respond(status, challenge_headers(challenge), frame)
            return
        if self.is_held:
            self.release_stream()
        if self._detached:
            self._closed = True
            if frame is not None and not self._is_unreadable():
                self.stream.append(joined(frame))
            self.stream.end()
            return
        is_streamed = self._writing is not None or (self._stream and self._stream.count)
        if frame is not None and not is_streamed:
            self._closed = True
            await self.http.respond(status, JSON_HEADERS, frame)
            return
        if frame is not None:
            self.stream.append(joined(frame))
        self.begin_stream()
        self._closed = True
        self.stream.end()
        assert self._writing is not None
        await self._writing

    async def abandon(self) -> None:
        """Send nothing more to a disconnected client, even if the tool is still running."""
        self._closed = True
        await self._end_response()

    async def detach(self) -> None:
        """End the response to a disconnected client, while the call continues.

        The rest is kept for the client if it can resume the stream.
        """
        self._detached = True
        self.can_refuse_by_status = False
        await self._end_response()

    async def _end_response(self) -> None:
        if self._writing is None:
            await self.http.end_after_disconnect()
        else:
            self._writing.cancel()

    def _stop_if_expired(self, _: object) -> None:
        """Act as if the client had disconnected, if its token expired before the result."""
        on_disconnect = self.cancel if self.cancel_on_disconnect else self.on_disconnect
        if not (self._closed or self._detached) and on_disconnect is not None:
            on_disconnect()

    def _is_unreadable(self) -> bool:
        """Return whether no client can read the stream any more."""
        return self._detached and self.stream.id is None

    def tick(self) -> None:
        """Start watching the connection at the second tick."""
        self._ticks += 1
        if self._ticks == 2:
            self._watching = self.loop.create_task(self._watch())

    def stop_watching(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
            # A cancelled task keeps its exception, whose traceback keeps this peer alive.
            self._watching = None

    async def _watch(self) -> None:
        """Keep a silent connection alive with a stream, and notice if the client disconnects."""
        # Looked up here: a peer that stored its own method would create a reference cycle.
        on_disconnect = self.cancel if self.cancel_on_disconnect else self.on_disconnect
        if on_disconnect is None:
            await asyncio.sleep(KEEP_ALIVE)
            self.begin_stream()
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(KEEP_ALIVE):
                await disconnected(self.http.receive)
            on_disconnect()
            return
        self.begin_stream()
        await disconnected(self.http.receive)
        on_disconnect()


class BatchPeer(HttpPeer):
    """One request in a batch; its frames go into the batch's response."""

    can_refuse_by_status = False

    def __init__(self, id: Id, batch: HttpPeer) -> None:
        super().__init__(id, batch.version, batch.client, batch.http)
        self.questions = batch.questions
        self._batch = batch

    @property
    def stream(self) -> EventStream:
        return self._batch.stream

    def send(self, frame: bytes) -> None:
        self._batch.send(frame)

    def begin_stream(self, stream: EventStream | None = None) -> None:
        self._batch.begin_stream(stream)

    def tick(self) -> None:
        self._batch.tick()

    def _is_unreadable(self) -> bool:
        return self._batch._is_unreadable()


class InFlight:
    """The running MCP requests, registered so that they can be cancelled.

    One timer serves all of them, because a timer for each would cost more.
    """

    def __init__(self) -> None:
        self._peers: set[HttpPeer] = set()
        self._by_key: dict[tuple[bytes, Id], HttpPeer] = {}
        self._is_ticking = False
        self._detached: set[asyncio.Task[None]] = set()
        """Calls that are still running after their clients disconnected."""

    async def run_detachable(self, peer: HttpPeer, steps: Coroutine[Any, Any, None]) -> None:
        """Answer a request; return once it is answered, or once its client has disconnected.

        The call then continues: the session's client may still answer a question in another
        request. The HTTP request must not wait for that, because servers wait for HTTP requests
        when they shut down.
        """
        loop = asyncio.get_running_loop()
        answering = loop.create_task(steps)
        done = loop.create_future()

        def end(_: object = None) -> None:
            if not done.done():
                done.set_result(None)

        answering.add_done_callback(end)
        peer.on_disconnect = end
        try:
            await done
        except asyncio.CancelledError:
            answering.cancel()
            with suppress(asyncio.CancelledError):
                await answering
            raise
        finally:
            peer.stop_watching()
        if answering.done():
            answering.result()
            return
        self._detached.add(answering)
        answering.add_done_callback(self._forget)
        await peer.detach()

    def close(self) -> None:
        """Cancel the calls whose clients have disconnected."""
        for task in self._detached:
            task.cancel()

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._detached.discard(task)
        if not task.cancelled() and (failure := task.exception()) is not None:
            log_internal_error("a call without a client", failure)

    async def run(self, engine: Engine, request: Request, peer: HttpPeer) -> Frame | None:
        """Return the response to a request; None if it was cancelled."""
        key = peer.key
        if key is not None:
            if key in self._by_key:
                busy = RpcError(INVALID_REQUEST, f"Request {request.id!r} is still running")
                return error_frame(request.id, busy)
            self._by_key[key] = peer
        self._peers.add(peer)
        if not self._is_ticking:
            self._schedule()
        frame = None
        peer.task = task = asyncio.current_task(peer.loop)
        try:
            frame = await engine.respond(request, peer)
        except asyncio.CancelledError:
            if not peer.cancelled:
                raise
        finally:
            peer.task = None
            self._peers.discard(peer)
            if key is not None:
                del self._by_key[key]
            peer.stop_watching()
        if not peer.cancelled:
            return frame
        # A tool may have ignored its cancellation; its client is no longer waiting for the result.
        assert task is not None
        task.uncancel()
        return None

    def cancel(self, session: bytes, id: Id) -> bool:
        """Cancel a session's request; return whether it was running here."""
        peer = self._by_key.get((session, id))
        if peer is not None:
            peer.cancel()
        return peer is not None

    def _schedule(self) -> None:
        self._is_ticking = bool(self._peers)
        if self._is_ticking:
            asyncio.get_running_loop().call_later(TICK, self._tick)

    def _tick(self) -> None:
        for peer in self._peers:
            peer.tick()
        self._schedule()


class DisconnectWatch:
    """Says whether a call's client has disconnected.

    Most calls end before it starts watching.
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
